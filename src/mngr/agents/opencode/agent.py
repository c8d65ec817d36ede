"""OpenCode, with a separate database and configuration directory in the state directory.

OpenCode uses the user's login and settings, and in addition this directory. A plugin of mngr in it
reports what happens.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping

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
    reset,
)
from mngr.agents.delivery import receipt
from mngr.agents.hooks import note, noted
from mngr.agents.jsonl import one_line, read, text
from mngr.agents.opencode import talk
from mngr.agents.opencode.talk import TalkState
from mngr.errors import UsageError
from mngr.model.records import AgentRecord
from mngr.model.state import STARTING, Evidence, Signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.agents.portable import Allowed

LONG = 60.0
"""Seconds; a longer pause before the next attempt means that the quota is used up."""
PATIENT = 4
"""Number of attempts after which retrying is reported as an error."""
LOST = ("Cannot connect", "Unable to connect")
"""Beginnings of errors that mean that there was no server."""
COLUMNS = 40
"""OpenCode 1.18 crashes at its start with 30 columns; 40 work."""
AT_REST = ("ready", "idle", "interrupted", "error")
SETTLE = 30.0
"""Seconds that it may take, on a slow machine, to begin with a prompt."""

VALUED = (
    "--log-level --port --hostname --mdns-domain --cors -m --model -s --session --prompt --agent "
    "--replay-limit --format -f --file --title --attach -p --password -u --username --dir --variant"
).split()
CHOOSING = ("-c", "--continue", "-s", "--session", "--fork", "--prompt")
"""Options that choose the conversation or begin it."""

LOCK = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
"""Without it OpenCode would install a package that the plugin does not require: 60 MB."""

SETTINGS = {"experimental": {"disable_paste_summary": True}}
"""Otherwise it adds a blank to a message of several lines."""

BEGIN = r"""#!/bin/sh
# A clone begins with a copy of a conversation; the plugin does not report the import.
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
    reader = talk
    conversation = (talk.FILE,)
    forks = True
    headless = "opencode run"
    clear_keys = ("C-u",) * 20  # one for each line of a draft and one for its end

    # launches

    def login(self, env: Mapping[str, str]) -> Login | None:
        from mngr.agents import logins

        return logins.opencode()

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
        """Return a launch with the newest conversation, or with the first prompt if there is none.

        A run without a screen repeats its prompt.
        """
        session = talk.last_session(context.evidence.tail) if context.evidence else ""
        if session and not context.record.headless:
            return _begin(context, "", session)
        return _begin(context, text(noted(context.evidence, "Prompt").get("prompt")))

    # states

    def signals(self, evidence: Evidence) -> Signals:
        record, started = evidence.record, evidence.this_started
        if record is None or record.headless or started is None:
            return Signals()
        moment = talk.last_moment(evidence.tail, started.time)
        if not moment.word or (moment.word == "ready" and "Prompt" in evidence.this_signals):
            return Signals(working=STARTING, since=moment.time or started.time)
        # It reports a prompt a moment before it reports that it is busy.
        begins = moment.prompted and evidence.now - moment.prompted < SETTLE
        if moment.word in AT_REST and begins:
            return Signals(working="working", since=moment.prompted)
        return _told(moment, evidence.now)

    def ready(self, evidence: Evidence) -> bool:
        """Return whether it has drawn its screen and set the title; before, a paste is split.

        When it resumes, the screen shows a new conversation until the old one has been loaded.
        """
        title = evidence.pane.title if evidence.pane else ""
        if title != "OpenCode" or evidence.this_started is None:
            return title.startswith("OC | ")
        moment = talk.last_moment(evidence.tail, evidence.this_started.time)
        return not talk.last_session(evidence.tail) or moment.word not in ("", "ready")

    def answer(self, evidence: Evidence, allow: bool) -> tuple[str, ...]:
        return ("Enter",) if allow else ("Escape",)

    def evidence(self, delivery: Delivery) -> Receipt:
        """Return a receipt: the text is stored at once, and a busy program reads it later."""
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


def _told(moment: TalkState, now: float) -> Signals:
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


def _trying(moment: TalkState, detail: str, now: float) -> Signals:
    """Return the signals during attempts to repeat a failed request."""
    if moment.tried and now - moment.tried > LONG:
        return Signals(working="working", since=moment.tried)  # it would have failed again by now
    lost = detail.startswith(LOST)
    if moment.next - moment.time > LONG and not lost:
        return Signals(waiting="quota", detail=reset(moment.next, now), since=moment.time)
    if moment.attempt >= PATIENT:
        word = UNREACHABLE if lost else "error"
        told = f"{detail} (tried {moment.attempt} times)"
        return Signals(waiting=word, detail=told, since=moment.failing)
    return Signals(working="working", detail=f"retrying: {detail}", since=moment.time)


def _refuse_narrow(record: AgentRecord) -> None:
    if record.width < COLUMNS and not record.headless:
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
    """Return the user's login as a variable, for a host that lacks the user's files."""
    content = read(user_file(*AUTH))
    return {"OPENCODE_AUTH_CONTENT": content.decode("utf-8", "replace")} if content else {}


def _settings(whole: bool) -> tuple[dict[str, tuple[bytes, int]], tuple[str, ...]]:
    """Return the user's settings as a file, and remarks; only those in `abroad` unless `whole`."""
    from mngr.agents import portable

    paths = (user_file(*CONFIG, name) for name in ("opencode.json", "opencode.jsonc"))
    content = next(filter(None, map(read, paths)), b"")
    left_out: list[str] = []
    if content and not whole:
        try:
            kept, left_out = portable.chosen(parsed(content), abroad())
        except ValueError:
            return {}, ("opencode.json: not copied, because it cannot be parsed",)
        content = json.dumps(kept).encode()  # without comments, which can hold secrets too
    files = {"opencode/opencode.jsonc": (content, 0o600)} if content else {}
    return files, portable.remark("opencode.json", left_out)


def abroad() -> Allowed:
    """Return the settings that are copied to another machine; a key only as a reference to one."""
    from mngr.agents.portable import leaves, permission, reference, switch

    switches = {"*": switch}
    model = leaves("id name reasoning tool_call attachment temperature")
    models: Allowed = {"*": {**model, "limit": leaves("*"), "cost": leaves("*")}}
    options: Allowed = {
        **leaves("baseURL timeout"),
        "apiKey": reference,
        "headers": {"*": reference},
    }
    provider: Allowed = {**leaves("name npm api env whitelist blacklist"), "options": options}
    agent = leaves("model mode description temperature top_p steps disable")
    return {
        **leaves("$schema model small_model default_agent share autoupdate snapshot theme"),
        **leaves("disabled_providers enabled_providers"),
        "keybinds": leaves("*"),
        "compaction": switches,
        "tools": switches,
        "permission": permission,
        "provider": {"*": {**provider, "models": models}},
        "agent": {"*": {**agent, "tools": switches, "permission": permission}},
    }


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


AUTH = ("XDG_DATA_HOME", "~/.local/share", "auth.json")
CONFIG = ("XDG_CONFIG_HOME", "~/.config")


def user_file(variable: str, default: str, name: str) -> str:
    """Return the path of a file of the user's own OpenCode."""
    base = os.environ.get(variable) or os.path.expanduser(default)
    return os.path.join(base, "opencode", name)


def _forked(context: LaunchContext) -> tuple[str, dict[str, tuple[bytes, int]]]:
    """Return a new id and files: a copy of the original's last conversation, for a clone."""
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
    """Return a launch with a new conversation, or with `session`."""
    record = context.record
    takes = fits_argv(prompt)
    again = ["--session", session] if session else []
    given = options(record.argv, VALUED, CHOOSING) if session else record.argv
    if record.headless:
        # It would add quotes to a word with blanks.
        words = ["run", *given, *again, *(["--", *prompt.split(" ")] if takes else [])]
    else:
        words = [*given, *again, *([f"--prompt={prompt}"] if takes else [])]
    kept = note(record.launch, "Prompt", prompt=prompt) if takes else {}
    return Launch(argv=("opencode", *words), files=kept, took_prompt=takes)
