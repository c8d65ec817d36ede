"""Run a check up to three times; its infrastructure failures are retried only here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mngr.errors import MngrError

PAUSES = (1.0, 5.0)
"""Seconds before the second and the third attempt, if the attempt before raised an error."""
Answer = TypeVar("Answer")


def attempted(
    attempt: Callable[[], Answer], is_valid: Callable[[Answer], bool], wait: Callable[[float], bool]
) -> Answer:
    """Return the first valid answer, or what the third attempt returns or raises.

    `wait` pauses, and returns whether to give up at once.
    """
    for pause in PAUSES:
        try:
            answer = attempt()
        except (MngrError, OSError):
            if wait(pause):
                raise
        else:
            if is_valid(answer):
                return answer
    return attempt()
