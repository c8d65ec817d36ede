"""Events -> Run. Pure: whoever reads the same journal sees the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mngr.struct import Json
from mngr_tmr.codec import from_json, to_json
from mngr_tmr.model import (
    ANSWERS,
    Baseline,
    Ended,
    Event,
    Eviction,
    Forecast,
    Options,
    Outcome,
    Pick,
    Run,
    Spending,
    Suspect,
    Task,
    Test,
    TestRun,
    Try,
    Verdict,
)


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


def _time(event: Event) -> float:
    time = event.get("time")
    return float(time) if isinstance(time, (int, float)) else 0.0


def _text(event: Event, key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def _number(event: Event, key: str) -> float:
    value = event.get(key)
    return float(value) if isinstance(value, (int, float)) else 0.0


def _list(event: Event, key: str) -> list[Json]:
    value = event.get(key)
    return value if isinstance(value, list) else []


def _table(event: Event, key: str) -> dict[str, Json]:
    value = event.get(key)
    return value if isinstance(value, dict) else {}


def _run_started(run: Run, event: Event) -> None:
    if run.name:
        return  # resumed: the run is what it was begun as
    run.name, run.repository = _text(event, "run"), _text(event, "repository")
    run.base, run.branch = _text(event, "base"), _text(event, "branch")
    run.started = _time(event)
    run.options = from_json(Options, event.get("options"))
    run.slots = run.options.max_agents


def _collected(run: Run, event: Event) -> None:
    tests = [from_json(Test, each) for each in _list(event, "tests")]
    run.tests = {test.node_id: test for test in tests}
    run.collect_errors = tuple(str(each) for each in _list(event, "errors"))
    run.collected = True


def _baseline(run: Run, event: Event) -> None:
    """One event per round."""
    run.rounds += 1
    for node_id, result in _table(event, "results").items():
        before = run.baseline.get(node_id, Baseline())
        run.baseline[node_id] = Baseline((*before.runs, from_json(TestRun, result)))


def _weighed(run: Run, event: Event) -> None:
    run.weak = {str(each) for each in _list(event, "weak")}
    run.weighed = True


def _selected(run: Run, event: Event) -> None:
    run.selected = True
    for each in _list(event, "tasks"):
        told = each if isinstance(each, dict) else {}
        task = Task(
            id=_text(told, "task"),
            node_id=_text(told, "node_id"),
            want=_text(told, "want"),
            signature=_text(told, "signature"),
            canary=_text(told, "canary"),
            cluster=_text(told, "cluster"),
            reach=int(_number(told, "reach")),
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
    for cluster, lines in _table(event, "suspects").items():
        found = lines if isinstance(lines, list) else []
        run.suspects[cluster] = tuple(from_json(Suspect, each) for each in found)


def _grouped(run: Run, event: Event) -> None:
    """Who waits for whom from now on; where a fix is known, with that as their base."""
    for each in _list(event, "tasks"):
        told = each if isinstance(each, dict) else {}
        task = run.tasks.get(_text(told, "task"))
        if task is not None:
            task.canary, task.cluster = _text(told, "canary"), _text(told, "cluster")
            task.base = _text(told, "base") or task.base
            task.signature = _text(told, "signature") or task.signature
    _named(run)


def _round(run: Run, event: Event) -> None:
    """Tests that still fail at the tip, or whose work was evicted, are given to agents again."""
    run.round, run.tip = int(_number(event, "round")), _text(event, "tip")
    run.integrated = False
    for each in _list(event, "tasks"):
        told = each if isinstance(each, dict) else {}
        task = run.tasks.get(_text(told, "task"))
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
    passing = _table(event, "passing")
    for task in run.tasks.values():
        commit = passing.get(task.id)
        task.passes_with = commit if isinstance(commit, str) else ""


def _waiting(run: Run, event: Event) -> None:
    run.waiting = _text(event, "text")


def _agreed(run: Run, event: Event) -> None:
    run.consent = True


def _published(run: Run, event: Event) -> None:
    run.published[_text(event, "branch")] = (_text(event, "was"), _text(event, "commit"))
    run.branch_reason = _text(event, "reason")


def _forecast(run: Run, event: Event) -> None:
    run.forecast = from_json(Forecast, event.get("forecast"))


def _skipped(run: Run, event: Event) -> None:
    task = run.tasks.get(_text(event, "task"))
    if task is not None:
        task.skipped = _text(event, "reason")
        task.spared_by = _text(event, "by")
    else:
        run.left_out[_text(event, "node_id")] = _text(event, "reason")


def _released(run: Run, event: Event) -> None:
    """The canary has an answer: this task waits no more, and may begin with its fix."""
    task = run.tasks.get(_text(event, "task"))
    if task is not None:
        task.canary, task.base = "", _text(event, "base")


def _try_intended(run: Run, event: Event) -> None:
    task = run.tasks.get(_text(event, "task"))
    number = int(_number(event, "try"))
    if task is None or number != len(task.tries) + 1:
        return
    agent_name, base = _text(event, "agent_name"), _text(event, "base")
    task.tries.append(Try(number, agent_name, base, _time(event)))
    run.tries += 1
    run.consent = True  # journals of earlier versions do not say so
    run.integrated = False


def _try(run: Run, event: Event) -> Try | None:
    task = run.tasks.get(_text(event, "task"))
    number = int(_number(event, "try"))
    return task.tries[number - 1] if task and 0 < number <= len(task.tries) else None


def _try_launched(run: Run, event: Event) -> None:
    each = _try(run, event)
    if each is not None:
        each.agent_id, each.launched = _text(event, "agent_id"), _time(event)


def _reminded(run: Run, event: Event) -> None:
    each = _try(run, event)
    if each is not None:
        each.reminded = _time(event)


def _gathering(run: Run, event: Event) -> None:
    each = _try(run, event)
    if each is not None:
        told: Json = {"outcome": event.get("outcome"), "reason": _text(event, "reason")}
        each.ending = from_json(Ended, told)


def _try_ended(run: Run, event: Event) -> None:
    each = _try(run, event)
    if each is not None:
        if each.ended is not None:  # a human helped
            run.tasks[_text(event, "task")].round, run.integrated = run.round, False
        before = each.ended.spent if each.ended else Spending()
        each.ended = from_json(Ended, event.get("ended"))
        run.spent = run.spent + each.ended.spent - before
        each.ended_at = _time(event)
        each.verdict = None  # a human may have helped, and the try ended anew
        if each.intended >= run.paused_at and each.ended.outcome in (*ANSWERS, Outcome.BLOCKED):
            run.missed = 0  # whatever held the others back, it is over


def _verdict(run: Run, event: Event) -> None:
    each = _try(run, event)
    if each is not None:
        each.verdict = from_json(Verdict, event.get("verdict"))


def _integration_started(run: Run, event: Event) -> None:
    """Always from where its round began: picks of an unfinished integration do not count."""
    picks, evictions = run.kept
    run.picks, run.evictions, run.conflicts = run.picks[:picks], run.evictions[:evictions], []
    run.status, run.ended, run.integrated = "", 0.0, False
    for task in run.tasks.values():
        task.passes_with = ""
        task.evicted = "" if task.round == run.round else task.evicted


def _integrated(run: Run, event: Event) -> None:
    run.integrated = True


def _gated(run: Run, event: Event) -> None:
    run.gates[_text(event, "key")] = event.get("passed") is True
    run.shaky[_text(event, "key")] = tuple(str(each) for each in _list(event, "unsteady"))
    run.unsteady |= {*run.shaky[_text(event, "key")]}


def _picked(run: Run, event: Event) -> None:
    run.picks.append(from_json(Pick, event.get("pick")))


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
    run.conflicts.append(_text(event, "text"))


def _control(run: Run, event: Event) -> None:
    action = _text(event, "action")
    run.obeyed.add(_text(event, "order"))
    if action == "cancel":
        run.cancelled = True
    elif action == "pause":
        run.paused, run.paused_until = "paused by hand", 0.0
    elif action == "resume":
        _resumed(run, event)
    elif action == "retune":
        run.options = retuned(run.options, event.get("options"))
        if "max_agents" in _table(event, "options"):  # else an overload still counts
            run.slots = max(1, run.options.max_agents)


def retuned(options: Options, changes: Json) -> Options:
    """With some changed, of budgets also single limits. A ValueError tells what does not fit."""
    if not isinstance(changes, dict):
        raise ValueError("not an object")
    told = to_json(options)
    assert isinstance(told, dict)
    for name, value in changes.items():
        before = told.get(name)
        both = isinstance(before, dict) and isinstance(value, dict)
        told[name] = {**before, **value} if both else value  # type: ignore[dict-item]
    return from_json(Options, told)


def _slots(run: Run, event: Event) -> None:
    run.slots = max(1, int(_number(event, "slots")))


def _paused(run: Run, event: Event) -> None:
    run.paused, run.paused_until = _text(event, "reason"), _number(event, "until")
    run.missed, run.paused_at = int(_number(event, "missed")), _time(event)


def _resumed(run: Run, event: Event) -> None:
    run.paused, run.paused_until = "", 0.0


def _alert(run: Run, event: Event) -> None:
    run.alerts.append(_text(event, "text"))


def _run_ended(run: Run, event: Event) -> None:
    run.status, run.ended = _text(event, "status"), _time(event)
    run.result_branch = branch = _text(event, "branch")
    if branch and branch not in run.published:  # journals of earlier versions do not say where
        run.published[branch] = ("", run.picks[-1].commit if run.picks else run.base)


HANDLERS: dict[str, Callable[[Run, Event], None]] = {
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
    "published": _published,
    "integrated": _integrated,
    "try_intended": _try_intended,
    "try_launched": _try_launched,
    "reminded": _reminded,
    "gathering": _gathering,
    "try_ended": _try_ended,
    "verdict": _verdict,
    "integration_started": _integration_started,
    "gated": _gated,
    "picked": _picked,
    "evicted": _evicted,
    "conflict": _conflict,
    "control": _control,
    "slots": _slots,
    "paused": _paused,
    "resumed": _resumed,
    "alert": _alert,
    "run_ended": _run_ended,
}
