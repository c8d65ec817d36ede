"""The first page of a report: the results of the run, and what requires attention."""

from __future__ import annotations

from mngr_tmr.integrate import messages, ranking
from mngr_tmr.journal.model import Run, Task
from mngr_tmr.run import costs, forecast, publishing
from mngr_tmr.run.words import counted, reason_of
from mngr_view import sections
from mngr_view.markup import Child, Html, el, join, link, listed, page, shortened
from mngr_view.view import View
from mngr_view.words import badge, in_order, lasting, moment, place, used

Section = tuple[str, str, int, list[Html]]
"""anchor, title, count, content"""


def index(view: View) -> str:
    run = view.run
    shown = [each for each in _sections(view) if each[3]]
    content = [
        join((el("h2", f"{title} ({number:,})", id=anchor), *body))
        for anchor, title, number, body in shown
    ]
    return page(
        f"{run.name}: {view.stage}",
        el("h1", run.name or "A run", " ", badge_of(view)),
        _about(view),
        _gist(view),
        _tiles(view),
        _spending(run),
        *(el("p", text, class_=f"notice {mood}") for mood, text in _notices(view)),
        _contents(shown),
        *content,
        _all_tests(view),
        el("script", src="page.js"),
    )


def badge_of(view: View) -> Html:
    moods = {"done": "good", "nothing to do": "good", "failed": "bad", "cancelled": "warn"}
    mood = moods.get(view.stage, "warn" if view.stage == "interrupted" else "busy")
    return el("span", view.stage, class_=f"badge {mood}")


def _about(view: View) -> Html:
    run = view.run
    since = f"started {moment(run.started)}"
    until = f"ended {moment(run.ended)}" if run.ended else f"as of {moment(view.reading.last)}"
    what = [
        el("span", since),
        el("span", until),
        el(
            "span", f"{run.options.agent_type or 'agents'} on {run.options.provider or 'this host'}"
        ),
        el("span", "from ", el("code", run.base[:12]), f" of {run.repository}"),
    ]
    if run.result_branch and run.picks:
        what.append(el("span", "branch ", el("code", run.result_branch)))
    return el("p", join(what, " · "), class_="meta")


def _gist(view: View) -> Child:
    """Return the result in a sentence, and the commands that show and merge the branch."""
    run = view.run
    if not run.picks:
        return None
    branch = run.result_branch
    shown = ("To review it: ", el("code", f"git log -p {run.base[:12]}..{branch}"))
    merged = ("To merge it: ", el("code", f"git merge {branch}"))
    commands = el("p", *shown, el("br"), *merged) if branch else None
    return join((el("p", el("b", messages.gist(run))), commands))


def _tiles(view: View) -> Html:
    tiles = [
        el("li", link(join((el("b", number), word)), "", anchor=_anchor(word)), class_="tile")
        for word, number in in_order(view.run)
    ]
    return el("ul", *tiles, class_="tiles")


def _anchor(ending: str) -> str:
    return f"end-{ending.replace(' ', '-')}"


def _spending(run: Run) -> Html:
    tries = [each for task in run.tasks.values() for each in task.tries]
    said = [
        f"{counted(len(run.tests), 'test')} collected",
        f"{len(run.tasks):,} selected",
        counted(len(tries), "agent"),
        *used(run, run.spent),
        f"{lasting(costs.worked(costs.ends(run.tasks.values())))} of agent time",
    ]
    if run.ended:
        said.append(f"{lasting(run.ended - run.started)} total")
    if run.hosts:
        hosts = sorted(run.hosts.items())
        each = ", ".join(
            f"{name} {lasting(host.seconds)} for {counted(host.agents, 'agent')}"
            for name, host in hosts
        )
        total = lasting(sum(host.seconds for host in run.hosts.values()))
        said.append(f"{total} of {counted(len(hosts), 'host')} ({each})")
        paid = costs.of_hosts(run)
        said += [] if paid is None else [f"${paid:.2f} for hosts"]
    expected = [before for _, before, _ in forecast.compared(run)]
    told = el("p", f"Forecast: {', '.join(expected)}", class_="meta") if expected else ""
    return join((el("p", join(said, " · ")), told))


def _notices(view: View) -> list[tuple[str, str]]:
    run, said = view.run, []
    if view.stage == "interrupted":
        told = f"The run was interrupted. To continue: mngr tmr resume {run.name}"
        said.append(("warn", told))
    elif not run.status:
        said.append(("busy", "The run is in progress. Reload the page to update it."))
    if run.status == "nothing to do":
        said.append(("good", "No changes were required."))
    if run.status == "failed":
        said.append(("bad", f"The run {publishing.in_words(run)}. The reasons are below."))
    said += [("bad", f"Could not be collected: {error}") for error in run.collect_errors]
    if run.unsteady:
        told = ", ".join(sorted(run.unsteady)[:10])
        said.append(("warn", f"Flaky at a gate: {told}"))
    return said + [("warn", f"Alert: {text}") for text in run.alerts]


def _sections(view: View) -> list[Section]:
    return [
        ("clusters", "Failures in the baseline", *sections.clusters(view)),
        ("repairs", "Implementation fixes, best first", *sections.repairs(view)),
        ("expectations", "Changed expectations, for you to decide", *sections.expectations(view)),
        ("held", "Held for review, not on the branch", *sections.held(view)),
        ("changes", "Test and documentation changes", *sections.changes(view)),
        ("help", "Agents that require your help", *sections.help_wanted(view)),
        ("left", "Refused and evicted changes", *sections.not_taken(view)),
        ("conflicts", "Conflicts between changes", *sections.conflicts(view)),
        ("confusing", "Confusing spots", *sections.confusing(view)),
    ]


def _contents(shown: list[Section]) -> Html:
    links = [link(f"{title} ({number:,})", "", anchor=name) for name, title, number, _ in shown]
    return el("p", *links, link("All tests", "", anchor="tests"), class_="nav")


# every test, in groups, which the tiles link to


def _all_tests(view: View) -> Html:
    groups: dict[str, list[Task]] = {}
    for task in view.run.tasks.values():
        groups.setdefault(ranking.ending_of(task), []).append(task)
    parts: list[Child] = [
        el("h2", "All tests", id="tests"),
        el("input", id="filter", type="search", placeholder="Filter", hidden=True),
    ]
    for ending in sorted(groups, key=place):
        rows = [_row(view, task, ending) for task in groups[ending]]
        parts.append(_group(ending, rows))
    return el("div", *parts, _left_out(view))


def _group(ending: str, rows: list[Html]) -> Html:
    heads = [el("th", "Test"), el("th", "Before"), el("th", "Result")]
    heads += [el("th", "Tokens", class_="n"), el("th", "Time", class_="n"), el("th", "Reason")]
    columns = [el("col", class_=each) for each in ("test", "was", "now", "n", "n", "why")]
    table = el(
        "table",
        el("colgroup", *columns),
        el("thead", el("tr", *heads)),
        el("tbody", *rows),
        class_="tests",
    )
    title = el("h3", badge(ending), f" {counted(len(rows), 'test')}", id=_anchor(ending))
    return el("section", title, table, class_="ending")


def _row(view: View, task: Task, ending: str) -> Html:
    baseline = view.run.baseline.get(task.node_id)
    was = baseline.standing if baseline else ""
    why = shortened(reason_of(task), 160)
    ended = costs.ends([task])
    spent, seconds = costs.spent(ended), costs.worked(ended)
    find = f"{task.node_id} {ending} {was} {why}".lower()
    return el(
        "tr",
        el("td", view.test_link(task.node_id)),
        el("td", badge(was) if was else "", class_="was"),
        el("td", badge(ending), class_="now"),
        el("td", f"{spent.tokens:,}" if spent.tokens else "", class_="n"),
        el("td", lasting(seconds) if seconds else "", class_="n"),
        el("td", why),
        data_find=find,
    )


def _left_out(view: View) -> Child:
    """Return the tests without an agent, grouped by reason."""
    reasons: dict[str, list[str]] = {}
    for node_id, reason in view.run.left_out.items():
        reasons.setdefault(reason, []).append(node_id)
    if not reasons:
        return None
    groups = [
        el(
            "details",
            el("summary", badge("not selected"), f" {counted(len(tests), 'test')}: {reason}"),
            listed(view.test_link(each) for each in tests),
        )
        for reason, tests in sorted(reasons.items(), key=lambda each: -len(each[1]))
    ]
    return join(groups)
