"""The command and the files that start Claude, and the conversation it continues."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence

from mngr.agents import hooks
from mngr.agents.base import Launch, LaunchContext, fits_argv
from mngr.agents.claude import home, log
from mngr.agents.jsonl import table, text
from mngr.model.records import AgentRecord
from mngr.model.state import Evidence
from mngr.model.struct import Json

HOPS = 3
"""From hook.sh to the program, perhaps a wrapper, and the launcher. A Claude that the agent starts
also has the agent's own Claude and a shell in between."""

# Links to the program's files about this process and this conversation.
LINKS = r"""case $1 in SessionStart)
  path=${input#*\"transcript_path\":\"} path=${path%%\"*} path=${path##*/projects/}
  case $path in
    *[!A-Za-z0-9/._-]* | */*/* | *..*) ;;
    */*.jsonl) ln -sf "claude/projects/$path" "$dir/transcript" ;;
  esac
  ln -sf "claude/sessions/$PPID.json" "$dir/status" ;;
esac"""

WITH_PROMPT = 'exec "$@" -- "$(cat "$0")"'
"""For a launch that repeats the first prompt, which only the host has."""

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
CHOICES = {"--session-id": 1, "--resume": 1, "-r": 1, "--continue": 0, "-c": 0, "--fork-session": 0}
"""Options that choose the conversation, and how many words may follow each."""


def first(context: LaunchContext) -> Launch:
    """Return the first launch: a new conversation, or a fork of the original's for a clone."""
    record, parent = context.record, newest_session(context.parent)
    prompt = _prompt_words(record, context.prompt)
    kept: dict[str, Json] = {"session_id": session_of(record.id)}
    kept |= {"prompt": bool(prompt), "forks": bool(parent)}
    files = {**home.files(context), **_every_launch(context, kept, bool(prompt))}
    if parent:
        files[log.PARENT] = (parent, 0o600)
    if prompt:
        files["prompt.txt"] = (os.fsencode(prompt[-1]), 0o600)
    words = _beginning(context, bool(parent))
    if any(word.partition("=")[0] in CHOICES for word in record.argv):
        words = []  # the user's own choice
    return Launch(
        argv=(*program(record), *words, *record.argv, *prompt),
        env=home.environment(context),
        files=files,
        took_prompt=bool(prompt),
    )


def again(context: LaunchContext) -> Launch:
    """Return a later launch: the same options, and the last conversation (`/clear` begins one)."""
    record, tail = context.record, context.evidence.tail if context.evidence else b""
    own, kept = session_of(record.id), hooks.noted(context.evidence, "Launch")
    session = _last_session(context.evidence) or own
    # The tail of a long conversation may be one line whose beginning is missing.
    begun = b'"type":"user"' in tail or len(tail) > 8192
    prompt = bool(kept.get("prompt")) and (record.headless or not begun)
    words = ["--resume", session]
    if not begun:
        # The program refuses an id whose file exists, even if the conversation is empty.
        fresh = session == own and not tail
        id = own if fresh else session_of(os.urandom(16).hex())
        words = _beginning(context, bool(kept.get("forks")), id)
    argv = (*program(record), *words, *without_choices(record.argv))
    if prompt:
        argv = ("sh", "-c", WITH_PROMPT, os.path.join(context.state_dir, "prompt.txt"), *argv)
    return Launch(argv=argv, files=_every_launch(context, kept, prompt))


def _beginning(context: LaunchContext, forks: bool, session: str = "") -> list[str]:
    words = ["--session-id", session or session_of(context.record.id)]
    parent = os.path.join(context.state_dir, log.PARENT)
    return ["--resume", parent, "--fork-session", *words] if forks else words


def program(record: AgentRecord) -> tuple[str, ...]:
    """Return the command; without a terminal, the one that prints its answer and exits."""
    asked = any(word in ("-p", "--print") for word in record.argv)
    return ("claude", "-p") if record.headless and not asked else ("claude",)


def session_of(agent_id: str) -> str:
    """Return the id of the first conversation: the agent's id in the form of a random UUID."""
    bits = agent_id[-32:]
    bits = f"{bits[:12]}4{bits[13:16]}8{bits[17:]}"
    return "-".join([bits[:8], bits[8:12], bits[12:16], bits[16:20], bits[20:]])


def _prompt_words(record: AgentRecord, prompt: str) -> tuple[str, ...]:
    """Return the prompt after `--`; a single word gets a space, or it could be a subcommand."""
    if not fits_argv(prompt) or "--" in record.argv:
        return ()
    return ("--", f"{prompt} " if re.fullmatch("[a-z][a-z-]{0,30}", prompt) else prompt)


def without_choices(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the words without the options that choose a conversation."""
    kept, skip = [], 0
    for word in argv:
        name, equals, _ = word.partition("=")
        if skip and not word.startswith("-"):
            skip -= 1
        elif name in CHOICES:
            skip = 0 if equals else CHOICES[name]
        else:
            skip = 0
            kept.append(word)
    return tuple(kept)


def _every_launch(
    context: LaunchContext, kept: dict[str, Json], prompted: bool
) -> dict[str, tuple[bytes, int]]:
    """Return the hook, and a signal with `kept`, which later launches require."""
    record, input = context.record, {**kept, "prompted": prompted}
    signal: dict[str, Json] = {"launch": record.launch, "time": record.launch_time, "input": input}
    hook = hooks.script(context.state_dir, hops=HOPS, more=LINKS)
    return {
        home.HOOK: (hook, 0o700),
        log.LAUNCH: (json.dumps(signal).encode() + b"\n", 0o600),
    }


def _last_session(evidence: Evidence | None) -> str:
    """Return the conversation that the newest signal names, or ""."""
    found = []
    for event, signal in evidence.signals.items() if evidence else ():
        time = table(signal).get("time")
        session = text(table(table(signal).get("input")).get("session_id"))
        # The agent can write this file, and the session becomes a word of a command.
        if event != "Launch" and isinstance(time, (int, float)) and UUID.fullmatch(session):
            found.append((time, session))
    return max(found)[1] if found else ""


def newest_session(files: Mapping[str, bytes]) -> bytes:
    """Return the original's last conversation, which a clone continues.

    If the original is itself a clone that has no conversation yet, return its parent's.
    """
    own = log.own(files)
    return own[-1] if own else files.get(log.PARENT, b"")
