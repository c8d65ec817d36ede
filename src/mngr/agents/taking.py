"""Whether a program has taken a message, for those that write it down once it has.

A program that is busy, or slow to draw, takes its time: one look decides nothing.
"""

from __future__ import annotations

from mngr.agents.base import Receipt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.agents.base import Delivery

LOOKS = 150
"""Most of a minute: who is told that a message failed will send it again."""
LATER = 10
"""Looks after which one that is kept is not about to be read at once."""
COMMAND = 20
"""Looks after which a command of the program's own can be said to leave no trace."""
STEP = 30
"""Looks between two at whether it lives, and whether Enter was lost."""


def receipt(
    delivery: Delivery, program: str, seen: Callable[[], str], at_rest: Callable[[], bool]
) -> Receipt:
    """`seen` says what has become of it: read, kept for later, or nothing."""
    pressed = False
    for look in range(LOOKS):
        found = seen()
        if found == "read":
            return Receipt(outcome="delivered")
        if found and look > LATER:
            return Receipt(outcome="queued", detail="the agent is busy and reads it next")
        if delivery.text.startswith("/") and look > COMMAND:
            return Receipt(outcome="typed", detail=f"a command of {program} leaves no trace")
        if look % STEP == STEP - 1 and not found:
            if delivery.ended():
                return Receipt(
                    outcome="failed", detail="the agent ended before it read the message"
                )
            # Only at rest: while it works a question may come up that Enter would answer.
            if not pressed and at_rest():
                delivery.press_enter()
                pressed = True
        delivery.pause(0.1 if look < 50 else 0.5)
    return Receipt(outcome="failed", detail=f"{program} does not show whether it read the message")
