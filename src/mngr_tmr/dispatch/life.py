"""The life of a task: launch, look, collect, verify; then another try, or the end. Pure.

An event changes the run before the effects that follow from it are performed, so a new process
that reads the same journal continues with `standing`.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto

from mngr.model.struct import Json
from mngr_outcome.codec import to_json
from mngr_outcome.outcome import Obstacle
from mngr_tmr.dispatch import alerts, judging, quota
from mngr_tmr.dispatch.effects import (
    Cancelled,
    Collect,
    Effect,
    Finished,
    Go,
    Launched,
    LaunchTry,
    OfTask,
    Remind,
    Sighted,
    Slow,
    Verified,
    Verify,
    Write,
)
from mngr_tmr.journal.model import ANSWERS, Ended, Outcome, Ruling, Run, Task, Try

INFRASTRUCTURE = (Outcome.DIED, Outcome.LAUNCH_FAILED, Outcome.QUOTA)
"""Failures of the infrastructure, which are worth another try."""
CANCELLED = Ended(Outcome.CANCELLED, "the run was cancelled")
NUDGE = "The service was overloaded. Continue your task, and publish your outcome at the end."


class Stage(Enum):
    """The stage of a task. From LAUNCHING to VERIFYING one effect is in progress for it."""

    WAITING = auto()
    """for its canary"""
    READY = auto()
    """for a slot"""
    LAUNCHING = auto()
    WORKING = auto()
    """Its agent is looked at in every step."""
    COLLECTING = auto()
    """Its agent is collected, then stopped."""
    VERIFYING = auto()
    OVER = auto()


Next = tuple[Stage, tuple[Effect, ...]]


def standing(run: Run, task: Task) -> Next:
    """Return the stage of a task by the journal alone, and the effects to perform."""
    each, number = task.current, len(task.tries)
    if task.skipped or task.round != run.round:
        return Stage.OVER, ()
    if each is None:
        return Stage.WAITING if task.canary else Stage.READY, ()
    if each.ended is None and each.ending is not None:
        ending = each.ending
        return Stage.COLLECTING, (Collect(task.id, number, ending.outcome, ending.reason),)
    if each.ended is None and run.cancelled:
        return _gather(task, CANCELLED.outcome, CANCELLED.reason)
    if each.ended is None and not each.launched:
        return Stage.LAUNCHING, (LaunchTry(task.id, number),)
    if each.ended is None:
        return Stage.WORKING, ()
    if each.verdict is None and _needs_verdict(each.ended):
        return Stage.VERIFYING, (Verify(task.id, number),)
    return Stage.READY if _wants_retry(run, task, each) else Stage.OVER, ()


def is_open(run: Run, task: Task) -> bool:
    """Return whether the task still requires an agent or a verdict in this round."""
    return standing(run, task)[0] is not Stage.OVER


def advance(run: Run, stage: Stage, event: OfTask) -> Next:
    """Return the next stage and the effects of an event for a task in this stage."""
    task = run.tasks[event.task]
    match stage, event:
        case Stage.READY, Go():
            return _intend(run, task)
        case Stage.LAUNCHING, Launched(agent_id=agent_id):
            return Stage.WORKING, (_line("try_launched", task, agent_id=agent_id),)
        case Stage.WORKING, Sighted():
            return _look(run, task, event)
        case Stage.WORKING, Cancelled():
            return _gather(task, CANCELLED.outcome, CANCELLED.reason)
        case ((Stage.LAUNCHING | Stage.COLLECTING), Finished(ended=ended)):
            line = _line("try_ended", task, ended=to_json(ended))
            following, effects = _after(run, task, replace(task.tries[-1], ended=ended))
            return following, (line, *alerts.alerts(run, ended), *effects)
        case Stage.VERIFYING, Verified(verdict=verdict):
            line = _line("verdict", task, verdict=to_json(verdict))
            following, effects = _after(run, task, replace(task.tries[-1], verdict=verdict))
            return following, (line, *effects)
    return stage, ()


def _intend(run: Run, task: Task) -> Next:
    number = len(task.tries) + 1
    fields: dict[str, Json] = {
        "task": task.id,
        "try": number,
        "agent_name": f"tmr-{run.name}-{task.id}-{number}",
        "base": task.base or run.base,
    }
    return Stage.LAUNCHING, (Write("try_intended", fields), LaunchTry(task.id, number))


def _look(run: Run, task: Task, event: Sighted) -> Next:
    each = task.tries[-1]
    step = judging.judge(each, event.sighting, event.now, run.options)
    if step.kind == "end":
        following, effects = _gather(task, step.outcome, step.text)
        # First, so that no more agents exhaust the same quota.
        is_quota = step.outcome is Outcome.QUOTA
        pause = quota.exhausted(run, step.text, event.now) if is_quota else []
        return following, (*pause, *effects)
    if step.kind == "wait":
        return Stage.WORKING, ()
    line = _line("reminded", task, text=step.text)
    if step.kind == "throttle":
        return Stage.WORKING, (Slow(), line, Remind(task.id, each.number, NUDGE))
    return Stage.WORKING, (line, Remind(task.id, each.number, step.text))


def _gather(task: Task, outcome: Outcome, reason: str) -> Next:
    """Journal the outcome first: a stopped agent does not show why it was stopped."""
    line = _line("gathering", task, outcome=str(outcome), reason=reason)
    return Stage.COLLECTING, (line, Collect(task.id, len(task.tries), outcome, reason))


def _line(type: str, task: Task, **fields: Json) -> Write:
    """Return an event about the latest attempt."""
    return Write(type, {"task": task.id, "try": len(task.tries), **fields})


def _after(run: Run, task: Task, latest: Try) -> Next:
    """Return the stage of the task once the journal has this latest attempt."""
    return standing(run, replace(task, tries=[*task.tries[:-1], latest]))


def keeps_slot(run: Run, task: Task) -> bool:
    """Return whether a task whose agent is being collected uses a slot.

    An agent that has published is idle, but with a budget its usage must be known first.
    """
    options, ending = run.options, task.tries[-1].ending
    metered = options.max_tokens is not None or options.max_cost is not None
    return metered or ending is None or ending.outcome is not Outcome.UNCHANGED


# whether an attempt is verified, and whether another one follows


def is_missing(ended: Ended) -> bool:
    """Return whether the agent lacked a program, an account or a decision, not a fix."""
    return ended.outcome is Outcome.BLOCKED and ended.obstacle is Obstacle.MISSING


def _needs_verdict(ended: Ended) -> bool:
    """Return whether to verify: if there are commits, or the claim that none are required."""
    claims = bool(ended.ref) or ended.outcome in ANSWERS
    return claims and ended.outcome is not Outcome.CANCELLED


def _wants_retry(run: Run, task: Task, latest: Try) -> bool:
    ended = latest.ended
    if ended is None or ended.outcome not in INFRASTRUCTURE or run.cancelled:
        return False
    if latest.verdict is not None and latest.verdict.ruling is Ruling.ACCEPTED:
        return False
    # An exhausted quota does not use up a retry: the run pauses until the reset.
    tries = [each.ended for each in task.tries[task.earlier :] if each.ended]
    return sum(each.outcome is not Outcome.QUOTA for each in tries) <= run.options.retries
