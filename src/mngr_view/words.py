"""Results, times and usage as text."""

from __future__ import annotations

import time

from mngr_tmr.integrate import ranking
from mngr_tmr.journal.model import Run
from mngr_tmr.run.costs import Spending
from mngr_tmr.run.words import counted
from mngr_view.markup import Html, el, shortened

ORDER = tuple(
    "unfinished, expectation changed, held for review, blocked, no result, died, timed out, "
    "over budget, quota, launch failed, refused, not verified, evicted, fixed, improved, passes, "
    "unchanged, skipped, cancelled".split(", ")
)
"""Results that may require help come first."""
NEEDY = ORDER[ORDER.index("blocked") : ORDER.index("refused")]
"""Results of agents that require help."""
COLOURS = {
    "good": ("fixed", "improved", "passed", "passes"),
    "quiet": ("unchanged", "skipped", "cancelled", "not selected"),
    "busy": ("unfinished",),
    "warn": (*ORDER[1:4], "refused", "not verified", "evicted", "flaky"),
}
MOODS = {word: mood for mood, words in COLOURS.items() for word in words}


def badge(word: str) -> Html:
    """Return a word, perhaps of an agent, as a coloured badge."""
    return el("span", shortened(word, 30), class_=f"badge {MOODS.get(word, 'bad')}")


def place(ending: str) -> int:
    return ORDER.index(ending) if ending in ORDER else len(ORDER)


def in_order(run: Run) -> list[tuple[str, int]]:
    """Return each result with its number of tasks."""
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
