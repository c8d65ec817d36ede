"""Read Codex's conversation files (rollouts): one JSON object per line.

An agent can write these files, so nothing here raises on torn or huge content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from mngr.agents import base
from mngr.agents.base import ToolCall, Turn
from mngr.agents.jsonl import meter, number, objects, one_line, table, text
from mngr.model.events import epoch
from mngr.model.struct import Json, Struct

SESSIONS = "codex/sessions/*/*/*/rollout-*.jsonl"
HISTORY = "codex/history.jsonl"
THREADS = "codex/threads"
"""The ids of the agent's own conversations, oldest first: other programs share its home."""

THREAD = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NAME = re.compile(rf"codex/sessions/.*/rollout-.*-({THREAD.pattern})\.jsonl", re.DOTALL)
RESET = re.compile(r"try again (?:at|in) ([^.]{1,60})")


class TurnState(Struct):
    """The state of the last turn of a rollout."""

    kind: str = ""
    """started, complete or aborted; empty if unknown."""
    epoch: float = 0.0
    error: str = ""
    error_kind: str = ""
    answered: str = ""
    """Time of the last tool result."""
    last: str = ""
    """Time of the last entry."""
    turn: str = ""
    """Its id."""
    reset: float = 0.0
    """When the exhausted limit of the plan will be reset."""


ENDS = {"task_started": "started", "task_complete": "complete", "turn_aborted": "aborted"}


def last_moment(tail: bytes, since: str) -> TurnState:
    """Return the state of the last turn, from entries that are not older than `since`."""
    found, reset = TurnState(), 0.0
    for entry in objects(tail):
        payload, when = table(entry.get("payload")), text(entry.get("timestamp"))
        type = text(payload.get("type"))
        if when < since:
            continue
        found = found.replace(last=when)
        if type == "token_count":
            reset = _reset(table(payload.get("rate_limits")))
        if type.endswith("_call_output"):
            found = found.replace(answered=when)
        if entry.get("type") == "event_msg" and type in ENDS:
            words, kind = _error(payload.get("error"))
            found = TurnState(
                kind=ENDS[type],
                epoch=epoch(when) or 0.0,
                error=words,
                error_kind=kind,
                reset=reset,
                last=when,
                turn=text(payload.get("turn_id")),
            )
    return found


def _reset(limits: dict[str, Json]) -> float:
    windows = [table(limits.get(name)) for name in ("primary", "secondary")]
    full = [each for each in windows if number(each.get("resets_at")) and _percent(each) >= 100]
    return float(max((number(each.get("resets_at")) for each in full), default=0))


def _percent(window: dict[str, Json]) -> float:
    used = window.get("used_percent")
    return used if isinstance(used, (int, float)) else 0.0


def _error(value: Json) -> tuple[str, str]:
    """Return the message, perhaps from the server's JSON, and Codex's word for its kind."""
    error = table(value)
    message = text(error.get("message"))
    for inner in objects(message.encode("utf-8", "replace")):
        message = text(table(inner.get("error")).get("message")) or message
    kind = error.get("codex_error_info")
    word = next(iter(kind), "") if isinstance(kind, dict) else text(kind)
    return one_line(message or word) if error else "", word or ("other" if error else "")


def reset_time(moment: TurnState, now: float) -> str:
    """Return when the quota is reset, in UTC if Codex knows it, else in the time of its host."""
    if moment.reset:
        return base.reset(moment.reset, now)
    found = RESET.search(moment.error)
    return f"resets {found[1]}" if found else ""


# its log


class Outage(Struct):
    """A server that does not answer, according to Codex's log."""

    error: str = ""
    began: float = 0.0
    until: float = 0.0
    """Time of the next attempt."""
    pause: float = 0.0


RETRY = re.compile(
    r"(\S+) +WARN .*: stream connection failed; waiting to retry "
    r"turn_id=(\S+) error=(.*) retry_delay=(\d{1,6})s"
)


def outage(log: bytes, moment: TurnState) -> Outage:
    """Return the outage in the current turn; an entry in the rollout ends an outage."""
    found = Outage()
    for at, turn, error, seconds in RETRY.findall(log.decode("utf-8", "replace")):
        if turn == moment.turn and at > moment.last:
            when, pause = epoch(at) or 0.0, float(seconds)
            began = found.began or when
            found = Outage(error=one_line(error), began=began, until=when + pause, pause=pause)
    return found


# conversations


def own(files: Mapping[str, bytes]) -> list[str]:
    """Return the rollouts of the agent's own conversations, in order."""
    by_id = {match[1]: path for path in sorted(files) if (match := NAME.fullmatch(path))}
    listed = files.get(THREADS, b"").decode("utf-8", "replace").split()
    known = [by_id[each] for each in dict.fromkeys(listed) if each in by_id]
    return known or list(by_id.values())[:1]


def transcript(files: Mapping[str, bytes]) -> list[Turn]:
    return [turn for path in own(files) for turn in turns(files[path])]


def turns(data: bytes) -> list[Turn]:
    """Return the entries of one rollout."""
    found: list[Turn] = []
    model = ""
    for entry in objects(data):
        payload, when = table(entry.get("payload")), text(entry.get("timestamp"))
        if entry.get("type") == "turn_context":
            model = text(payload.get("model")) or model
        elif entry.get("type") == "event_msg":
            said = _user(payload)
            if said is not None:
                found.append(said.replace(time=when))
        elif entry.get("type") == "response_item":
            said = _item(payload)
            if said is not None:
                by = model if said.type == "assistant_message" else ""
                found.append(said.replace(time=when, model=by))
    return found


def _user(payload: dict[str, Json]) -> Turn | None:
    """Return a message of a person, without what Codex adds before it goes to the model."""
    item = table(payload.get("item"))
    if payload.get("type") == "item_completed" and item.get("type") == "UserMessage":
        return Turn(type="user_message", text=_parts(item), id=text(item.get("id")))
    return None


def _item(payload: dict[str, Json]) -> Turn | None:
    kind, id = text(payload.get("type")), text(payload.get("call_id"))
    if kind == "message" and payload.get("role") == "assistant":
        return Turn(type="assistant_message", text=_parts(payload), id=text(payload.get("id")))
    if kind in ("function_call", "custom_tool_call", "local_shell_call"):
        given = payload.get("arguments") or payload.get("input") or payload.get("action")
        tool = ToolCall(id=id, name=text(payload.get("name")) or "shell", input=_decoded(given))
        return Turn(type="assistant_message", text="", id=text(payload.get("id")), tools=(tool,))
    if kind in ("function_call_output", "custom_tool_call_output"):
        output = payload.get("output")
        shown = text(output) or _parts({"content": output}) or _parts(table(output))
        return Turn(type="tool_result", text=shown, id=id)
    return None


def _parts(holder: dict[str, Json]) -> str:
    content = holder.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(text(table(part).get("text")) for part in parts)


def _decoded(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    try:
        decoded: Json = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return decoded


# Every conversation in the agent's home counts, even of a nested Codex, and each response once.
# Codex includes the tokens of the cache in its input tokens.
METER = meter(
    "codex/sessions",
    "rollout-*.jsonl",
    '"type":"(turn_context|token_usage_record)"',
    r"""
  {
    path = substr($0, 1, index($0, ".jsonl:"))
    if (path != last) { last = path; model = "unknown"; split("", seen) }
  }
  /"type":"turn_context"/ { if (word($0, "model") != "") model = word($0, "model"); next }
  {
    id = match($0, "\"response_id\":\"[^\"]*\"") ? substr($0, RSTART, RLENGTH) : NR
    if (id in seen) next
    seen[id] = 1
    read = count($0, "cached_input_tokens"); write = count($0, "cache_write_input_tokens")
    fresh = count($0, "input_tokens") - read - write
    add(owner " " model, fresh > 0 ? fresh : 0, count($0, "output_tokens"), read, write)
  }""",
)


# copies


def fork(data: bytes, old: str, new: str) -> bytes:
    """Return the conversation under another id, without its cost, which the original has paid."""
    paid = (b'"type":"token_usage_record"', b'"type":"token_count"')
    whole = data[: data.rfind(b"\n") + 1]  # the last line may be half written
    kept = [line for line in whole.split(b"\n") if not any(each in line[:300] for each in paid)]
    return b"\n".join(kept).replace(old.encode(), new.encode())
