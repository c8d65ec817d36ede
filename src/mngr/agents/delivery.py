"""Confirm the delivery of a message for programs that write down each message they read."""

from __future__ import annotations

from collections.abc import Callable

from mngr.agents.base import Delivery, Receipt

LOOKS = 150
"""Most of a minute, because a message that is reported as failed will be sent again."""
LATER = 10
"""Looks after which a message that is kept counts as queued."""
COMMAND = 20
"""Looks after which a command of the program, such as /clear, is assumed to leave no trace."""
STEP = 30
"""Looks between two checks of whether the agent has ended or Enter was lost."""


def receipt(
    delivery: Delivery, program: str, seen: Callable[[], str], at_rest: Callable[[], bool]
) -> Receipt:
    """Return a receipt; `seen` returns `read`, `kept` (for later) or "" if there is no trace."""
    pressed = False
    for look in range(LOOKS):
        found = seen()
        if found == "read":
            return Receipt(outcome="delivered")
        if found and look > LATER:
            return Receipt(outcome="queued", detail="the agent is busy and will read it later")
        if delivery.text.startswith("/") and look > COMMAND:
            return Receipt(outcome="typed", detail=f"{program} does not record its own commands")
        if look % STEP == STEP - 1 and not found:
            if delivery.ended():
                return Receipt(
                    outcome="failed", detail="the agent ended before it read the message"
                )
            # Only at rest: otherwise Enter could answer a question that has just come up.
            if not pressed and at_rest():
                delivery.press_enter()
                pressed = True
        delivery.pause(0.1 if look < 50 else 0.5)
    return Receipt(outcome="failed", detail=f"{program} does not show whether it read the message")
