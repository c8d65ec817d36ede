"""How many agents at once, and when none at all: overload, quota, budgets. Says so by events."""

from __future__ import annotations

from mngr_tmr.dispatch import judging
from mngr_tmr.dispatch.roles import Clock, Note
from mngr_tmr.journal.model import Run
from mngr_tmr.run.costs import for_hosts

RAMP = 30.0
"""Seconds without an overload after which one more slot is tried."""
SAME = 5.0
"""Many agents feel one and the same overload within so many seconds."""


class Throttle:
    def __init__(self, run: Run, note: Note, clock: Clock) -> None:
        self._run, self._note, self._clock = run, note, clock
        self._last_launch = self._last_overload = -1e9
        self._last_ramp = clock.now()

    def adapt(self) -> None:
        run, now = self._run, self._clock.now()
        if run.paused_until and now >= run.paused_until:
            self._note("resumed", {})
        calm = now - max(self._last_overload, self._last_ramp)
        if run.slots < run.options.max_agents and calm >= RAMP:
            self._last_ramp = now
            self._note("slots", {"slots": run.slots + 1})

    def overloaded(self) -> None:
        now = self._clock.now()
        if now - self._last_overload > SAME:
            self._note("slots", {"slots": max(1, self._run.slots // 2)})
        self._last_overload = now

    def exhausted(self, reason: str) -> None:
        """Nothing more is launched until the quota is back."""
        run, now = self._run, self._clock.now()
        if run.paused and not run.paused_until:
            return  # by hand, which nothing but a hand ends
        stated = judging.stated_reset(reason, now)
        if run.paused_until >= max(now, stated):
            return  # the same wall, which another agent has met before
        anew = run.paused_until <= now
        missed = max(1, run.missed + anew)
        until = judging.reset_time(reason, now, missed)
        if anew and stated and missed == judging.BELIEVED + 1:
            told = f"{judging.BELIEVED} times the quota was not back when it said"
            self._note("alert", {"text": f"{told}: waiting {until - now:.0f} s ({reason})"})
        self._note("paused", {"reason": reason, "until": until, "missed": missed})

    # launching

    def has_room(self, active: int) -> bool:
        run = self._run
        return not run.paused and not run.cancelled and active < run.slots

    def may_launch(self) -> bool:
        """Counts as one, if so."""
        now = self._clock.now()
        if now - self._last_launch < self._run.options.stagger:
            return False
        self._last_launch = now
        return True

    def over_budget(self) -> str:
        return over_budget(self._run, self._clock.now())


def over_budget(run: Run, now: float) -> str:
    """Why the run may launch nothing more."""
    limits, spent = run.options.run_budget, run.spent
    minutes = (now - run.started) / 60
    if limits.agents is not None and run.tries >= limits.agents:
        return f"the run's {limits.agents} agents are used up"
    if limits.tokens is not None and spent.tokens >= limits.tokens:
        return f"the run's {limits.tokens} tokens are used up"
    if limits.cost is not None and spent.counted + host_cost(run, now) >= limits.cost:
        return f"the run's ${limits.cost:.2f} are spent"
    if limits.minutes is not None and minutes >= limits.minutes:
        return f"the run's {limits.minutes:g} minutes are over"
    return ""


def host_cost(run: Run, now: float) -> float:
    """Dollars for the hosts of a run so far, by the time of their agents; 0 without a price."""
    tries = [each for task in run.tasks.values() for each in task.tries if each.launched]
    return for_hosts(run, sum((each.ended_at or now) - each.launched for each in tries))
