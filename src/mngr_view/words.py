"""Numbers and times as people read them, and what the endings of a task are called."""

from __future__ import annotations

import time

from mngr_tmr.integrate import ranking
from mngr_tmr.journal.model import Run, Task
from mngr_tmr.run.costs import Spending
from mngr_view.markup import Html, el, shortened

ORDER = (
    "unfinished",
    "expectation changed",
    "held for review",
    "blocked",
    "no result",
    "died",
    "timed out",
    "over budget",
    "quota",
    "launch failed",
    "refused",
    "not verified",
    "evicted",
    "fixed",
    "improved",
    "passes",
    "unchanged",
    "skipped",
    "cancelled",
)
"""Results that may require help come first."""
NEEDY = frozenset(
    ("blocked", "no result", "died", "timed out", "over budget", "quota", "launch failed")
)
MOODS = {
    "fixed": "good",
    "improved": "good",
    "passed": "good",
    "passes": "good",
    "unchanged": "quiet",
    "skipped": "quiet",
    "cancelled": "quiet",
    "not selected": "quiet",
    "unfinished": "busy",
    "expectation changed": "warn",
    "held for review": "warn",
    "blocked": "warn",
    "refused": "warn",
    "not verified": "warn",
    "evicted": "warn",
    "flaky": "warn",
}


def badge(word: str) -> Html:
    """The word may be an agent's."""
    return el("span", shortened(word, 30), class_=f"badge {MOODS.get(word, 'bad')}")


def place(ending: str) -> int:
    return ORDER.index(ending) if ending in ORDER else len(ORDER)


def in_order(run: Run) -> list[tuple[str, int]]:
    """Endings and how many tasks have them."""
    return sorted(ranking.counts(run).items(), key=lambda each: place(each[0]))


def lasting(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds)) if seconds else ""


def money(spent: Spending) -> str:
    if spent.cost is None:
        return "cost not known"
    return f"${spent.cost:.2f}" if spent.cost >= 0.005 or not spent.cost else f"${spent.cost:.4f}"


def used(run: Run, spent: Spending) -> list[str]:
    """Return tokens and cost, or nothing for agents that do not report their usage."""
    told = run.forecast is None or run.forecast.counted
    return [counted(spent.tokens, "token"), money(spent)] if told else []


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def reason_of(task: Task) -> str:
    """Return the reason for the result of a task."""
    if task.passes_with:
        return f"passes with {task.passes_with[:12]}"
    if task.evicted or task.skipped:
        return task.evicted or task.skipped
    ended, verdict = task.latest.ended if task.latest else None, task.verdict
    if verdict is not None and verdict.reason not in ("", "verified"):
        return verdict.reason
    if ended is not None:
        return ended.reason or ended.summary.strip().partition("\n")[0]
    return f"waits for its canary {task.canary}" if task.canary else ""
