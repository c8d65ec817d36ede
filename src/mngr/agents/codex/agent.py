"""OpenAI's Codex, with a home of its own in the agent's state directory.

Its terminal title tells whether it works, waits or asks; what it writes down of the conversation
tells how a turn ended; a hook keeps the question it asks.
"""

from __future__ import annotations

import json

from mngr.agents import waits
from mngr.agents.base import PROMPT_LIMIT, AgentType, Launch
from mngr.agents.codex import rollout
from mngr.agents.hooks import note
from mngr.agents.jsonl import iso, objects, one_line, table, text
from mngr.agents.taking import receipt
from mngr.model.state import STARTING, Signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.agents.base import Delivery, LaunchContext, Login, Receipt, Tokens, Turn
    from mngr.agents.codex.rollout import Moment
    from mngr.model.state import Evidence
    from mngr.model.struct import Json

ASKS = "Action Required"
BUSY = ("Working", "Thinking", "Undoing", "Waiting", "Starting")

# Options that are followed by a word of their own.
VALUED = (
    "-c --config --enable --disable --remote --remote-auth-token-env -i --image -m --model "
    "--local-provider -p --profile -s --sandbox -C --cd --add-dir -a --ask-for-approval"
).split()

PATIENT = 20.0
"""Seconds; one that pauses for so long has failed three times to reach its server."""
GRACE = 60.0
"""Seconds in which a try that began fails; one that goes on for longer is being answered."""

METER = r"""
for each in codex/sessions/*/*/*/rollout-*.jsonl; do
  [ -f "$each" ] && grep -E '"type":"(turn_context|token_usage_record|token_count)"' "$each"
  echo
done 2>/dev/null | awk '
  function field(name) {
    if (!match($0, "\"" name "\":[0-9]+")) return 0
    return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0
  }
  function take() {
    read = field("cached_input_tokens"); write = field("cache_write_input_tokens")
    fresh = field("input_tokens") - read - write
    i = fresh > 0 ? fresh : 0; o = field("output_tokens")
  }
  function add() { input[m] += i; output[m] += o; reads[m] += read; writes[m] += write; any[m] = 1 }
  function file_ends() {
    if (!listed && counted) { i = ci; o = co; read = cr; write = cw; add() }
    m = "unknown"; listed = counted = 0; split("", seen)
  }
  BEGIN { file_ends() }
  $0 == "" { file_ends(); next }
  /"type":"turn_context"/ {
    if (match($0, "\"model\":\"[^\" ]+\"")) m = substr($0, RSTART + 9, RLENGTH - 10)
    next
  }
  /"type":"token_usage_record"/ {
    id = match($0, "\"response_id\":\"[^\"]*\"") ? substr($0, RSTART, RLENGTH) : NR
    if (id in seen) next
    seen[id] = 1; listed = 1; take(); add(); next
  }
  /"total_token_usage":\{/ { take(); ci = i; co = o; cr = read; cw = write; counted = 1 }
  END { for (m in any) print m, input[m], output[m], reads[m], writes[m] }'
"""


class CodexAgent(AgentType):
    name = "codex"
    program = "codex"
    install = "npm install --global @openai/codex"
    environment = ("OPENAI_*", "CODEX_API_KEY", "AZURE_OPENAI_*")
    conversation = (rollout.SESSIONS, rollout.HISTORY, rollout.THREADS)
    forks = True
    headless = "codex exec"
    clear_keys = ("C-u",) * 20  # one for each line of a draft and one for its end

    # launches

    def login(self, env: Mapping[str, str]) -> Login | None:
        from mngr.agents import logins

        return logins.codex(env)

    def prepare(self, context: LaunchContext) -> Launch:
        from mngr.agents.codex import home

        _refuse_profile(context.record.argv)
        settings, keys, remarks = _own(context)
        login, links = home.login(context)
        thread, copied = _forked(context)
        launch = _begin(context, context.prompt, thread)
        files = {**home.files(context, settings), **login, **copied, **launch.files}
        if home.needs_login(settings) and not login and not links:
            files |= note(context.record.launch, "Login")
        return launch.replace(
            env={**home.environment(context), **keys},
            files=files,
            remarks=remarks,
            links={**links, "status": home.log(context)},
        )

    def resume(self, context: LaunchContext) -> Launch:
        """The newest conversation it began; if it never did, its first prompt once more.

        A run without a screen has its prompt and nothing to wait for: it is run again.
        """
        said = context.evidence.signals if context.evidence else {}
        thread = text(_input(said, "SessionStart").get("session_id"))
        if rollout.THREAD.fullmatch(thread) and not context.record.headless:
            return _begin(context, "", thread)
        return _begin(context, text(_input(said, "Prompt").get("prompt")))

    # states

    def signals(self, evidence: Evidence) -> Signals:
        record, started = evidence.record, evidence.this_started
        if record is None or record.headless or started is None:
            return Signals()
        said, title = evidence.this_signals, _title(evidence)
        moment = rollout.last_moment(evidence.tail, iso(started.time))
        if moment.kind in ("complete", "aborted"):
            return _ended(moment, evidence.now)
        asked = said.get("PermissionRequest")
        if ASKS in title or (asked and not title and moment.answered < iso(asked.time)):
            question = _question(asked.input) if asked else "see its screen"
            since = asked.time if asked else moment.epoch
            return Signals(waiting="permission", detail=question, since=since or started.time)
        if moment.kind == "started":
            return _cut_off(evidence, moment) or Signals(working="working", since=moment.epoch)
        # With a first prompt it is not at rest before it has begun. A last line larger than the
        # tail, on the other hand, leaves nothing but the title to go by.
        if title == "Ready" and ("Prompt" not in said or "SessionStart" in said):
            return Signals(waiting="end_of_turn", since=started.time)
        if title in BUSY or "SessionStart" in said:
            return Signals(working="working", since=started.time)
        if not title and "Login" in said:
            told = "not logged in: run `codex login` and create it again, or connect and sign in"
            return Signals(waiting="error", detail=told, since=started.time)
        return Signals(working=STARTING, since=started.time)

    def ready(self, evidence: Evidence) -> bool:
        title = _title(evidence)
        return bool(title) and title != "Starting"

    def answer(self, evidence: Evidence, allow: bool) -> tuple[str, ...]:
        """Codex ends the turn when its question is denied, and waits to be told what else to do."""
        return ("y",) if allow else ("Escape",)

    # conversations

    def transcript(self, files: Mapping[str, bytes]) -> list[Turn]:
        return rollout.transcript(files)

    def usage(self, files: Mapping[str, bytes]) -> dict[str, Tokens]:
        return rollout.usage(files)

    def meter(self) -> str:
        return METER

    def evidence(self, delivery: Delivery) -> Receipt:
        """It is in the rollout: read; only in the list of what was typed: kept."""
        told = _heard(delivery.told, delivery.text)

        def seen() -> str:
            heard = _heard(delivery.conversation(), delivery.text)
            return "read" if heard[0] > told[0] else "kept" if heard[1] > told[1] else ""

        return receipt(delivery, "Codex", seen, lambda: _title(delivery.look()) == "Ready")


def _heard(files: Mapping[str, bytes], words: str) -> tuple[int, int]:
    """How often this was said, and how often typed, in all conversations of the agent."""
    said = [turn for turn in rollout.transcript(files) if turn.type == "user_message"]
    typed = [entry.get("text") for entry in objects(files.get(rollout.HISTORY, b""))]
    wanted = words.strip()
    return (
        sum(turn.text.strip() == wanted for turn in said),
        sum(isinstance(each, str) and each.strip() == wanted for each in typed),
    )


def _begin(context: LaunchContext, prompt: str, thread: str = "") -> Launch:
    """A new conversation, or a kept one that goes on."""
    from mngr.agents.codex.home import PROFILE

    record = context.record
    takes = bool(prompt) and len(prompt.encode("utf-8", "replace")) <= PROMPT_LIMIT
    verb = ["exec", "--skip-git-repo-check"] if record.headless else []
    again = ["resume", thread] if thread else []
    given = options(record.argv) if thread else record.argv
    words = ["--", prompt] if takes else []
    return Launch(
        argv=("codex", *verb, *again, "--profile", PROFILE, *given, *words),
        files=note(record.launch, "Prompt", prompt=prompt) if takes else {},
        took_prompt=takes,
        daemons="app-server",
    )


def _own(context: LaunchContext) -> tuple[Mapping[str, object], dict[str, str], tuple[str, ...]]:
    """Return the user's settings, the keys of their providers, and remarks on what is left out.

    Secrets are only copied to another machine if the user asks for it.
    """
    from mngr.agents import private
    from mngr.agents.codex import home

    settings = home.read_settings(home.users_home())
    keys = home.provider_keys(settings)
    if context.local or context.copies_login:
        return settings, keys, ()
    kept, left_out = private.without_secrets(settings)
    told = (
        f"{name} was not passed on; use --pass-env {name}, or --pass-login"
        for name in keys
        if name not in context.env
    )
    return kept, {}, (*private.remark("config.toml", left_out), *told)


def _refuse_profile(words: Sequence[str]) -> None:
    for word in words:
        if word in ("-p", "--profile") or word.startswith("--profile="):
            from mngr.errors import UsageError

            raise UsageError(f"codex: {word}: an agent's profile is mngr's", "use -c KEY=VALUE")


def options(words: Sequence[str]) -> tuple[str, ...]:
    """Without the prompt: said once more, it would be done once more."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            kept.append(word)
            if word in VALUED:
                kept += [value for value in [next(rest, None)] if value is not None]
    return tuple(kept)


def _forked(context: LaunchContext) -> tuple[str, dict[str, tuple[bytes, int]]]:
    """A clone goes on with the last conversation of the original, under an id of its own."""
    mine = [] if context.record.headless else rollout.own(context.parent)
    match = rollout.NAME.fullmatch(mine[-1]) if mine else None
    if match is None:
        return "", {}
    old, new = match[1], _new_thread()
    copied = rollout.fork(context.parent[mine[-1]], old, new)
    return new, {
        mine[-1].replace(old, new): (copied, 0o600),
        rollout.THREADS: (f"{new}\n".encode(), 0o600),
        **note("", "SessionStart", session_id=new),  # of no launch: it has not begun here
    }


def _new_thread() -> str:
    from uuid import uuid4

    return str(uuid4())


def _input(signals: Mapping[str, Json], event: str) -> dict[str, Json]:
    """Of whatever launch."""
    return table(table(signals.get(event)).get("input"))


def _title(evidence: Evidence) -> str:
    """What the terminal is called, where Codex has named it; a shell would name it otherwise."""
    title = evidence.pane.title if evidence.pane else ""
    words = [word.strip() for word in title.split("|")]
    known = [word for word in words if word in ("Ready", *BUSY) or word.endswith(ASKS)]
    return known[0] if known else ""


def _question(input: Mapping[str, Json]) -> str:
    given = table(input.get("tool_input"))
    asked = text(given.get("command")) or json.dumps(given, ensure_ascii=False)
    why, tool = text(given.get("description")), text(input.get("tool_name"))
    return one_line(f"{tool}: {asked}" + (f" ({why})" if why else ""))


def _cut_off(evidence: Evidence, moment: Moment) -> Signals | None:
    """Codex tries for ever to reach a server that is gone, at intervals that grow."""
    outage = rollout.outage(evidence.status, moment)
    if outage.pause < PATIENT or evidence.now > outage.until + GRACE:
        return None
    detail = f"{outage.error} (it goes on trying)"
    return Signals(waiting=waits.UNREACHABLE, detail=detail, since=outage.began)


def _ended(moment: Moment, now: float) -> Signals:
    if moment.kind == "aborted":
        return Signals(waiting="interrupted", since=moment.epoch)
    if moment.error_kind == "usage_limit_exceeded":
        detail = rollout.reset_time(moment, now) or moment.error
        return Signals(waiting="quota", detail=detail, since=moment.epoch)
    if moment.error_kind:
        return Signals(waiting="error", detail=moment.error, since=moment.epoch)
    return Signals(waiting="end_of_turn", since=moment.epoch)
