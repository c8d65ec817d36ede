"""Events of integration -> the commits, evictions and gates of a run. Part of the fold."""

from __future__ import annotations

from collections.abc import Callable

from mngr_outcome.codec import from_json
from mngr_tmr.journal.events import list_of, text_of
from mngr_tmr.journal.model import Event, Eviction, Pick, Run


def _integration_started(run: Run, event: Event) -> None:
    """Always from where its round began: picks of an unfinished integration do not count."""
    picks, evictions = run.kept
    run.picks, run.evictions, run.conflicts = run.picks[:picks], run.evictions[:evictions], []
    run.status, run.ended, run.integrated = "", 0.0, False
    commits = {pick.commit for pick in run.picks}
    for task in run.tasks.values():
        task.passes_with = ""
        task.included = task.included if task.included in commits else ""
        task.evicted = "" if task.round == run.round else task.evicted


def _integrated(run: Run, event: Event) -> None:
    run.integrated = True


def _gated(run: Run, event: Event) -> None:
    run.gates[text_of(event, "key")] = event.get("passed") is True
    run.shaky[text_of(event, "key")] = tuple(str(each) for each in list_of(event, "unsteady"))
    run.unsteady |= {*run.shaky[text_of(event, "key")]}


def _picked(run: Run, event: Event) -> None:
    pick = from_json(Pick, event.get("pick"))
    run.picks.append(pick)
    for task in [run.tasks[each] for each in pick.tasks if each in run.tasks]:
        if task.held and pick.kind != "other":
            task.included = pick.commit


def _evicted(run: Run, event: Event) -> None:
    eviction = from_json(Eviction, event.get("eviction"))
    run.evictions.append(eviction)
    task = run.tasks.get(eviction.task)
    fix = task.verdict.implementation if task and task.verdict else ""
    if task is None or eviction.needless or (fix and eviction.part == "other"):
        return  # what turns the test green is there
    task.evicted = eviction.reason
    for each in run.tasks.values():
        if each.spared_by == task.id:
            each.evicted = f"the fix of {task.id} was not taken: {eviction.reason}"


def _conflict(run: Run, event: Event) -> None:
    run.conflicts.append(text_of(event, "text"))


def _published(run: Run, event: Event) -> None:
    run.published[text_of(event, "branch")] = (text_of(event, "was"), text_of(event, "commit"))
    run.branch_reason = text_of(event, "reason")


HANDLERS: dict[str, Callable[[Run, Event], None]] = {
    "integration_started": _integration_started,
    "integrated": _integrated,
    "gated": _gated,
    "picked": _picked,
    "evicted": _evicted,
    "conflict": _conflict,
    "published": _published,
}
