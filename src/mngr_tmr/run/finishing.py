"""The end of a run: how it is called, and which of its agents go."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.model.state import State
from mngr_tmr.integrate import ranking
from mngr_tmr.journal.model import Ruling, Run


def status(run: Run) -> str:
    """Said by counting: a run in which everything failed has failed."""
    counts = ranking.counts(run)
    if run.cancelled:
        return "cancelled"
    if run.picks:
        return "done"
    if not run.tasks or all(word in ranking.WELL for word in counts):
        return "nothing to do"
    return "failed"


def tidy(api: Mngr, run: Run) -> None:
    """Destroy agents whose work is on the branch or was not needed; others wait for a person."""
    settled = (Ruling.ACCEPTED, Ruling.UNCHANGED)
    evicted = {each.task for each in run.evictions}
    done = {
        each.agent_name
        for task in run.tasks.values()
        for each in task.tries
        if each.verdict is not None
        and (each.verdict.ruling in settled or (task.included and each is task.held))
        and task.id not in evicted
    }
    listed = [agent for agent in api.list() if agent.name in done]
    mine = [agent for agent in listed if agent.state is not State.UNREACHABLE]
    if mine:
        bury = api.destroy_many(mine, drop_branch=True)
        for agent in mine:
            bury(agent)
