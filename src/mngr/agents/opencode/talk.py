"""Read what mngr's plugin wrote about OpenCode's conversations: one JSON object per line.

An agent can write this file, so nothing here raises on torn or huge content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from mngr.agents.base import ToolCall, Turn
from mngr.agents.jsonl import iso, meter, number, objects, table, text
from mngr.model.struct import Json, Struct

FILE = "opencode/talk.jsonl"
SESSION = re.compile(r"ses_[A-Za-z0-9]{1,100}")


class TalkState(Struct):
    """The last reported state of the agent's own conversation."""

    word: str = ""
    """ready, busy, retry, idle, error, interrupted, permission."""
    text: str = ""
    time: float = 0.0
    attempt: int = 0
    next: float = 0.0
    """Time of the next attempt."""
    failing: float = 0.0
    """Time of the first of the attempts that have failed in a row."""
    tried: float = 0.0
    """Time of the current attempt, which has not failed yet."""
    prompted: float = 0.0
    """Time of the last prompt since then."""


def seconds(value: Json) -> float:
    """Return a time, or 0.0 for anything else."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if plain and 0 <= value < 1 << 40 else 0.0  # type: ignore[operator, arg-type]


def last_moment(tail: bytes, since: float) -> TalkState:
    """Return the last state, from entries that are not older than `since`."""
    found = TalkState()
    for entry in objects(tail):
        at, value = seconds(entry.get("time")), table(entry.get("value"))
        if at < since:
            continue
        if entry.get("kind") == "state":
            found = _then(found, entry, at)
        elif value.get("type") == "step-start" and found.tried:
            found = TalkState(word="busy", time=at)  # it is being answered
        elif value.get("role") == "user" and not entry.get("child"):
            created = number(table(value.get("time")).get("created")) / 1000
            found = found.replace(prompted=at) if created > found.time else found
    return found


def _then(before: TalkState, entry: dict[str, Json], at: float) -> TalkState:
    word = text(entry.get("state"))
    if before.word == "retry" and word == "busy":
        return before.replace(tried=at)
    return TalkState(
        word=word,
        text=" ".join(text(entry.get("text")).split()),
        time=at,
        attempt=number(entry.get("attempt")),
        next=seconds(entry.get("next")),
        failing=(before.failing or at) if word == "retry" else 0.0,
    )


def last_session(data: bytes) -> str:
    """Return the newest conversation of the agent itself, not of a subagent."""
    found = ""
    for entry in objects(data):
        session = text(entry.get("session"))
        if session and not entry.get("child"):
            found = session
    return found if SESSION.fullmatch(found) else ""


class Message(Struct):
    """One message, as far as it has been reported."""

    info: dict[str, Json] = {}
    parts: dict[str, dict[str, Json]] = {}
    time: float = 0.0


def messages(data: bytes) -> dict[str, Message]:
    """Return the messages by id, in order; a later report replaces an earlier one."""
    found: dict[str, Message] = {}
    for entry in objects(data):
        value, child = table(entry.get("value")), entry.get("child")
        kind = entry.get("kind")
        if child or kind not in ("message", "part"):
            continue
        id = text(value.get("id" if kind == "message" else "messageID"))
        known = found.get(id) or Message(time=seconds(entry.get("time")))
        if kind == "message":
            found[id] = known.replace(info=value)
        else:
            found[id] = known.replace(parts={**known.parts, text(value.get("id")): value})
    return found


def transcript(files: Mapping[str, bytes]) -> list[Turn]:
    return [turn for each in messages(files.get(FILE, b"")).values() for turn in _turns(each)]


def _turns(message: Message) -> list[Turn]:
    role, id = text(message.info.get("role")), text(message.info.get("id"))
    when = iso(message.time)
    if role == "user":
        said = [
            text(part.get("text"))
            for part in message.parts.values()
            if part.get("type") == "text" and not part.get("synthetic")
        ]
        return [Turn(type="user_message", text="\n".join(said), time=when, id=id)] if said else []
    model = text(message.info.get("modelID"))
    if role != "assistant":
        return []
    return [turn for part in message.parts.values() for turn in _said(part, id, when, model)]


def _said(part: dict[str, Json], id: str, when: str, model: str) -> list[Turn]:
    if part.get("type") == "text" and text(part.get("text")):
        words = text(part.get("text"))
        return [Turn(type="assistant_message", text=words, time=when, id=id, model=model)]
    if part.get("type") != "tool":
        return []
    state, call = table(part.get("state")), text(part.get("callID"))
    tool = ToolCall(id=call, name=text(part.get("tool")), input=state.get("input"))
    result = text(state.get("output")) or text(state.get("error"))
    return [
        Turn(type="assistant_message", text="", time=when, id=id, model=model, tools=(tool,)),
        Turn(type="tool_result", text=result, time=when, id=call),
    ]


def heard(files: Mapping[str, bytes], words: str) -> list[bool]:
    """Return, for each message with this text, whether the answer has begun."""
    known = messages(files.get(FILE, b""))
    answered = {text(each.info.get("parentID")) for each in known.values()}
    return [
        id in answered
        for id, each in known.items()
        if any(turn.text.strip() == words.strip() for turn in _turns(each) if not turn.model)
        and each.info.get("role") == "user"
    ]


# Of several reports about an answer, the last one counts.
METER = meter(
    FILE,
    "*",
    '^[{]"kind":"spent"',
    r"""
  {
    id = owner " " word($0, "id"); model = word($0, "model")
    of[id] = owner " " (model == "" ? "unknown" : model)
    i[id] = count($0, "input"); o[id] = count($0, "output")
    r[id] = count($0, "cache_read"); w[id] = count($0, "cache_write")
  }
  END { for (id in of) add(of[id], i[id], o[id], r[id], w[id]) }""",
)


# copies


def forked(data: bytes) -> bytes:
    """Return the messages without their cost and the states."""
    kept = [entry for entry in objects(data) if entry.get("kind") in ("session", "message", "part")]
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in kept)


def export(data: bytes, session: str) -> bytes:
    """Return the conversation in the format of `opencode import`."""
    info: dict[str, Json] = {}
    for entry in objects(data):
        value = table(entry.get("value"))
        if entry.get("kind") == "session" and value.get("id") == session:
            info = value
    if not info:
        return b""
    said: list[Json] = [
        {"info": each.info, "parts": list(each.parts.values())}
        for each in messages(data).values()
        if each.info.get("sessionID") == session
    ]
    return json.dumps({"info": info, "messages": said}).encode()
