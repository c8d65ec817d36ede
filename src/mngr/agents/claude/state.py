"""Find out what a Claude agent is doing.

The program has a status file for each of its processes: busy, idle or waiting. Its hooks report
what it asks and how a turn ended. No hook runs when the user interrupts a turn, but the transcript
shows it. If a version has no status file, hooks and transcript decide alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mngr.agents.base import reset
from mngr.agents.claude import log
from mngr.agents.jsonl import iso, number, objects, one_line, rows, table, text
from mngr.model.state import FAR, STARTING, Evidence, Signal, Signals
from mngr.model.struct import Json, Struct

TURN = ("UserPromptSubmit", "Stop")
EVENTS = ("SessionStart", "StopFailure", *TURN)
TOOL = "PermissionRequest"
CLOCK = re.compile(r"(\d\d?)(?::(\d\d))?([ap])m")
RESET = re.compile(rf"resets ((?:.{{0,20}}?{CLOCK.pattern}|[A-Z][a-z]{{2,8}}\b)[^·]{{0,40}})")
"""As shown to people: `7pm (UTC)`, `Sep 15 at 7pm`, `Oct 14`. The transcript has it as a number,
but is written a moment later."""
SLACK = 2.0
"""Seconds by which the times of a file and of the hook for the same event may differ."""
BEGIN = 30.0
"""Seconds that an idle program may take, on a slow machine, to begin with a prompt."""

SILENT = 5.0
"""The same for a version without status files."""
WRITTEN = 5.0
"""Seconds after the end of a turn until which the transcript may lack its answer."""


class Status(Struct):
    """The program's own status: busy, idle, shell or waiting; empty before the first one."""

    word: str = ""
    waits_for: str = ""
    since: float = 0.0


class Ending(Struct):
    """The last entry of a transcript."""

    kind: str = ""
    """asked, called, answered, command, interrupted, error or quota."""
    detail: str = ""
    time: str = ""


def read(evidence: Evidence) -> Signals:
    """Return the signals by status file, hooks and transcript."""
    said = evidence.this_signals
    if "SessionStart" not in said:
        return Signals(working=STARTING, since=_launched(evidence))
    now = status(evidence)
    if now.word == "waiting":
        return Signals(waiting="permission", detail=question(evidence, now), since=now.since)
    if now.word == "busy":
        return Signals(working="working", since=now.since)
    if now.word:
        return _at_rest(evidence, now.since)
    return _without_status(evidence, said)


def status(evidence: Evidence) -> Status:
    """Return the status; empty if the file is from an earlier launch."""
    told = next(objects(evidence.status), {})
    started = evidence.this_started
    if started is None or number(told.get("startedAt")) / 1000 < started.time - SLACK:
        return Status()
    return Status(
        word=text(told.get("status")),
        waits_for=text(told.get("waitingFor")),
        since=min(number(told.get("statusUpdatedAt")) / 1000, FAR),
    )


def has_input_box(evidence: Evidence) -> bool:
    """Return whether typed text becomes a prompt.

    A resumed program reports SessionStart about a second before it draws its input box and becomes
    idle, longer on a busy machine. Text that is typed in between, or its Enter, may be lost.
    """
    begun = evidence.this_signals.get("SessionStart")
    if begun is None or status(evidence).word:
        return begun is not None
    return evidence.now - begun.time > (BEGIN if evidence.status else SILENT)


def _launched(evidence: Evidence) -> float:
    return evidence.this_started.time if evidence.this_started else 0.0


def newest(said: dict[str, Signal], *events: str) -> Signal | None:
    """Return the newest signal of these events."""
    found = [signal for event, signal in said.items() if event in events]
    return max(found, key=lambda signal: signal.time) if found else None


def _at_rest(evidence: Evidence, since: float) -> Signals:
    """Return why the program is idle."""
    end, last = ending(evidence.tail, evidence.now), newest(evidence.this_signals, *EVENTS)
    # A turn has begun or ended since, and the transcript does not have it yet.
    late = last is not None and last.event in TURN and end.time < iso(last.time)
    if end.kind in ("interrupted", "error", "quota") and not late:
        return Signals(waiting=end.kind, detail=end.detail, since=since)
    if last is not None and last.event == "StopFailure":
        kind, detail = failure(last.input, evidence.now)
        return Signals(waiting=kind, detail=detail, since=since)
    if last is not None and _unwritten(evidence, last, end):
        return Signals(working="working", since=last.time)
    if last is not None and _about_to_begin(evidence, last, end, since):
        return Signals(working="working", since=last.time)
    # There was a prompt, its turn has not ended, and yet the program is idle.
    dropped = last is not None and last.event == "UserPromptSubmit"
    killed = last is not None and last.event == "SessionStart" and end.kind in ("asked", "called")
    reason = "interrupted" if dropped or killed else "end_of_turn"
    return Signals(waiting=reason, since=since)


def _unwritten(evidence: Evidence, last: Signal, end: Ending) -> bool:
    """Return whether the answer of the turn that has just ended is not in the transcript yet.

    Otherwise a script that waits and then reads the last reply would get the one before.
    """
    if last.event != "Stop" or not end.kind or evidence.now - last.time > WRITTEN:
        return False
    prompt = evidence.this_signals.get("UserPromptSubmit")
    return end.kind in ("asked", "called") or (prompt is not None and end.time < iso(prompt.time))


def _about_to_begin(evidence: Evidence, last: Signal, end: Ending, since: float) -> bool:
    """Return whether the program has a prompt and is still idle because it has not begun."""
    if evidence.now - max(since, last.time) > BEGIN:
        return False  # the prompt was withdrawn, or required no turn
    said, launched = evidence.this_signals, iso(_launched(evidence))
    if last.event == "UserPromptSubmit":
        return since < last.time
    first = last.event == "SessionStart" and not any(each in said for each in TURN)
    return (first and _prompted(said) and end.time < launched) or _queued(evidence.tail, launched)


QUEUE = b'"queue-operation"'


def _queued(tail: bytes, launched: str) -> bool:
    """Return whether the last queued message has not been begun yet."""
    if QUEUE not in tail:  # the usual case; `list` checks every agent
        return False
    for entry in _backwards(tail, QUEUE):
        if entry.get("type") == "queue-operation":
            kept = entry.get("operation") in ("enqueue", "dequeue")
            return kept and text(entry.get("timestamp")) >= launched
        if entry.get("type") == "user" and log.prompt(entry):
            return False
    return False


def unread(evidence: Evidence) -> tuple[str, ...]:
    """Return the messages of this launch that are queued; they are lost when the program ends."""
    if QUEUE not in evidence.tail:
        return ()
    queue: list[str] = []
    for entry in objects(evidence.tail, QUEUE):
        act, words = entry.get("operation"), text(entry.get("content"))
        if text(entry.get("timestamp")) < iso(_launched(evidence)):
            continue
        if act == "enqueue":
            queue.append(words)
        elif act == "popAll":
            queue.clear()
        elif queue:
            queue.remove(words if words in queue else queue[0])
    return tuple(one_line(each, 80) for each in queue if not each.startswith(log.NOT_SAID))


def _prompted(said: dict[str, Signal]) -> bool:
    """Return whether it was launched with a prompt."""
    return "Launch" in said and bool(said["Launch"].input.get("prompted"))


def _without_status(evidence: Evidence, said: dict[str, Signal]) -> Signals:
    """Return the signals by hooks and transcript alone."""
    last = newest(said, *EVENTS)
    assert last is not None, "SessionStart is there"
    end, asked = ending(evidence.tail, evidence.now), _asked(said, last.time)
    later = end.time > iso(last.time)
    if asked is not None and not (end.kind and end.time > iso(asked.time)):
        return Signals(waiting="permission", detail=describe(asked.input), since=asked.time)
    if end.kind == "interrupted" and (later or last.event != "UserPromptSubmit"):
        return Signals(waiting="interrupted", since=last.time)
    prompted = last.event == "SessionStart" and _prompted(said)
    begun = last.event == "UserPromptSubmit" or prompted
    # A queued message begins a turn, for which no hook runs.
    if begun or (later and end.kind in ("asked", "called")):
        return Signals(working="working", since=last.time)
    return _at_rest(evidence, last.time)


def _asked(said: dict[str, Signal], since: float) -> Signal | None:
    asked = newest(said, TOOL)
    return asked if asked is not None and asked.time >= since else None


def ending(tail: bytes, now: float) -> Ending:
    """Return the last entry of the transcript that shows the state of the turn."""
    for entry in _backwards(tail):
        if not entry.get("isSidechain") and not entry.get("isMeta"):
            kind, detail = _kind(entry, now)
            if kind:
                return Ending(kind=kind, detail=detail, time=text(entry.get("timestamp")))
    return Ending()


def _backwards(tail: bytes, *more: bytes) -> Iterator[dict[str, Json]]:
    """Yield the entries, last first, parsed only when needed: `list` does this for every agent."""
    return objects(b"\n".join(reversed(tail.split(b"\n"))), *log.TALK, *more)


def _kind(entry: dict[str, Json], now: float) -> tuple[str, str]:
    content = table(entry.get("message")).get("content")
    if entry.get("type") == "assistant":
        if entry.get("isApiErrorMessage"):
            return failure(entry, now)
        called = any(block.get("type") == "tool_use" for block in rows(content))
        return ("called" if called else "answered"), ""
    if log.said(content).startswith(log.INTERRUPTED):
        return "interrupted", ""
    spoken = log.prompt(entry)
    if spoken:
        return ("command" if spoken.startswith("/") else "asked"), ""
    answered = any(block.get("type") == "tool_result" for block in rows(content))
    return ("called" if answered else ""), ""


def failure(told: dict[str, Json], now: float) -> tuple[str, str]:
    """Return `quota` or `error` and its detail, from the transcript or the StopFailure hook."""
    message = table(told.get("message")).get("content", told.get("last_assistant_message"))
    words = one_line(log.said(message)) or text(told.get("error")) or "unknown"
    resets_at = number(table(told.get("quotaLimits")).get("resetsAt"))
    if resets_at:
        return "quota", reset(resets_at, now)
    at = RESET.search(words) if told.get("error") == "rate_limit" else None
    if at is not None:
        return "quota", f"resets {CLOCK.sub(_of_24_hours, at[1]).strip()}"
    return ("quota" if told.get("error") == "billing_error" else "error"), words


def _of_24_hours(clock: re.Match[str]) -> str:
    hour = int(clock[1]) % 12 + 12 * (clock[3] == "p")
    return f"{hour:02d}:{clock[2] or '00'}"


def question(evidence: Evidence, now: Status) -> str:
    """Return the question, from a hook, or else from the tool call that has no result."""
    asked = request(evidence, now)
    if asked is not None:
        return describe(asked.input)
    note = newest(evidence.this_signals, "Notification")
    told = text(note.input.get("message")) if note and note.time >= now.since - SLACK else ""
    call = _open_call(evidence.tail) if now.waits_for == "permission prompt" else {}
    return describe(call) if call else one_line(told or now.waits_for or "a dialog is open")


def request(evidence: Evidence, now: Status) -> Signal | None:
    """Return the open permission request of a tool; None for other questions."""
    return _asked(evidence.this_signals, now.since - SLACK)


def _open_call(tail: bytes) -> dict[str, Json]:
    """Return the last tool call without a result, in the format of a hook's input."""
    answered = set()
    for entry in _backwards(tail):
        for block in reversed(rows(table(entry.get("message")).get("content"))):
            answered.add(text(block.get("tool_use_id")))
            if block.get("type") == "tool_use" and text(block.get("id")) not in answered:
                return {"tool_name": block.get("name"), "tool_input": block.get("input")}
    return {}


def describe(asked: dict[str, Json]) -> str:
    """Return one line with the tool and its most important argument."""
    name, given = text(asked.get("tool_name")), table(asked.get("tool_input"))
    questions = rows(given.get("questions"))
    if questions:
        return one_line("; ".join(_choices(each) for each in questions))
    words = [text(given.get(key)) for key in ("command", "file_path", "notebook_path", "url")]
    words += [text(value) for value in given.values()]
    return one_line(": ".join([name or "a tool", *[word for word in words if word][:1]]))


def _choices(asked: dict[str, Json]) -> str:
    labels = [text(option.get("label")) for option in rows(asked.get("options"))]
    return f"{text(asked.get('question'))} ({', '.join(labels)})"
