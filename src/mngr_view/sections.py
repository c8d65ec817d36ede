"""The sections of the first page. Each function returns a count and the content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mngr_tmr.integrate import messages, ranking
from mngr_tmr.journal.model import Eviction, Pick, Ruling, Task, Verdict
from mngr_tmr.run.words import counted, reason_of
from mngr_view.markup import Child, Html, cut, diff, el, folded, join, listed, pre, shortened, table
from mngr_view.view import View, kind_of
from mngr_view.words import NEEDY, badge, place

Part = tuple[int, list[Html]]
SHORT = 6
"""Entries of a list that are shown before you unfold the others."""
DIFFS, DIFF_LINES = 50, 400
"""Number of commits with a diff on the first page, and lines of each diff."""
OPEN_LINES = 40


def card(*children: Child) -> Html:
    return el("div", *children, class_="card")


def few(items: Sequence[Child]) -> Html:
    """Return the first items as a list, with the others to unfold."""
    rest = items[SHORT:]
    more = folded(f"{len(rest):,} more", listed(rest)) if rest else ""
    return join((listed(items[:SHORT]), more))


# failures at the start


def clusters(view: View) -> Part:
    """Return failures with a shared signature, the largest group first, then single ones."""
    groups: dict[str, list[str]] = {}
    for node_id, baseline in view.run.baseline.items():
        if baseline.signature and baseline.standing in ("failed", "flaky"):
            groups.setdefault(baseline.signature, []).append(node_id)
    shared = sorted((g for g in groups.items() if len(g[1]) > 1), key=lambda g: -len(g[1]))
    alone = [tests[0] for tests in groups.values() if len(tests) == 1]
    content = [_cluster(view, signature, tests) for signature, tests in shared]
    if alone:
        items = [
            join((view.test_link(each), el("div", _signature(view, each), class_="meta")))
            for each in alone
        ]
        message = "a message of its own" if len(alone) == 1 else "different messages"
        title = f"{counted(len(alone), 'failure')} with {message}"
        content.append(folded(title, listed(items), open=not shared and len(alone) <= 2 * SHORT))
    return sum(len(tests) for tests in groups.values()), content


def _signature(view: View, node_id: str) -> str:
    baseline = view.run.baseline[node_id]
    flaky = "flaky: " if baseline.standing == "flaky" else ""
    return f"{flaky}{shortened(baseline.signature, 300)}"


def _cluster(view: View, signature: str, tests: list[str]) -> Html:
    tasks = [view.by_node[each] for each in tests if each in view.by_node]
    became = Counter(ranking.ending_of(task) for task in tasks)
    standing = [
        join((badge(word), f" {number}"))
        for word, number in sorted(became.items(), key=lambda each: place(each[0]))
    ]
    told = next((run.message for run in view.run.baseline[tests[0]].runs if run.message), "")
    title = f"{len(tests):,} tests fail the same way: "
    return card(
        el("h3", title, el("code", shortened(signature, 300))),
        el("p", join(standing, " ")),
        few([view.test_link(each) for each in tests]),
        folded("Output of the first test", pre(told, 8000)) if told else "",
    )


# the branch


def repairs(view: View) -> Part:
    picks = view.repairs
    return len(picks), [_repair(view, n, pick) for n, pick in enumerate(picks, 1)]


def _repair(view: View, rank: int, pick: Pick) -> Html:
    tasks = view.run.tasks_of(pick)
    score = f" · score {pick.score:g} · "
    return card(
        el("h3", f"{rank}. {pick.subject}", id=f"c-{pick.commit[:12]}"),
        el("p", view.commit_link(pick), score, agents(tasks), class_="meta"),
        _reason(pick, tasks),
        _turned_green(view, tasks),
        _flags(tasks),
        folded("Evidence", evidence(view, pick, "")),
        _short_diff(view, pick) if rank <= DIFFS else "",
    )


def agents(tasks: Sequence[Task]) -> str:
    names = [task.telling.agent_name for task in tasks if task.telling]
    return f"{'agent' if len(names) == 1 else 'agents'} {', '.join(names)}"


def _reason(pick: Pick, tasks: Sequence[Task]) -> Child:
    """Return the summary of the first agent, without a line that repeats the subject."""
    ended = tasks[0].telling.ended if tasks and tasks[0].telling else None
    first, _, rest = ended.summary.strip().partition("\n") if ended else ("", "", "")
    same = first.rstrip(".").casefold() == pick.subject.casefold()
    text = rest.strip() if same else f"{first}\n{rest}".strip()
    return el("p", cut(text, 2000), class_="text") if text else None


def _turned_green(view: View, tasks: Sequence[Task]) -> Child:
    green = sorted({test for task in tasks if task.verdict for test in task.verdict.turned_green})
    if not green:
        return None
    return join((el("p", "Fixed tests:"), few([view.test_link(each) for each in green])))


def _flags(tasks: Sequence[Task]) -> Child:
    return flagged([each for task in tasks if task.verdict for each in task.verdict.flags])


def flagged(flags: Sequence[str]) -> Child:
    """Return the lines of a change that look like special cases for a test."""
    if not flags:
        return None
    lines = [el("code", shortened(each, 300)) for each in dict.fromkeys(flags)]
    return join((el("p", "Special cases for tests, to be reviewed:", class_="warn"), listed(lines)))


def expectations(view: View) -> Part:
    """Return changed expectations next to the cited blocks; the reader decides which is right."""
    picks = [pick for pick in view.run.picks if pick.kind == "expectation"]
    return len(picks), [_expectation(view, pick) for pick in picks]


def _expectation(view: View, pick: Pick) -> Html:
    tasks = view.run.tasks_of(pick)
    block = next((task.verdict.block for task in tasks if task.verdict), "")
    cited = pre(block, 8000) if block else el("p", "The test cites no block.", class_="faint")
    text = view.repository.diff(view.parent(pick), pick.commit)
    sides = (el("div", el("p", "The test cites:"), cited), el("div", diff(text, DIFF_LINES)))
    told = "The implementation was not fixed: the test passes only because the test was changed."
    return card(
        el("h3", pick.subject, id=f"c-{pick.commit[:12]}"),
        el("p", view.commit_link(pick), " · ", agents(tasks), class_="meta"),
        el("p", told),
        el("p", *(view.test_link(task.node_id) for task in tasks)),
        el("div", *sides, class_="beside two"),
        _flags(tasks),
        folded("Evidence", evidence(view, pick, "")),
    )


def held(view: View) -> Part:
    """Return the changes that are not on the branch because they look like special cases."""
    found = ranking.held(view.run)
    return len(found), [_held(view, task, verdict) for task, verdict in found]


def _held(view: View, task: Task, verdict: Verdict) -> Html:
    commit = verdict.implementation or verdict.expectation
    text = view.repository.diff(ranking.base_of(task), commit)
    ended = task.telling.ended if task.telling else None
    summary = cut(ended.summary, 2000) if ended else ""
    return card(
        el("h3", view.test_link(task.node_id)),
        el("p", agents([task]), class_="meta"),
        el("p", summary, class_="text") if summary else "",
        flagged(verdict.flags),
        el("p", "To apply it: ", el("code", messages.taking(view.run, task))),
        folded("Evidence", view.evidence(verdict.proofs, "")) if verdict.proofs else "",
        folded("Diff", diff(text, DIFF_LINES), open=text.count("\n") <= OPEN_LINES),
    )


def evidence(view: View, pick: Pick, up: str) -> Html:
    """Return the checks of the first agent's change, and of the gate of this tree."""
    task = view.run.tasks.get(pick.tasks[0]) if pick.tasks and pick.kind != "other" else None
    own = task.verdict.proofs if task and task.verdict else ()
    return view.evidence((*own, *view.run.gate(pick.tree).proofs), up)


def _short_diff(view: View, pick: Pick) -> Html:
    text = view.repository.diff(view.parent(pick), pick.commit)
    short = text.count("\n") <= OPEN_LINES
    return folded("Diff", diff(text, DIFF_LINES), open=short) if text else Html()


def changes(view: View) -> Part:
    """Return the commit with all test and documentation changes."""
    picks = [pick for pick in view.run.picks if pick.kind == "other"]
    return sum(len(pick.tasks) for pick in picks), [_change(view, pick) for pick in picks]


def _change(view: View, pick: Pick) -> Html:
    tasks = view.run.tasks_of(pick)
    rows = [
        (
            view.test_link(task.node_id),
            task.latest.agent_name if task.latest else "",
            el("div", _said(task), class_="text"),
        )
        for task in tasks
    ]
    return card(
        el("h3", pick.subject, id=f"c-{pick.commit[:12]}"),
        el("p", "Full diff: ", view.commit_link(pick), class_="meta"),
        table(("Test", "Agent", "Summary"), rows),
        folded("Evidence", evidence(view, pick, "")),
    )


def _said(task: Task) -> str:
    ended = task.latest.ended if task.latest else None
    return cut(ended.summary, 600) if ended else ""


# what requires help


def help_wanted(view: View) -> Part:
    """Return the tasks that require help, grouped by reason."""
    groups: dict[str, list[Task]] = {}
    for task in view.run.tasks.values():
        ending = ranking.ending_of(task)
        if ending in NEEDY:
            groups.setdefault(kind_of(task, ending), []).append(task)
    ordered = sorted(groups.values(), key=lambda g: (place(ranking.ending_of(g[0])), -len(g)))
    total = sum(len(group) for group in ordered)
    if not total:
        return 0, []
    hint = el(
        "p",
        "Connect to an agent, help it and let it publish its outcome. Then add its work with ",
        el("code", f"mngr tmr integrate {view.run.name}"),
        ".",
        class_="meta",
    )
    return total, [hint, *(_stuck(view, group) for group in ordered)]


def _stuck(view: View, group: list[Task]) -> Html:
    first = group[0]
    ended = first.latest.ended if first.latest else None
    word = ranking.ending_of(first)
    title = [badge(word), f" {counted(len(group), 'agent')}" if len(group) > 1 else ""]
    needs = f"Requires: {cut(ended.needs, 2000)}" if ended and ended.needs else ""
    return card(
        el("h3", *title),
        el("p", cut(reason_of(first), 2000), class_="text"),
        el("p", needs, class_="text") if needs else "",
        few([_stuck_agent(view, task) for task in group]),
    )


def _stuck_agent(view: View, task: Task) -> Html:
    if task.latest is None:
        return join((view.test_link(task.node_id), " has no agent."))
    command = el("code", f"mngr connect {task.latest.agent_name}")
    return join((view.test_link(task.node_id), Html("<br>"), command))


def not_taken(view: View) -> Part:
    refused = [
        _refusal(view, task, each.ended.ref if each.ended else "", each.verdict)
        for task in view.run.tasks.values()
        for each in task.tries
        if each.verdict and each.verdict.ruling in (Ruling.REFUSED, Ruling.UNDECIDED)
    ]
    evicted = [_eviction(view, each) for each in view.run.evictions]
    return _table(("Test", "", "Reason", "Ref"), [*evicted, *refused])


def _table(heads: Sequence[str], rows: Sequence[list[Child]]) -> Part:
    return len(rows), [table(heads, rows)] if rows else []


def _refusal(view: View, task: Task, ref: str, verdict: Verdict) -> list[Child]:
    kept = el("code", ref) if ref else ""
    why = shortened(verdict.reason, 400)
    return [view.test_link(task.node_id), badge(str(verdict.ruling)), why, kept]


def _eviction(view: View, each: Eviction) -> list[Child]:
    what = join((badge("evicted"), f" {each.part}"))
    why, kept = shortened(each.reason, 400), el("code", each.ref) if each.ref else ""
    return [view.task_link(each.task), what, why, kept]


def conflicts(view: View) -> Part:
    """Return the conflicts for which an agent was asked, or would have been."""
    found = view.run.conflicts
    return len(found), [few([shortened(each, 400) for each in found])] if found else []


def confusing(view: View) -> Part:
    """Return the commands that did not do what agents expected."""
    rows: list[list[Child]] = []
    for task in view.run.tasks.values():
        ended = task.latest.ended if task.latest else None
        for command, tried, happened in ended.confusing if ended else ():
            told = (shortened(tried, 500), shortened(happened, 500))
            test = view.test_link(task.node_id)
            rows.append([el("code", shortened(command, 200)), *told, test])
    return _table(("Command", "Attempt", "Result", "Test"), rows)
