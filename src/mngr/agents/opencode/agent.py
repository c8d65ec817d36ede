"""OpenCode, with a database and a configuration directory of its own in the state directory.

The user's login and settings are used where they are: OpenCode adds our directory to them. A
plugin of ours in it tells what happens.
"""

from __future__ import annotations

import json
import re

from mngr.agents import waits
from mngr.agents.base import PROMPT_LIMIT, AgentType, Launch
from mngr.agents.hooks import note
from mngr.agents.jsonl import one_line, table, text
from mngr.agents.opencode import talk
from mngr.agents.taking import receipt
from mngr.model.state import STARTING, Signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.agents.base import Delivery, LaunchContext, Login, Receipt, Tokens, Turn
    from mngr.agents.opencode.talk import Moment
    from mngr.model.records import AgentRecord
    from mngr.model.state import Evidence

LONG = 60.0
"""Seconds; one that tries again only after more than this waits for its quota."""
PATIENT = 4
"""Number of attempts after which retrying is reported as an error."""
LOST = ("Cannot connect", "Unable to connect")
"""How an error begins where there was no server to tell of any."""
COLUMNS = 40
"""With 30 OpenCode 1.18 ends in a crash at its start, with 40 it works."""
AT_REST = ("ready", "idle", "interrupted", "error")
SETTLE = 30.0
"""Seconds that it gets, on a slow machine, to begin with what it was told."""

VALUED = (
    "--log-level --port --hostname --mdns-domain --cors -m --model -s --session --prompt --agent "
    "--replay-limit --format -f --file --title --attach -p --password -u --username --dir --variant"
).split()
CHOOSING = ("-c", "--continue", "-s", "--session", "--fork", "--prompt")
"""Options that say which conversation, or begin it."""

METER = r"""
[ -f opencode/talk.jsonl ] && grep '^{"kind":"spent"' opencode/talk.jsonl 2>/dev/null | awk '
  function field(name) {
    if (!match($0, "\"" name "\":[0-9]+")) return 0
    return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0
  }
  function word(name) {
    if (!match($0, "\"" name "\":\"[^\"]*\"")) return ""
    return substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 5)
  }
  { id = word("id"); model[id] = word("model"); i[id] = field("input"); o[id] = field("output")
    r[id] = field("cache_read"); w[id] = field("cache_write") }
  END { for (id in model) print model[id], i[id], o[id], r[id], w[id] }'
"""

LOCK = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
"""OpenCode would install a package there that our plugin does not need: 60 MB, half a minute."""

SETTINGS = {"experimental": {"disable_paste_summary": True}}
"""Else it says a blank after a message of several lines."""

BEGIN = r"""#!/bin/sh
# A clone begins with a copy of a conversation; what happens in the copying is not its own doing.
copy=$MNGR_AGENT_STATE_DIR/opencode/session.json
MNGR_OPENCODE=0 opencode import "$copy" > /dev/null < /dev/null
exec opencode "$@"
"""


class OpenCodeAgent(AgentType):
    name = "opencode"
    program = "opencode"
    install = "npm install --global opencode-ai"
    environment = (
        *("OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "OPENROUTER_API_KEY", "GEMINI_API_KEY"),
        *("GOOGLE_GENERATIVE_AI_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "DEEPSEEK_API_KEY"),
    )
    conversation = (talk.FILE,)
    forks = True
    headless = "opencode run"
    clear_keys = ("C-u",) * 20  # one for each line of a draft and one for its end

    # launches

    def login(self, env: Mapping[str, str]) -> Login | None:
        from mngr.agents import logins

        return logins.opencode(env)

    def prepare(self, context: LaunchContext) -> Launch:
        _refuse_narrow(context.record)
        home = f"{context.state_dir}/opencode"
        settings, remarks = ({}, ()) if context.local else _settings(context.copies_login)
        session, copied = _forked(context)
        launch = _begin(context, context.prompt, session)
        argv = ("sh", f"{home}/begin.sh", *launch.argv[1:]) if session else launch.argv
        return launch.replace(
            argv=argv,
            env={
                "OPENCODE_CONFIG_DIR": home,
                "OPENCODE_DB": f"{home}/opencode.db",
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                **(_login() if context.copies_login else {}),
            },
            files={
                **_files(home),
                **settings,
                **copied,
                **launch.files,
            },
            links={"transcript": f"{home}/talk.jsonl"},
            remarks=remarks,
        )

    def resume(self, context: LaunchContext) -> Launch:
        """The newest conversation it began; if it never did, its first prompt once more.

        A run without a screen has its prompt and nothing to wait for: it is run again.
        """
        session = talk.last_session(context.evidence.tail) if context.evidence else ""
        if session and not context.record.headless:
            return _begin(context, "", session)
        said = context.evidence.signals if context.evidence else {}
        prompt = text(table(table(said.get("Prompt")).get("input")).get("prompt"))
        return _begin(context, prompt)

    # states

    def signals(self, evidence: Evidence) -> Signals:
        record, started = evidence.record, evidence.this_started
        if record is None or record.headless or started is None:
            return Signals()
        moment = talk.last_moment(evidence.tail, started.time)
        if not moment.word or (moment.word == "ready" and "Prompt" in evidence.this_signals):
            return Signals(working=STARTING, since=moment.time or started.time)
        # It tells of what it was told a moment before it tells that it works on it.
        begins = moment.prompted and evidence.now - moment.prompted < SETTLE
        if moment.word in AT_REST and begins:
            return Signals(working="working", since=moment.prompted)
        return _told(moment, evidence.now)

    def ready(self, evidence: Evidence) -> bool:
        """It reads a paste line by line before it has drawn its screen and named its terminal.

        When it resumes, a new conversation is on the screen until the old one has been found.
        """
        title = evidence.pane.title if evidence.pane else ""
        if title != "OpenCode" or evidence.this_started is None:
            return title.startswith("OC | ")
        moment = talk.last_moment(evidence.tail, evidence.this_started.time)
        return not talk.last_session(evidence.tail) or moment.word not in ("", "ready")

    def answer(self, evidence: Evidence, allow: bool) -> tuple[str, ...]:
        return ("Enter",) if allow else ("Escape",)

    # conversations

    def transcript(self, files: Mapping[str, bytes]) -> list[Turn]:
        return talk.transcript(files)

    def usage(self, files: Mapping[str, bytes]) -> dict[str, Tokens]:
        return talk.usage(files)

    def meter(self) -> str:
        return METER

    def evidence(self, delivery: Delivery) -> Receipt:
        """It is in the conversation as soon as it was typed; a busy one answers it later."""
        told = len(talk.heard(delivery.told, delivery.text))
        busy = talk.last_moment(delivery.before.tail, 0.0).word in ("busy", "retry")

        def seen() -> str:
            heard = talk.heard(delivery.conversation(), delivery.text)
            if len(heard) == told:
                return ""
            return "kept" if busy and not heard[-1] else "read"

        def at_rest() -> bool:
            return talk.last_moment(delivery.look().tail, 0.0).word in AT_REST

        return receipt(delivery, "OpenCode", seen, at_rest)


def _told(moment: Moment, now: float) -> Signals:
    detail, since = one_line(moment.text), moment.time
    if moment.word == "retry":
        return _trying(moment, detail, now)
    if moment.word in ("permission", "error"):
        return Signals(waiting=moment.word, detail=detail, since=since)
    if moment.word == "interrupted":
        return Signals(waiting="interrupted", since=since)
    if moment.word in ("idle", "ready"):
        return Signals(waiting="end_of_turn", since=since)
    return Signals(working="working", since=since)


def _trying(moment: Moment, detail: str, now: float) -> Signals:
    """What failed is to be tried again, or is being tried: no time to call it overcome."""
    if moment.tried and now - moment.tried > LONG:
        return Signals(working="working", since=moment.tried)  # it would have failed by now
    lost = detail.startswith(LOST)
    if moment.next - moment.time > LONG and not lost:
        return Signals(waiting="quota", detail=waits.reset(moment.next, now), since=moment.time)
    if moment.attempt >= PATIENT:
        word = waits.UNREACHABLE if lost else "error"
        told = f"{detail} (tried {moment.attempt} times)"
        return Signals(waiting=word, detail=told, since=moment.failing)
    return Signals(working="working", detail=f"trying again: {detail}", since=moment.time)


def _refuse_narrow(record: AgentRecord) -> None:
    if record.width < COLUMNS and not record.headless:
        from mngr.errors import UsageError

        told = f"opencode crashes on a terminal of {record.width} columns"
        raise UsageError(told, f"use --tmux-width {COLUMNS} or more")


def _files(home: str) -> dict[str, tuple[bytes, int]]:
    from mngr.agents.opencode.plugin import plugin

    return {
        "opencode/plugin/mngr.js": (plugin(f"{home}/talk.jsonl"), 0o600),
        "opencode/node_modules/.package-lock.json": (b"{}", 0o600),
        "opencode/package.json": (b"{}", 0o600),
        "opencode/opencode.json": (json.dumps(SETTINGS).encode(), 0o600),
        "opencode/package-lock.json": (json.dumps(LOCK).encode(), 0o600),
    }


def _login() -> dict[str, str]:
    """The user's, for a host that has none of their files."""
    content = _read("XDG_DATA_HOME", ".local/share", "auth.json")
    return {"OPENCODE_AUTH_CONTENT": content.decode("utf-8", "replace")} if content else {}


def _settings(whole: bool) -> tuple[dict[str, tuple[bytes, int]], tuple[str, ...]]:
    """Return the user's settings as a file, and remarks; without secrets unless `whole`."""
    from mngr.agents import private

    names = ("opencode.json", "opencode.jsonc")
    content = next(filter(None, (_read("XDG_CONFIG_HOME", ".config", name) for name in names)), b"")
    left_out: list[str] = []
    if content and not whole:
        try:
            kept, left_out = private.without_secrets(parsed(content))
        except ValueError:
            return {}, ("opencode.json: not copied, because it cannot be parsed",)
        content = json.dumps(kept).encode() if left_out else content
    files = {"opencode/opencode.jsonc": (content, 0o600)} if content else {}
    return files, private.remark("opencode.json", left_out)


def parsed(content: bytes) -> dict[str, object]:
    """Parse JSON with comments and commas at the end of lists; raise ValueError."""
    plain = content.decode()
    for dropped in (r"//[^\n]*|/\*.*?\*/", r",(?=\s*[}\]])"):
        token = re.compile(rf'"(?:\\.|[^"\\])*"|{dropped}', re.DOTALL)
        plain = token.sub(lambda found: found[0] if found[0].startswith('"') else "", plain)
    made = json.loads(plain)
    if not isinstance(made, dict):
        raise ValueError("not a table")
    return made


def _read(variable: str, usual: str, name: str) -> bytes:
    import os

    base = os.environ.get(variable) or os.path.join(os.path.expanduser("~"), usual)
    try:
        with open(os.path.join(base, "opencode", name), "rb") as file:
            return file.read(1 << 20)
    except OSError:
        return b""


def _forked(context: LaunchContext) -> tuple[str, dict[str, tuple[bytes, int]]]:
    """A clone goes on with the last conversation of the original, under an id of its own."""
    from secrets import token_hex

    data = b"" if context.record.headless else context.parent.get(talk.FILE, b"")
    old = talk.last_session(data)
    new = old[:16] + token_hex(7)
    exported = talk.export(data, old) if old else b""
    if not exported:
        return "", {}
    return new, {
        "opencode/begin.sh": (BEGIN.encode(), 0o700),
        "opencode/session.json": (exported.replace(old.encode(), new.encode()), 0o600),
        talk.FILE: (talk.forked(data).replace(old.encode(), new.encode()), 0o600),
    }


def _begin(context: LaunchContext, prompt: str, session: str = "") -> Launch:
    """A new conversation, or a kept one that goes on."""
    record = context.record
    takes = bool(prompt) and len(prompt.encode("utf-8", "replace")) <= PROMPT_LIMIT
    again = ["--session", session] if session else []
    given = options(record.argv) if session else record.argv
    if record.headless:
        # It puts a word with blanks into quotes of its own before it says it.
        words = ["run", *given, *again, *(["--", *prompt.split(" ")] if takes else [])]
    else:
        words = [*given, *again, *([f"--prompt={prompt}"] if takes else [])]
    kept = note(record.launch, "Prompt", prompt=prompt) if takes else {}
    return Launch(argv=("opencode", *words), files=kept, took_prompt=takes)


def options(words: Sequence[str]) -> tuple[str, ...]:
    """Without what began the conversation: said once more, it would be done once more."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            break
        if not word.startswith("-"):
            continue
        group = [word, *([next(rest, "")] if word in VALUED else [])]
        if word.partition("=")[0] not in CHOOSING:
            kept += group
    return tuple(kept)
