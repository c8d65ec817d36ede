"""Find out from Claude's files whether it accepted a message.

Its history gets a line for every text submitted from the input box, including commands; its
transcript has the text once it is sent to the model; a busy client writes that it queued the text.
"""

from __future__ import annotations

from collections.abc import Mapping

from mngr.agents.base import Delivery, Receipt
from mngr.agents.claude import log, state
from mngr.agents.jsonl import objects, one_line, text

FOLDED = "[Pasted text #"
"""A long text is shown like this in the input box and in the history."""
UNKNOWN = ("Unknown command", "Unknown skill", "Unknown slash command")
SUBMIT = "UserPromptSubmit"
LOOKS = 170
"""A minute, because a message that is reported as failed will be sent again."""
ENTER = (12, 24, 40, 60, 90, 130)
"""Looks at which Enter is pressed again: after a large paste the first one may be lost."""
SETTLE = 30
"""Looks that an idle program has between submitting a text and writing it to the transcript."""


def receipt(delivery: Delivery) -> Receipt:
    """Return a receipt once the files show what happened to the message."""
    sent = -1
    for look in range(LOOKS):
        new = fresh(delivery.told, delivery.conversation())
        found = seen(delivery.text, new) or _hooked(delivery)
        if found in ("delivered", "refused"):
            return _told(found, new)
        if found == "sent":
            sent = look if sent < 0 else sent
            if state.status(delivery.before).word == "busy":
                delivery.pause(0.1)
                return Receipt(outcome="queued", detail="the agent is busy and will read it later")
            if look - sent >= SETTLE:
                return Receipt(outcome="delivered")  # a command that leaves no other trace
        elif look in ENTER and not _asks(delivery):
            delivery.press_enter()
        if look % 10 == 9 and delivery.ended():
            return Receipt(outcome="failed", detail="the agent ended before it read the message")
        delivery.pause(0.05 if look < 20 else 0.2 if look < 70 else 0.5)
    return Receipt(outcome="failed", detail="typed, but the program has not read it yet")


def _hooked(delivery: Delivery) -> str:
    """Return `sent` if the hook reported the text: the files may be too large to read."""
    before = delivery.before.this_signals.get(SUBMIT)
    now = delivery.look().this_signals.get(SUBMIT)
    new = now is not None and (before is None or now.time > before.time)
    if now is None or not new or _plain(text(now.input.get("prompt"))) != _plain(delivery.text):
        return ""
    return "sent"


def _asks(delivery: Delivery) -> bool:
    """Return whether the program asks something, which Enter would answer."""
    return state.status(delivery.look()).word == "waiting"


def fresh(told: Mapping[str, bytes], now: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return what was added to each file; these files only grow."""
    added = {}
    for path, data in now.items():
        before = told.get(path, b"")
        if data != before:
            added[path] = data[len(before) :] if data.startswith(before) else data
    return added


def seen(words: str, new: Mapping[str, bytes]) -> str:
    """Return `delivered`, `sent`, `refused`, or "" if there is no trace of the text."""
    wanted, sent = _plain(words), ""
    for path, data in new.items():
        if path == log.HISTORY:
            shown = [text(entry.get("display")) for entry in objects(data)]
            if any(_plain(each) == wanted or FOLDED in each for each in shown):
                sent = "sent"
        elif path.startswith(log.PROJECTS):
            for entry in objects(data):
                if _plain(log.prompt(entry)) == wanted:
                    return "delivered"
                if text(entry.get("content")).startswith(UNKNOWN) and words.startswith("/"):
                    return "refused"
                if _plain(text(entry.get("content"))) == wanted:
                    sent = "sent"
    return sent


def _plain(words: str) -> str:
    """Return the text with single spaces, since the input box changes tabs and trailing spaces."""
    return " ".join(words.split())


def _told(found: str, new: Mapping[str, bytes]) -> Receipt:
    if found == "delivered":
        return Receipt(outcome="delivered")
    notices = [text(entry.get("content")) for data in new.values() for entry in objects(data)]
    notice = next((each for each in notices if each.startswith(UNKNOWN)), "")
    return Receipt(outcome="failed", detail=one_line(notice))
