"""Compute a Run from the events of its journal, without input or output."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mngr.model.struct import Json
from mngr_outcome.codec import from_json
from mngr_tmr.journal.events import Event, list_of, number_of, table_of, tables_of, text_of, time_of
from mngr_tmr.journal.model import (
    ANSWERS,
    Baseline,
    Ended,
    Eviction,
    Outcome,
    Pick,
    Run,
    Task,
    Test,
    TestRun,
    Try,
    Verdict,
)
from mngr_tmr.journal.proofs import GateResult
from mngr_tmr.run.clustering import Suspect
from mngr_tmr.run.costs import Forecast, HostTime
from mngr_tmr.run.options import Options, retuned

Handler = Callable[[Run, Event], None]


def fold(events: Iterable[Event]) -> Run:
    """Return the run that these events describe."""
    run = Run()
    for event in events:
        apply(run, event)
    return run


def apply(run: Run, event: Event) -> None:
    """Change the run. Unknown types and events about unknown things change nothing."""
    handler = HANDLERS.get(str(event.get("type")))
    if handler is not None:
        run.waiting = ""
        handler(run, event)


def _run_started(run: Run, event: Event) -> None:
    if run.name:
        return
    run.name, run.repository = text_of(event, "run"), text_of(event, "repository")
    run.base, run.started = text_of(event, "base"), time_of(event)
    run.options = from_json(Options, event.get("options"))
    run.slots = run.options.max_agents


def _collected(run: Run, event: Event) -> None:
    tests = [from_json(Test, each) for each in list_of(event, "tests")]
    run.tests = {test.node_id: test for test in tests}
    run.collect_errors = tuple(str(each) for each in list_of(event, "errors"))


def _baseline(run: Run, event: Event) -> None:
    """Add one run of each test."""
    run.rounds += 1
    for node_id, result in table_of(event, "results").items():
        runs = (*run.before(node_id).runs, from_json(TestRun, result))
        run.baseline[node_id] = Baseline(runs)


def _weighed(run: Run, event: Event) -> None:
    run.weak = {str(each) for each in list_of(event, "weak")}
    run.weighed = True


def _selected(run: Run, event: Event) -> None:
    run.selected = True
    run.left_out = {node_id: str(why) for node_id, why in table_of(event, "left_out").items()}
    for told in tables_of(event, "tasks"):
        id, node_id, want = (text_of(told, key) for key in ("task", "node_id", "want"))
        reach = int(number_of(told, "reach"))
        run.tasks.setdefault(id, Task(id, node_id, want, reach=reach))
    _grouped(run, event)


def _named(run: Run) -> None:
    """Name each cluster without a name after its first canary."""
    for task in run.tasks.values():
        canary = run.tasks.get(task.canary)
        if canary is not None:
            task.cluster = canary.cluster = task.cluster or canary.cluster or canary.id


def _grouped(run: Run, event: Event) -> None:
    """Change which task waits for which, on which fix their agents begin, and the suspects."""
    for task, told in _rows(run, event):
        task.canary, task.cluster = text_of(told, "canary"), text_of(told, "cluster")
        task.base = text_of(told, "base") or task.base
        task.signature = text_of(told, "signature") or task.signature
    _named(run)
    found = table_of(event, "suspects")
    for cluster in found:
        run.suspects[cluster] = tuple(from_json(Suspect, each) for each in list_of(found, cluster))


def _rows(run: Run, event: Event) -> list[tuple[Task, Event]]:
    """Return the known tasks that an event lists, with its fields for each."""
    rows = [(text_of(each, "task"), each) for each in tables_of(event, "tasks")]
    return [(run.tasks[task], each) for task, each in rows if task in run.tasks]


def _round(run: Run, event: Event) -> None:
    """Begin a round: some tests get an agent again, at the tip of the branch."""
    run.round, run.tip = int(number_of(event, "round")), text_of(event, "tip")
    run.integrated = False
    again = {task.id: task for task, _ in _rows(run, event)}
    for task in again.values():
        task.round, task.earlier, task.base = run.round, len(task.tries), run.tip
        task.skipped = task.skipped_as = task.spared_by = task.evicted = ""
    run.evictions = [each for each in run.evictions if each.task not in again]
    run.kept = (len(run.picks), len(run.evictions))
    _grouped(run, event)


def _tried(run: Run, event: Event) -> None:
    """Set the commits with which tests pass at the tip of the branch."""
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
        task.skipped, task.skipped_as = text_of(event, "reason"), text_of(event, "as")
        task.spared_by = text_of(event, "by")


# attempts


def _try_intended(run: Run, event: Event) -> None:
    task = run.tasks.get(text_of(event, "task"))
    number = int(number_of(event, "try"))
    if task is None or number != len(task.tries) + 1:
        return
    agent_name, base = text_of(event, "agent_name"), text_of(event, "base")
    task.tries.append(Try(number, agent_name, base, time_of(event)))
    run.integrated = False


def _of_try(handler: Callable[[Run, Try, Event], None]) -> Handler:
    def handle(run: Run, event: Event) -> None:
        task = run.tasks.get(text_of(event, "task"))
        number = int(number_of(event, "try"))
        if task is not None and 0 < number <= len(task.tries):
            handler(run, task.tries[number - 1], event)

    return handle


def _try_launched(run: Run, each: Try, event: Event) -> None:
    each.agent_id, each.launched = text_of(event, "agent_id"), time_of(event)


def _reminded(run: Run, each: Try, event: Event) -> None:
    each.reminded = time_of(event)


def _gathering(run: Run, each: Try, event: Event) -> None:
    told: Json = {"outcome": event.get("outcome"), "reason": text_of(event, "reason")}
    each.ending = from_json(Ended, told)


def _try_ended(run: Run, each: Try, event: Event) -> None:
    """End an attempt, or end it again if a person helped its agent afterwards."""
    if each.ended is not None:
        run.tasks[text_of(event, "task")].round, run.integrated = run.round, False
    each.ended = from_json(Ended, event.get("ended"))
    each.ended_at, each.verdict = time_of(event), None
    if each.intended >= run.paused_at and each.ended.outcome in (*ANSWERS, Outcome.BLOCKED):
        run.missed = 0  # the quota is available again


def _verdict(run: Run, each: Try, event: Event) -> None:
    each.verdict = from_json(Verdict, event.get("verdict"))


# orders, slots and pauses


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
    run.result_branch = text_of(event, "branch")


def _host_ended(run: Run, event: Event) -> None:
    seconds, agents = number_of(event, "seconds"), int(number_of(event, "agents"))
    cost = number_of(event, "cost") if event.get("cost") is not None else None
    run.hosts[text_of(event, "host")] = HostTime(seconds, agents, cost)


# the branch


def _integration_started(run: Run, event: Event) -> None:
    """Return to the start of the round: picks of an unfinished integration do not count."""
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
    gate = from_json(GateResult, event.get("gate"))
    run.gates.setdefault(text_of(event, "tree"), {})[text_of(event, "tests")] = gate
    run.unsteady |= {*gate.unsteady}


def _picked(run: Run, event: Event) -> None:
    pick = from_json(Pick, event.get("pick"))
    run.picks.append(pick)
    for task in run.tasks_of(pick):
        if task.held and pick.kind != "other":
            task.included = pick.commit


def _evicted(run: Run, event: Event) -> None:
    eviction = from_json(Eviction, event.get("eviction"))
    run.evictions.append(eviction)
    task = run.tasks.get(eviction.task)
    fix = task.verdict.implementation if task and task.verdict else ""
    if task is None or eviction.needless or (fix and eviction.part == "other"):
        return  # the branch has what makes the test pass
    task.evicted = eviction.reason
    for each in run.tasks.values():
        if each.spared_by == task.id:
            each.evicted = f"the fix of {task.id} was evicted: {eviction.reason}"


def _conflict(run: Run, event: Event) -> None:
    run.conflicts.append(text_of(event, "text"))


def _published(run: Run, event: Event) -> None:
    run.published[text_of(event, "branch")] = (text_of(event, "was"), text_of(event, "commit"))
    run.branch_reason = text_of(event, "reason")


HANDLERS: dict[str, Handler] = {
    "run_started": _run_started,
    "collected": _collected,
    "baseline": _baseline,
    "weighed": _weighed,
    "selected": _selected,
    "forecast": _forecast,
    "skipped": _skipped,
    "grouped": _grouped,
    "round": _round,
    "tried": _tried,
    "waiting": _waiting,
    "agreed": _agreed,
    "try_intended": _try_intended,
    "try_launched": _of_try(_try_launched),
    "reminded": _of_try(_reminded),
    "gathering": _of_try(_gathering),
    "try_ended": _of_try(_try_ended),
    "verdict": _of_try(_verdict),
    "control": _control,
    "slots": _slots,
    "paused": _paused,
    "resumed": _resumed,
    "alert": _alert,
    "run_ended": _run_ended,
    "host_ended": _host_ended,
    "integration_started": _integration_started,
    "integrated": _integrated,
    "gated": _gated,
    "picked": _picked,
    "evicted": _evicted,
    "conflict": _conflict,
    "published": _published,
}
