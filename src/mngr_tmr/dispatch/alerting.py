"""What somebody should hear of while a run goes on: agents that fail alike, unknown prices."""

from __future__ import annotations

import re

from mngr_tmr.dispatch.effects import Write
from mngr_tmr.journal.model import ANSWERS, Ended, Outcome, Run


def alerts(run: Run, ended: Ended) -> list[Write]:
    """Of a try that has just ended; the run does not know of it yet."""
    return [
        Write("alert", {"text": text}) for text in (*_unpriced(run, ended), *_alike(run, ended))
    ]


def _unpriced(run: Run, ended: Ended) -> list[str]:
    new = {*ended.spent.unpriced} - {*run.spent.unpriced}
    if not new or run.options.run_budget.cost is None:
        return []
    told = f"no price is known for {', '.join(sorted(new))}"
    return [f"{told}: counted as the dearest model of its vendor"]


def _alike(run: Run, ended: Ended) -> list[str]:
    """Many agents that fail the same way have one cause: say so while it is early."""
    threshold = run.options.alert_after
    if ended.outcome in (*ANSWERS, Outcome.CANCELLED) or threshold <= 0:
        return []
    tries = [each.ended for task in run.tasks.values() for each in task.tries]
    same = [each for each in tries if each is not None and each.outcome is ended.outcome]
    kind = _kind(ended)
    alike = 1 + sum(_kind(each) == kind for each in same)
    return [f"{threshold} agents ended the same way: {kind}"] if alike == threshold else []


def _kind(ended: Ended) -> str:
    """An outcome and its reason without the numbers that make each one unique."""
    reason = re.sub(r"[0-9a-f]{8,}|\d+", "#", ended.reason)[:120]
    return f"{ended.outcome}: {reason}" if reason else str(ended.outcome)
