"""When a task has its answer, and when it gets another try. Pure."""

from __future__ import annotations

from mngr_tmr.journal.model import ANSWERS, INFRASTRUCTURE, Ended, Outcome, Ruling, Run, Task, Try

GIVEN_UP = ("more time", "a person who understands")
"""What an agent needs that looked for a repair and found none."""


def is_missing(ended: Ended) -> bool:
    """Whether a program, an account or a decision is missing, as opposed to a repair."""
    return ended.outcome is Outcome.BLOCKED and not ended.needs.startswith(GIVEN_UP)


def needs_verdict(ended: Ended) -> bool:
    """Commits have to be verified, and so has the claim that none are needed."""
    if ended.outcome is Outcome.CANCELLED:
        return False
    return bool(ended.ref) or ended.outcome in ANSWERS


def wants_retry(run: Run, task: Task, latest: Try) -> bool:
    ended = latest.ended
    if ended is None or ended.outcome not in INFRASTRUCTURE or run.cancelled:
        return False
    if needs_verdict(ended) and (
        latest.verdict is None or latest.verdict.ruling is Ruling.ACCEPTED
    ):
        return False
    # An exhausted quota does not use up a retry: the run pauses until the reset.
    return sum(map(_counts, task.tries[task.earlier :])) <= run.options.retries


def _counts(each: Try) -> bool:
    return each.ended is not None and each.ended.outcome is not Outcome.QUOTA
