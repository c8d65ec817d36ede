"""How many agents may run at once: slots that adapt to overload, and the budget of the run."""

from __future__ import annotations

from mngr_tmr.dispatch.roles import Clock, Note
from mngr_tmr.journal.model import Run
from mngr_tmr.run.costs import for_hosts
from mngr_tmr.run.words import span

RAMP = 30.0
"""Seconds without an overload before a slot is added."""
SAME = 5.0
"""Seconds within which overloads of several agents count as one."""


class Throttle:
    def __init__(self, run: Run, note: Note, clock: Clock) -> None:
        self._run, self._note, self._clock = run, note, clock
        self._last_launch = self._last_overload = -1e9
        self._last_ramp = clock.now()

    def adapt(self) -> None:
        """End a pause that has expired, and add a slot if there was no recent overload."""
        run, now = self._run, self._clock.now()
        if run.paused_until and now >= run.paused_until:
            self._note("resumed", {})
        calm = now - max(self._last_overload, self._last_ramp)
        if run.slots < run.options.max_agents and calm >= RAMP:
            self._last_ramp = now
            self._note("slots", {"slots": run.slots + 1})

    def overloaded(self) -> None:
        """Halve the slots."""
        now = self._clock.now()
        if now - self._last_overload > SAME:
            self._note("slots", {"slots": max(1, self._run.slots // 2)})
        self._last_overload = now

    def has_room(self, active: int) -> bool:
        run = self._run
        return not run.paused and not run.cancelled and active < run.slots

    def may_launch(self) -> bool:
        """Return whether `stagger` allows a launch now. If so, it counts as one."""
        now = self._clock.now()
        if now - self._last_launch < self._run.options.stagger:
            return False
        self._last_launch = now
        return True


def over_budget(run: Run, now: float) -> str:
    """Return why the run may start no more agents, or ""."""
    limits = run.options
    if limits.max_launches is not None and run.tries >= limits.max_launches:
        return f"the run has started its maximum number of agents ({limits.max_launches})"
    if limits.max_tokens is not None and run.spent.tokens >= limits.max_tokens:
        return f"the token budget of the run ({limits.max_tokens}) is used up"
    if limits.max_cost is not None and run.spent.counted + host_cost(run, now) >= limits.max_cost:
        return f"the cost budget of the run (${limits.max_cost:.2f}) is used up"
    if limits.max_time is not None and now - run.started >= limits.max_time:
        return f"the time limit of the run ({span(limits.max_time)}) is reached"
    return ""


def host_cost(run: Run, now: float) -> float:
    """Return the dollars for hosts so far, by the time of their agents; 0 without a price."""
    tries = [each for task in run.tasks.values() for each in task.tries if each.launched]
    return for_hosts(run, sum((each.ended_at or now) - each.launched for each in tries))
