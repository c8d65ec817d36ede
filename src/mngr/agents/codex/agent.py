"""Codex, with a separate home in the agent's state directory.

Its terminal title shows whether it works, waits or asks; its conversation file shows how a turn
ended; a hook reports the question it asks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from mngr.agents.base import (
    UNREACHABLE,
    AgentType,
    Delivery,
    Launch,
    LaunchContext,
    Login,
    Receipt,
    fits_argv,
    options,
)
from mngr.agents.codex import rollout
from mngr.agents.codex.rollout import TurnState
from mngr.agents.delivery import receipt
from mngr.agents.hooks import note, noted
from mngr.agents.jsonl import iso, objects, one_line, table, text
from mngr.errors import UsageError
from mngr.model.state import STARTING, Evidence, Signals
from mngr.model.struct import Json

ASKS = "Action Required"
BUSY = ("Working", "Thinking", "Undoing", "Waiting", "Starting")

# Options with a value.
VALUED = (
    "-c --config --enable --disable --remote --remote-auth-token-env -i --image -m --model "
    "--local-provider -p --profile -s --sandbox -C --cd --add-dir -a --ask-for-approval"
).split()

PATIENT = 20.0
"""Seconds; after a pause this long, the server was unreachable three times."""
GRACE = 60.0
"""Seconds in which an attempt fails; one that takes longer is being answered."""


class CodexAgent(AgentType):
    name = "codex"
    program = "codex"
    install = "npm install --global @openai/codex"
    environment = ("OPENAI_*", "CODEX_API_KEY", "AZURE_OPENAI_*")
    reader = rollout
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
        """Return a launch with the newest conversation, or with the first prompt if there is none.

        A run without a screen repeats its prompt.
        """
        thread = text(noted(context.evidence, "SessionStart").get("session_id"))
        if rollout.THREAD.fullmatch(thread) and not context.record.headless:
            return _begin(context, "", thread)
        return _begin(context, text(noted(context.evidence, "Prompt").get("prompt")))

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
        # With a first prompt, Ready does not count before the conversation has begun. If the last
        # line is larger than the tail, the title is the only evidence.
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
        """Return the keys; if permission is denied, Codex ends the turn and waits."""
        return ("y",) if allow else ("Escape",)

    def evidence(self, delivery: Delivery) -> Receipt:
        """Return a receipt: text in the rollout was read, text only in the history is queued."""
        told = _heard(delivery.told, delivery.text)

        def seen() -> str:
            heard = _heard(delivery.conversation(), delivery.text)
            return "read" if heard[0] > told[0] else "kept" if heard[1] > told[1] else ""

        return receipt(delivery, "Codex", seen, lambda: _title(delivery.look()) == "Ready")


def _heard(files: Mapping[str, bytes], words: str) -> tuple[int, int]:
    """Return how often the text is in the agent's conversations, and in its history."""
    said = [turn for turn in rollout.transcript(files) if turn.type == "user_message"]
    typed = [entry.get("text") for entry in objects(files.get(rollout.HISTORY, b""))]
    wanted = words.strip()
    return (
        sum(turn.text.strip() == wanted for turn in said),
        sum(isinstance(each, str) and each.strip() == wanted for each in typed),
    )


def _begin(context: LaunchContext, prompt: str, thread: str = "") -> Launch:
    """Return a launch with a new conversation, or with `thread`."""
    from mngr.agents.codex.home import PROFILE

    record = context.record
    takes = fits_argv(prompt)
    verb = ["exec", "--skip-git-repo-check"] if record.headless else []
    again = ["resume", thread] if thread else []
    given = options(record.argv, VALUED) if thread else record.argv
    words = ["--", prompt] if takes else []
    return Launch(
        argv=("codex", *verb, *again, "--profile", PROFILE, *given, *words),
        files=note(record.launch, "Prompt", prompt=prompt) if takes else {},
        took_prompt=takes,
        daemons="app-server",
    )


def _own(context: LaunchContext) -> tuple[Mapping[str, object], dict[str, str], tuple[str, ...]]:
    """Return the user's settings, the keys of their providers, and remarks on what is left out."""
    from mngr.agents import portable
    from mngr.agents.codex import home

    settings = home.read_settings(home.users_home())
    keys = home.provider_keys(settings)
    if context.local or context.copies_login:
        return settings, keys, ()
    kept, left_out = portable.chosen(settings, home.ABROAD)
    left_out = [name for name in left_out if not name.startswith(home.UNSAID)]
    told = (
        f"{name} was not passed on; use --pass-env {name}, or --pass-login"
        for name in keys
        if name not in context.env
    )
    return kept, {}, (*portable.remark("config.toml", left_out), *told)


def _refuse_profile(words: Sequence[str]) -> None:
    for word in words:
        if word in ("-p", "--profile") or word.startswith("--profile="):
            raise UsageError(
                f"codex: {word}: mngr sets the profile of an agent", "use -c KEY=VALUE"
            )


def _forked(context: LaunchContext) -> tuple[str, dict[str, tuple[bytes, int]]]:
    """Return a new id and files: a copy of the original's last conversation, for a clone."""
    mine = [] if context.record.headless else rollout.own(context.parent)
    match = rollout.NAME.fullmatch(mine[-1]) if mine else None
    if match is None:
        return "", {}
    from uuid import uuid4

    old, new = match[1], str(uuid4())
    copied = rollout.fork(context.parent[mine[-1]], old, new)
    return new, {
        mine[-1].replace(old, new): (copied, 0o600),
        rollout.THREADS: (f"{new}\n".encode(), 0o600),
        **note("", "SessionStart", session_id=new),  # of no launch: nothing has begun here
    }


def _title(evidence: Evidence) -> str:
    """Return the state in the terminal's title, or "" if the title is not from Codex."""
    title = evidence.pane.title if evidence.pane else ""
    words = [word.strip() for word in title.split("|")]
    known = [word for word in words if word in ("Ready", *BUSY) or word.endswith(ASKS)]
    return known[0] if known else ""


def _question(input: Mapping[str, Json]) -> str:
    given = table(input.get("tool_input"))
    asked = text(given.get("command")) or json.dumps(given, ensure_ascii=False)
    why, tool = text(given.get("description")), text(input.get("tool_name"))
    return one_line(f"{tool}: {asked}" + (f" ({why})" if why else ""))


def _cut_off(evidence: Evidence, moment: TurnState) -> Signals | None:
    """Return UNREACHABLE if the server does not answer: Codex retries forever, ever less often."""
    outage = rollout.outage(evidence.status, moment)
    if outage.pause < PATIENT or evidence.now > outage.until + GRACE:
        return None
    detail = f"{outage.error} (Codex keeps retrying)"
    return Signals(waiting=UNREACHABLE, detail=detail, since=outage.began)


def _ended(moment: TurnState, now: float) -> Signals:
    if moment.kind == "aborted":
        return Signals(waiting="interrupted", since=moment.epoch)
    if moment.error_kind == "usage_limit_exceeded":
        detail = rollout.reset_time(moment, now) or moment.error
        return Signals(waiting="quota", detail=detail, since=moment.epoch)
    if moment.error_kind:
        return Signals(waiting="error", detail=moment.error, since=moment.epoch)
    return Signals(waiting="end_of_turn", since=moment.epoch)
