"""Compute a Run from the events of its journal, without input or output."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mngr.model.struct import Json
from mngr_outcome.codec import from_json
from mngr_tmr.journal import fold_branch
from mngr_tmr.journal.events import list_of, number_of, table_of, tables_of, text_of, time_of
from mngr_tmr.journal.model import (
    ANSWERS,
    Baseline,
    Ended,
    Event,
    Outcome,
    Run,
    Suspect,
    Task,
    Test,
    TestRun,
    Try,
    Verdict,
)
from mngr_tmr.run.costs import Forecast, HostTime, Spending
from mngr_tmr.run.options import Options, retuned


def fold(events: Iterable[Event]) -> Run:
    run = Run()
    for event in events:
        apply(run, event)
    return run


def apply(run: Run, event: Event) -> None:
    """Unknown types and events about unknown things change nothing."""
    handler = HANDLERS.get(str(event.get("type")))
    if handler is not None:
        run.waiting = ""
        handler(run, event)


def _run_started(run: Run, event: Event) -> None:
    if run.name:
        return  # resumed: the run is what it was begun as
    run.name, run.repository = text_of(event, "run"), text_of(event, "repository")
    run.base, run.branch = text_of(event, "base"), text_of(event, "branch")
    run.started = time_of(event)
    run.options = from_json(Options, event.get("options"))
    run.slots = run.options.max_agents


def _collected(run: Run, event: Event) -> None:
    tests = [from_json(Test, each) for each in list_of(event, "tests")]
    run.tests = {test.node_id: test for test in tests}
    run.collect_errors = tuple(str(each) for each in list_of(event, "errors"))
    run.collected = True


def _baseline(run: Run, event: Event) -> None:
    """One event per round."""
    run.rounds += 1
    for node_id, result in table_of(event, "results").items():
        before = run.baseline.get(node_id, Baseline())
        run.baseline[node_id] = Baseline((*before.runs, from_json(TestRun, result)))


def _weighed(run: Run, event: Event) -> None:
    run.weak = {str(each) for each in list_of(event, "weak")}
    run.weighed = True


def _selected(run: Run, event: Event) -> None:
    run.selected = True
    for told in tables_of(event, "tasks"):
        task = Task(
            id=text_of(told, "task"),
            node_id=text_of(told, "node_id"),
            want=text_of(told, "want"),
            signature=text_of(told, "signature"),
            canary=text_of(told, "canary"),
            cluster=text_of(told, "cluster"),
            reach=int(number_of(told, "reach")),
        )
        run.tasks.setdefault(task.id, task)
    _named(run)
    _suspected(run, event)


def _named(run: Run) -> None:
    """A cluster that has no name is called after its first canary."""
    for task in run.tasks.values():
        canary = run.tasks.get(task.canary)
        if canary is not None:
            task.cluster = canary.cluster = task.cluster or canary.cluster or canary.id


def _suspected(run: Run, event: Event) -> None:
    found = table_of(event, "suspects")
    for cluster in found:
        run.suspects[cluster] = tuple(from_json(Suspect, each) for each in list_of(found, cluster))


def _grouped(run: Run, event: Event) -> None:
    """Who waits for whom from now on; where a fix is known, with that as their base."""
    for told in tables_of(event, "tasks"):
        task = run.tasks.get(text_of(told, "task"))
        if task is not None:
            task.canary, task.cluster = text_of(told, "canary"), text_of(told, "cluster")
            task.base = text_of(told, "base") or task.base
            task.signature = text_of(told, "signature") or task.signature
    _named(run)


def _round(run: Run, event: Event) -> None:
    """Tests that still fail at the tip, or whose work was evicted, are given to agents again."""
    run.round, run.tip = int(number_of(event, "round")), text_of(event, "tip")
    run.integrated = False
    for told in tables_of(event, "tasks"):
        task = run.tasks.get(text_of(told, "task"))
        if task is not None:
            task.round, task.earlier, task.base = run.round, len(task.tries), run.tip
            task.skipped = task.spared_by = task.evicted = ""
    again = {task.id for task in run.tasks.values() if task.round == run.round}
    run.evictions = [each for each in run.evictions if each.task not in again]
    run.kept = (len(run.picks), len(run.evictions))
    _grouped(run, event)
    _suspected(run, event)


def _tried(run: Run, event: Event) -> None:
    """At the tip of the branch: which tests pass there, and since which commit."""
    passing = table_of(event, "passing")
    for task in run.tasks.values():
        task.passes_with = text_of(passing, task.id)


def _waiting(run: Run, event: Event) -> None:
    run.waiting = text_of(event, "text")


def _agreed(run: Run, event: Event) -> None:
    run.consent = True


def _forecast(run: Run, event: Event) -> None:
    run.forecast = from_json(Forecast, event.get("forecast"))


def _skipped(run: Run, event: Event) -> None:
    task = run.tasks.get(text_of(event, "task"))
    if task is not None:
        task.skipped = text_of(event, "reason")
        task.spared_by = text_of(event, "by")
    else:
        run.left_out[text_of(event, "node_id")] = text_of(event, "reason")


def _released(run: Run, event: Event) -> None:
    """The canary has an answer: this task waits no more, and may begin with its fix."""
    task = run.tasks.get(text_of(event, "task"))
    if task is not None:
        task.canary, task.base = "", text_of(event, "base")


def _try_intended(run: Run, event: Event) -> None:
    task = run.tasks.get(text_of(event, "task"))
    number = int(number_of(event, "try"))
    if task is None or number != len(task.tries) + 1:
        return
    agent_name, base = text_of(event, "agent_name"), text_of(event, "base")
    task.tries.append(Try(number, agent_name, base, time_of(event)))
    run.tries += 1
    run.consent = True  # journals of earlier versions do not say so
    run.integrated = False


def _try(run: Run, event: Event) -> Try | None:
    task = run.tasks.get(text_of(event, "task"))
    number = int(number_of(event, "try"))
    return task.tries[number - 1] if task and 0 < number <= len(task.tries) else None


def _try_launched(run: Run, event: Event) -> None:
    each = _try(run, event)
    if each is not None:
        each.agent_id, each.launched = text_of(event, "agent_id"), time_of(event)


def _reminded(run: Run, event: Event) -> None:
    each = _try(run, event)
    if each is not None:
        each.reminded = time_of(event)


def _gathering(run: Run, event: Event) -> None:
    each = _try(run, event)
    if each is not None:
        told: Json = {"outcome": event.get("outcome"), "reason": text_of(event, "reason")}
        each.ending = from_json(Ended, told)


def _try_ended(run: Run, event: Event) -> None:
    each = _try(run, event)
    if each is not None:
        if each.ended is not None:  # a human helped
            run.tasks[text_of(event, "task")].round, run.integrated = run.round, False
        before = each.ended.spent if each.ended else Spending()
        each.ended = from_json(Ended, event.get("ended"))
        run.spent = run.spent + each.ended.spent - before
        each.ended_at = time_of(event)
        each.verdict = None  # a human may have helped, and the try ended anew
        if each.intended >= run.paused_at and each.ended.outcome in (*ANSWERS, Outcome.BLOCKED):
            run.missed = 0  # whatever held the others back, it is over


def _verdict(run: Run, event: Event) -> None:
    each = _try(run, event)
    if each is not None:
        each.verdict = from_json(Verdict, event.get("verdict"))


def _control(run: Run, event: Event) -> None:
    action = text_of(event, "action")
    run.obeyed.add(text_of(event, "order"))
    if action == "cancel":
        run.cancelled = True
    elif action == "pause":
        run.paused, run.paused_until = "paused by hand", 0.0
    elif action == "resume":
        _resumed(run, event)
    elif action == "retune":
        run.options = retuned(run.options, event.get("options"))
        if "max_agents" in table_of(event, "options"):  # else an overload still counts
            run.slots = max(1, run.options.max_agents)


def _slots(run: Run, event: Event) -> None:
    run.slots = max(1, int(number_of(event, "slots")))


def _paused(run: Run, event: Event) -> None:
    run.paused, run.paused_until = text_of(event, "reason"), number_of(event, "until")
    run.missed, run.paused_at = int(number_of(event, "missed")), time_of(event)


def _resumed(run: Run, event: Event) -> None:
    run.paused, run.paused_until = "", 0.0


def _alert(run: Run, event: Event) -> None:
    run.alerts.append(text_of(event, "text"))


def _run_ended(run: Run, event: Event) -> None:
    run.status, run.ended = text_of(event, "status"), time_of(event)
    run.result_branch = branch = text_of(event, "branch")
    if branch and branch not in run.published:  # journals of earlier versions do not say where
        run.published[branch] = ("", run.picks[-1].commit if run.picks else run.base)


def _host_ended(run: Run, event: Event) -> None:
    seconds, agents = number_of(event, "seconds"), int(number_of(event, "agents"))
    cost = number_of(event, "cost") if event.get("cost") is not None else None
    run.hosts[text_of(event, "host")] = HostTime(text_of(event, "provider"), seconds, agents, cost)


HANDLERS: dict[str, Callable[[Run, Event], None]] = {
    **fold_branch.HANDLERS,
    "run_started": _run_started,
    "collected": _collected,
    "baseline": _baseline,
    "weighed": _weighed,
    "selected": _selected,
    "forecast": _forecast,
    "skipped": _skipped,
    "released": _released,
    "grouped": _grouped,
    "round": _round,
    "tried": _tried,
    "waiting": _waiting,
    "agreed": _agreed,
    "try_intended": _try_intended,
    "try_launched": _try_launched,
    "reminded": _reminded,
    "gathering": _gathering,
    "try_ended": _try_ended,
    "verdict": _verdict,
    "control": _control,
    "slots": _slots,
    "paused": _paused,
    "resumed": _resumed,
    "alert": _alert,
    "run_ended": _run_ended,
    "host_ended": _host_ended,
}
