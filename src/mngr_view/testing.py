"""The page of one test: specification, baseline, result and all attempts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mngr_tmr.integrate import ranking
from mngr_tmr.journal.model import Baseline, Ended, Ruling, Task, Try, Verdict
from mngr_tmr.run.words import counted, remark_of
from mngr_view import artifacts
from mngr_view.artifacts import Recorded, Spoken
from mngr_view.markup import (
    Child,
    Html,
    cut,
    diff,
    el,
    folded,
    join,
    link,
    listed,
    page,
    pre,
    table,
)
from mngr_view.sections import flagged
from mngr_view.view import View, exit_code
from mngr_view.words import badge, lasting, moment, used

UP = "../"
TURNS, TURN_LIMIT = 400, 20_000
DIFF_LINES = 3000
VERIFIED = "Verification, in a clean checkout with the change:"


def test_page(view: View, node_id: str) -> str:
    task = view.by_node.get(node_id)
    return page(
        node_id,
        el("p", link(f"← {view.run.name}", "..", "index.html"), class_="nav"),
        el("h1", node_id),
        _became(view, node_id, task),
        _contract(view, node_id),
        _baseline(view.run.baseline.get(node_id)),
        *_tries(view, task),
        up=UP,
    )


def _became(view: View, node_id: str, task: Task | None) -> Html:
    baseline = view.run.baseline.get(node_id)
    was = badge(baseline.standing) if baseline else "not run yet"
    if task is None:
        why = view.run.left_out.get(node_id, "")
        now = badge("not selected") if why else badge("unfinished")
        return el("p", "Baseline: ", was, " Result: ", now, f" {why}" if why else "")
    lines: list[Child] = [join(("Baseline: ", was, " Result: ", badge(ranking.ending_of(task))))]
    lines += [f"No agent was started for this test: {task.skipped}"] if task.skipped else []
    if task.canary:
        lines.append(join(("Waits for its canary ", view.task_link(task.canary, UP))))
    for pick in view.picks.get(task.id, []):
        lines.append(join(("On the branch: ", view.commit_link(pick, UP), f" {pick.subject}")))
    for each in view.evictions.get(task.id, []):
        kept = join((", stored as ", el("code", each.ref))) if each.ref else ""
        lines.append(join((f"Evicted ({each.part}): {each.reason}", kept)))
    return el("div", *(el("p", line) for line in lines))


def _contract(view: View, node_id: str) -> Html:
    """Return the cited block and the docstring at the base commit."""
    test = view.run.tests.get(node_id)
    block = view.repository.block(view.run.base, node_id)
    text = (block or (test.doc if test else "")).strip()
    none = "The test cites no block and has no docstring."
    said = pre(text, 20_000) if text else el("p", none, class_="faint")
    return join((el("h2", "Specification"), said))


def _baseline(baseline: Baseline | None) -> Child:
    if baseline is None:
        return None
    parts: list[Child] = [el("h2", "Baseline")]
    seen: set[str] = set()
    for number, run in enumerate(baseline.runs, 1):
        what = f" {run.exception}" if run.exception else ""
        where = f" in {run.stage}{f', {run.frame}' if run.frame else ''}" if run.stage else ""
        took = f" {lasting(run.seconds)}{what}{where}"
        line = join((f"Run {number}: ", badge(run.outcome), took))
        told: Child = pre(run.message, 20_000) if run.message else ""
        if run.signature and run.signature in seen:
            told = folded("Same failure as before", told)
        seen.add(run.signature)
        parts += [el("p", line), told]
    if baseline.signature:
        parts.append(el("p", "Signature: ", el("code", baseline.signature), class_="meta"))
    return join(parts)


# attempts


def _tries(view: View, task: Task | None) -> list[Html]:
    """Return the attempts, newest first."""
    return [_try(view, task, each) for each in reversed(task.tries)] if task else []


def _try(view: View, task: Task, each: Try) -> Html:
    ended = each.ended
    folder = view.source / ended.artifacts if ended and ended.artifacts else None
    runs, older = recordings(view, task, each)
    turns = artifacts.conversation(folder) if folder else []
    name = el("code", each.agent_name)
    return join(
        (
            el("h2", f"Attempt {each.number}: ", name, id=f"try-{each.number}"),
            _ending(view, each),
            _verdict(view, each),
            _work(view, each),
            *(_recorded(view, name, run, open=n == 0) for n, (name, run) in enumerate(runs)),
            el("p", f"{older} older runs of the test are hidden.") if older else None,
            _conversation(turns),
        )
    )


def _ending(view: View, each: Try) -> Html:
    ended = each.ended
    begun = f"started {moment(each.launched)}" if each.launched else "not started yet"
    if ended is None:
        return el("p", badge("unfinished"), f" {begun}", class_="meta")
    figures = [begun, lasting(ended.seconds), *used(view.run, ended.spent)]
    parts: list[Child] = [
        el("p", badge(str(ended.outcome)), " ", join(figures, " · "), class_="meta"),
        el("p", cut(ended.reason, 4000), class_="text") if ended.reason else None,
        el("p", f"Requires: {cut(ended.needs, 4000)}", class_="text") if ended.needs else None,
        el("p", cut(ended.summary, 32_000), class_="text") if ended.summary else None,
        _kept(view, each, ended),
    ]
    return join(parts)


def _kept(view: View, each: Try, ended: Ended) -> Child:
    parts: list[Child] = []
    if ended.ref:
        parts.append(el("p", "Commits: ", el("code", ended.ref), class_="meta"))
    if each.verdict is None or each.verdict.ruling in ranking.NOT_TAKEN:
        command = el("code", f"mngr connect {each.agent_name}")
        parts.append(el("p", "To attach: ", command, class_="meta"))
    if each.verdict is None or not each.verdict.tests_added:  # otherwise verification lists them
        parts.append(_named(view, "Added tests, as reported by the agent", ended.tests_added))
    if ended.confusing:
        told = [
            join((el("code", c), f" {cut(tried, 2000)} ", el("em", cut(happened, 2000))))
            for c, tried, happened in ended.confusing
        ]
        parts.append(folded("Confusing spots", listed(told), open=True))
    return join(parts)


def _verdict(view: View, each: Try) -> Child:
    verdict = each.verdict
    if verdict is None:
        return None
    moods = {Ruling.ACCEPTED: "good", Ruling.REFUSED: "bad"}
    word = el("span", str(verdict.ruling), class_=f"badge {moods.get(verdict.ruling, 'quiet')}")
    return join(
        (
            el("h3", "Verification: ", word),
            el("p", cut(remark_of(verdict), 4000), class_="text") if remark_of(verdict) else None,
            listed(verdict.remarks) if verdict.remarks else None,
            el("p", f"Measured: {verdict.mutants}") if verdict.mutants else None,
            flagged(verdict.flags),
            _named(view, "Fixed tests", verdict.turned_green),
            _named(view, "Changed tests", verdict.tests_changed),
            _named(view, "Added tests", verdict.tests_added),
            view.evidence(verdict.proofs, UP) if verdict.proofs else None,
        )
    )


def _named(view: View, title: str, tests: tuple[str, ...]) -> Child:
    if not tests:
        return None
    return el("p", f"{title}: ", join((view.test_link(each, UP) for each in tests), ", "))


def _work(view: View, each: Try) -> Child:
    """Return the diffs of the verified parts, or of all commits if the attempt was refused."""
    return join(
        folded(title, diff(text, DIFF_LINES), open=text.count("\n") < 200)
        for title, commit in _commits(each)
        if (text := view.repository.diff(each.base, commit))
    )


def _commits(each: Try) -> list[tuple[str, str]]:
    found = [(title, commit) for title, commit in _parts(each.verdict) if commit]
    if not found and each.ended is not None and each.ended.ref:
        return [("Commits of the agent", each.ended.head)]
    return found


def _parts(verdict: Verdict | None) -> list[tuple[str, str]]:
    if verdict is None:
        return []
    return [
        ("Implementation changes", verdict.implementation),
        ("Test and documentation changes", verdict.other),
        ("Changed expectation", verdict.expectation),
    ]


def verified(each: Try) -> list[tuple[str, str]]:
    """Return the (base, commit) pairs of an attempt's diffs."""
    return [(each.base, commit) for _, commit in _parts(each.verdict) if commit]


# runs of the test: first that of verification, then the agent's own

Shown = tuple[str, Recorded]
"""A safe name that is unique within the report, and a run."""


def recordings(view: View, task: Task, each: Try) -> tuple[list[Shown], int]:
    """Return the runs to show, and the number of older ones."""
    stem = f"{task.id}-{each.number}"
    shown: list[Shown] = []
    older = 0
    if each.verdict is not None and each.verdict.artifacts:
        runs, _ = artifacts.recorded(view.source / each.verdict.artifacts, task.node_id)
        shown += [(f"{stem}-verified", replace(run, name=VERIFIED)) for run in runs[:1]]
    if each.ended is not None and each.ended.artifacts:
        runs, older = artifacts.recorded(view.source / each.ended.artifacts, task.node_id)
        own = [replace(run, name=f"The agent's run {run.name}") for run in runs]
        shown += [(f"{stem}-{number}", run) for number, run in enumerate(own, 1)]
    return shown, older


def cast_names(name: str, run: Recorded) -> list[tuple[str, Path]]:
    return [(f"{name}-{n}", path) for n, path in enumerate(run.casts, 1)]


def _recorded(view: View, name: str, run: Recorded, *, open: bool) -> Html:
    casts = [_cast(view, cast, path) for cast, path in cast_names(name, run)]
    commands = [
        (el("code", cut(text, 2000)), "" if code is None else exit_code(code))
        for text, code in run.commands
    ]
    noop = ", with commands that do nothing" if run.noop else ""
    took = f" {lasting(run.seconds)}{noop}"
    title = join((f"{run.name} ", badge(run.outcome or "unknown"), took))
    transcript = el("div", pre(run.transcript)) if run.transcript.strip() else ""
    beside = el("div", transcript, *casts, class_="beside two" if casts else "beside")
    listing = folded("Commands", table(("Command", "Exit code"), commands)) if commands else ""
    return folded(title, listing, beside, open=open)


def _cast(view: View, name: str, path: Path) -> Html:
    file = link(path.name, "..", "casts", f"{name}.cast")
    if not view.plays:
        return el("div", el("p", "Recording: ", file))
    own = link("on its own page", "..", "casts", f"{name}.html")
    # The recording is untrusted: its page may run the player, but not navigate.
    frame = el(
        "iframe",
        src=f"../casts/{name}.html",
        sandbox="allow-scripts allow-same-origin",
        loading="lazy",
        title=path.name,
    )
    return el("div", frame, el("p", "Recording ", file, ", ", own, class_="meta"))


def _conversation(turns: list[Spoken]) -> Child:
    if not turns:
        return None
    left = max(0, len(turns) - TURNS)
    parts = [el("p", f"{left} turns at the start are hidden.")] if left else []
    parts += [_turn(turn) for turn in turns[left:]]
    return folded(f"Conversation, {counted(len(turns), 'turn')}", *parts)


WHO = {"user_message": "Prompt", "assistant_message": "Agent", "tool_result": "Result"}


def _turn(turn: Spoken) -> Html:
    known = turn.who if turn.who in WHO else ""
    text = cut(turn.text, TURN_LIMIT)
    told = folded("Result", pre(text)) if known == "tool_result" else el("div", text, class_="text")
    used = [
        folded(join(("Uses ", el("code", name))), pre(given, TURN_LIMIT))
        for name, given in turn.tools
    ]
    head = "" if known == "tool_result" else el("b", WHO.get(turn.who, turn.who))
    return el(
        "div", head, " ", el("span", turn.time, class_="meta"), told, *used, class_=f"turn {known}"
    )
