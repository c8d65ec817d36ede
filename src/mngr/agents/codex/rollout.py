"""What Codex writes down of a conversation: one JSON object per line.

Everything here gets bytes that an agent could have written, torn or huge, and never raises.
"""

from __future__ import annotations

import json
import re

from mngr.agents import waits
from mngr.agents.base import Tokens, ToolCall, Turn
from mngr.agents.jsonl import number, objects, one_line, table, text
from mngr.model.struct import Json, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SESSIONS = "codex/sessions/*/*/*/rollout-*.jsonl"
HISTORY = "codex/history.jsonl"
THREADS = "codex/threads"
"""The ids of the agent's own conversations, oldest first: programs it starts share its home."""

THREAD = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NAME = re.compile(rf"codex/sessions/.*/rollout-.*-({THREAD.pattern})\.jsonl", re.DOTALL)
RESET = re.compile(r"try again (?:at|in) ([^.]{1,60})")


class Moment(Struct):
    """The last thing a rollout says about its turn."""

    kind: str = ""
    """started, complete, aborted; empty where none of them is in sight."""
    epoch: float = 0.0
    error: str = ""
    error_kind: str = ""
    answered: str = ""
    """When the last tool gave its result."""
    last: str = ""
    """When anything was written down."""
    turn: str = ""
    """Its id."""
    reset: float = 0.0
    """When the plan's limit that is used up will be reset."""


def epoch(iso: str) -> float:
    from datetime import datetime  # 2 ms: only where there is something to tell

    try:
        return datetime.fromisoformat(iso).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


ENDS = {"task_started": "started", "task_complete": "complete", "turn_aborted": "aborted"}


def last_moment(tail: bytes, since: str) -> Moment:
    """Where the turn stands by the end of a rollout; what is older than `since` is left out."""
    found, reset = Moment(), 0.0
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
            found = Moment(
                kind=ENDS[type],
                epoch=epoch(when),
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
    """The message, which may be the server's whole answer, and Codex's word for its kind."""
    error = table(value)
    message = text(error.get("message"))
    for inner in objects(message.encode("utf-8", "replace")):
        message = text(table(inner.get("error")).get("message")) or message
    kind = error.get("codex_error_info")
    word = next(iter(kind), "") if isinstance(kind, dict) else text(kind)
    return one_line(message or word) if error else "", word or ("other" if error else "")


def reset_time(moment: Moment, now: float) -> str:
    """In UTC where Codex was told the time; else as it tells it, in the time of its host."""
    if moment.reset:
        return waits.reset(moment.reset, now)
    found = RESET.search(moment.error)
    return f"resets {found[1]}" if found else ""


# its log


class Outage(Struct):
    """A server that does not answer, by the last of what Codex wrote into its log."""

    error: str = ""
    began: float = 0.0
    until: float = 0.0
    """When it will try again."""
    pause: float = 0.0


RETRY = re.compile(
    r"(\S+) +WARN .*: stream connection failed; waiting to retry "
    r"turn_id=(\S+) error=(.*) retry_delay=(\d{1,6})s"
)


def outage(log: bytes, moment: Moment) -> Outage:
    """In the turn that goes on; what is older than something that was written down is over."""
    found = Outage()
    for at, turn, error, seconds in RETRY.findall(log.decode("utf-8", "replace")):
        if turn == moment.turn and at > moment.last:
            when, pause = epoch(at), float(seconds)
            began = found.began or when
            found = Outage(error=one_line(error), began=began, until=when + pause, pause=pause)
    return found


# conversations


def own(files: Mapping[str, bytes]) -> list[str]:
    """The rollouts of the agent's own conversations, in their order."""
    by_id = {match[1]: path for path in sorted(files) if (match := NAME.fullmatch(path))}
    listed = files.get(THREADS, b"").decode("utf-8", "replace").split()
    known = [by_id[each] for each in dict.fromkeys(listed) if each in by_id]
    return known or list(by_id.values())[:1]


def transcript(files: Mapping[str, bytes]) -> list[Turn]:
    return [turn for path in own(files) for turn in turns(files[path])]


def turns(data: bytes) -> list[Turn]:
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
    """What a person said. The messages sent to the model also hold what Codex adds to them."""
    item = table(payload.get("item"))
    if payload.get("type") == "item_completed" and item.get("type") == "UserMessage":
        return Turn(type="user_message", text=_parts(item), id=text(item.get("id")))
    if payload.get("type") == "user_message":  # until version 0.150 or so
        return Turn(type="user_message", text=text(payload.get("message")))
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


# tokens


def usage(files: Mapping[str, bytes]) -> dict[str, Tokens]:
    """Of every conversation in its home: who pays does not mind which program asked."""
    total: dict[str, Tokens] = {}
    for path, data in files.items():
        if NAME.fullmatch(path):
            for model, tokens in _spent(data).items():
                total[model] = total.get(model, Tokens()) + tokens
    return total


def _spent(data: bytes) -> dict[str, Tokens]:
    """Each response once; a version that does not list them counts up, and the last count holds."""
    spent: dict[str, Tokens] = {}
    counted: dict[str, Tokens] = {}
    seen: set[str] = set()
    model = "unknown"
    for entry in objects(data):
        payload = table(entry.get("payload"))
        if entry.get("type") == "turn_context":
            model = text(payload.get("model")) or model
        elif entry.get("type") == "token_usage_record":
            response = text(payload.get("response_id"))
            if not response or response not in seen:
                spent[model] = spent.get(model, Tokens()) + tokens(payload.get("usage"))
                seen.add(response)
        elif payload.get("type") == "token_count":
            sum = table(payload.get("info")).get("total_token_usage")
            counted = {model: tokens(sum)} if sum else counted
    return spent or counted


def tokens(value: Json) -> Tokens:
    """Codex counts what came from or went to the cache as input, too."""
    usage = table(value)
    read = number(usage.get("cached_input_tokens"))
    write = number(usage.get("cache_write_input_tokens"))
    return Tokens(
        input=max(0, number(usage.get("input_tokens")) - read - write),
        output=number(usage.get("output_tokens")),
        cache_read=read,
        cache_write=write,
    )


# copies


def fork(data: bytes, old: str, new: str) -> bytes:
    """The same conversation under another id; what it has cost so far stays with the original."""
    paid = (b'"type":"token_usage_record"', b'"type":"token_count"')
    whole = data[: data.rfind(b"\n") + 1]  # the last line may be half written
    kept = [line for line in whole.split(b"\n") if not any(each in line[:300] for each in paid)]
    return b"\n".join(kept).replace(old.encode(), new.encode())
