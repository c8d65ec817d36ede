"""Commit messages and the text of a pull request. All numbers are computed by code."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from mngr_outcome.outcome import cleaned
from mngr_tmr.integrate import ranking
from mngr_tmr.integrate.ranking import Repair
from mngr_tmr.journal.model import Outcome, Run, Task, Verdict
from mngr_tmr.run.words import counted, result_of
from mngr_tmr.verify.testchange import NOOP, OLD_NOOP

WIDTH = 72
GATED = (
    "Every commit was tested in a clean checkout: all tests that passed before, and all tests that "
    "the commit claims to fix, pass at that commit."
)

EXPECTATION = (
    "The implementation was not fixed: the test passes only because the test itself was changed. "
    "Compare it with the block that it cites."
)
HELD = (
    "These changes make their tests pass, but a line of each looks like a special case for a test. "
    "Read the line. To apply the change, run its command in the repository of the run."
)
UNSTEADY = (
    "Flaky tests: they failed at a gate and passed when run again, or failed without these commits "
    "too. They did not evict any change:"
)


def others(groups: Sequence[Sequence[Task]], shaky: Sequence[str] = ()) -> tuple[str, str]:
    """Return subject and body of the commit with all test and documentation changes."""
    verdicts = [task.verdict for group in groups for task in group if task.verdict]
    changed = {test for verdict in verdicts for test in verdict.tests_changed}
    added = {test for verdict in verdicts for test in verdict.tests_added}
    counts = [f"{counted(len(changed), 'test')} changed"] if changed else []
    counts += [f"{counted(len(added), 'test')} added"] if added else []
    subject = f"Update tests and documentation: {', '.join(counts)}"
    lines = [line for group in groups for line in _item(group)]
    return subject.removesuffix(": ")[:100], "\n".join([*lines, *_shaky(shaky)])


def _item(group: Sequence[Task]) -> list[str]:
    task = group[0]
    measured = [_noticed(task.verdict), task.verdict.mutants] if task.verdict else []
    lines = [f"  Measured: {each}" for each in measured if each]
    return [f"- {task.node_id}", *_said(_why(task)), *lines, f"  {_by(group)}"]


def _noticed(verdict: Verdict) -> str:
    codes = {proof.what: proof.exit_code for proof in verdict.proofs}
    if codes.get(OLD_NOOP) == 0 and codes.get(NOOP):
        return "if the commands do nothing, the old tests pass and the new tests fail"
    return ""


def repair(run: Run, each: Repair, shaky: Sequence[str] = ()) -> tuple[str, str]:
    task = run.tasks[each.task]
    why = _why(task)
    subject = _subject(why) or f"Fix {task.node_id}"
    return subject, "\n".join(
        [
            *_quotation(_rest(why, subject)),
            *_listed("Fixed tests:", each.turned_green),
            *_listed("Added tests:", each.added),
            *_evidence(task),
            *_shaky(shaky),
            _scored(each),
            _by([run.tasks[each] for each in each.tasks]),
        ]
    )


def expectation(task: Task, shaky: Sequence[str] = ()) -> tuple[str, str]:
    """Return subject and body of the commit with a changed expectation."""
    block = task.verdict.block if task.verdict else ""
    subject = f"Expectation changed: {task.node_id.rpartition('::')[2]}"
    return textwrap.shorten(subject, WIDTH, placeholder=" …"), "\n".join(
        [
            *_wrapped(EXPECTATION, WIDTH),
            "",
            "The test cites:",
            *textwrap.indent(_plain(block) or "(nothing)", "    ").splitlines(),
            "",
            *_quotation(_why(task)),
            *_evidence(task),
            *_shaky(shaky),
            _by([task]),
        ]
    )


def held(task: Task) -> tuple[str, str]:
    """Return subject and body of the commit with a change that is held for review."""
    why = _why(task)
    subject = _subject(why) or f"Fix {task.node_id}"
    said = _quotation(_rest(why, subject))
    return subject, "\n".join([*said, *_evidence(task), _by([task])])


def _evidence(task: Task) -> list[str]:
    """Return the evidence of verification, and the flagged lines."""
    verdict = task.verdict
    assert verdict is not None
    proofs = sorted(verdict.proofs, key=lambda each: "before" not in each.what)
    lines = [f"- {proof.what}: {result_of(proof)}" for proof in proofs]
    lines += [f"- {verdict.mutants}"] if verdict.mutants else []
    lines += [f"- {_in_one_line(each)}" for each in verdict.remarks]
    flags = map(_in_one_line, verdict.flags)
    flagged = _listed("Flagged for review, as special cases for tests:", flags)
    return [f"Evidence, for {task.node_id}:", *dict.fromkeys(lines), "", *flagged]


def _shaky(tests: Sequence[str]) -> list[str]:
    title = "Flaky at the gate (passed when run again, or failed without this commit):"
    return _listed(title, tests)


def _listed(title: str, items: Iterable[str]) -> list[str]:
    """Return a title and its list; nothing without items."""
    lines = [f"- {each}" for each in items]
    return [title, *lines, ""] if lines else []


def _rest(why: str, subject: str) -> str:
    """Return the part of the text that is not in the subject."""
    first, _, rest = why.strip().partition("\n")
    text = why if _subject(first).endswith("…") or not rest.strip() else rest
    text = text.strip()
    return "" if text.rstrip(".").casefold() == subject.casefold() else text


def _quotation(text: str) -> list[str]:
    return ["From the agent:", "", *_said(text), ""] if text.strip() else []


def _said(text: str) -> list[str]:
    """Return the text as a quotation, so that it cannot pass for text of mngr."""
    return [f"  > {line}".rstrip() for line in _wrapped(_plain(text).strip(), WIDTH - 4)]


REFERENCE = re.compile(r"#(?=\d)|\bGH-(?=\d)|(?<=/issues/)(?=\d)|(?<=/pull/)(?=\d)", re.IGNORECASE)


SKIP = re.compile(r"\[(?=[\w -]*\b(?:skip|no ci)\b[\w -]*\])|NO_(?=CI)", re.IGNORECASE)
"""The beginning of `[skip ci]`, `[no ci]`, `***NO_CI***` and the like."""


def _plain(text: str) -> str:
    """Return text of an agent without mentions, issue references and words that skip checks."""
    apart = REFERENCE.sub(lambda found: f"{found[0]} ".replace("- ", " "), cleaned(text, 4000))
    apart = SKIP.sub(lambda found: found[0].replace("_", " ").replace("[", "[ "), apart)
    return apart.replace("@", "(at)")


def _in_one_line(text: str) -> str:
    return " ".join(_plain(text).split())


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap each line separately, so that existing line breaks are kept."""
    return [piece for line in text.splitlines() for piece in textwrap.wrap(line, width) or [""]]


def _scored(each: Repair) -> str:
    found = f"{counted(len(each.turned_green), 'test')}, {counted(len(each.tasks), 'agent')}"
    size = f"{counted(each.lines, 'line')} in {counted(each.files, 'file')}"
    return f"Score: {each.score:g} ({found}, {size})"


def _subject(why: str) -> str:
    first = _plain(why).strip().splitlines()[0] if why.strip() else ""
    sentence = " ".join(first.split(". ")[0].rstrip(".").split())
    if sentence.partition(" ")[0].isalpha():  # not a name in the code, such as `to_json`
        sentence = sentence[:1].upper() + sentence[1:]
    if len(sentence) <= WIDTH:
        return sentence
    cut = textwrap.shorten(sentence, WIDTH, placeholder=" …")
    return cut if len(cut) > WIDTH // 2 else f"{sentence[: WIDTH - 2]} …"


def _why(task: Task) -> str:
    ended = task.telling.ended if task.telling else None
    return cleaned(ended.summary, 4000).strip() if ended and ended.summary else task.node_id


def _by(tasks: Sequence[Task]) -> str:
    names = ", ".join(task.telling.agent_name for task in tasks if task.telling)
    return f"Agent: {names}" if len(tasks) == 1 else f"Agents: {names}"


def gist(run: Run) -> str:
    """Return the result in one sentence for a reviewer; "" without a branch."""
    if not run.picks:
        return ""
    ends = ranking.counts(run)
    failing = [each for each in run.tasks.values() if run.before(each.node_id).standing == "failed"]
    passing = sum(ranking.ending_of(each) in ("fixed", "passes", "skipped") for each in failing)
    verb = "passes" if passing == 1 else "pass"
    changed, improved = ends.get(str(Outcome.EXPECTATION)), ends.get("improved")
    told = [
        f"{passing} of {counted(len(failing), 'failing test')} {verb}" if failing else "",
        f"{changed} more only with a changed expectation" if changed else "",
        f"{counted(improved, 'test')} improved" if improved else "",
    ]
    return f"On the branch: {', '.join(filter(None, told))}." if any(told) else ""


def pull_request(run: Run) -> tuple[str, str]:
    """Return title and body of the pull request."""
    counts = ranking.counts(run)
    title = f"{run.name}: " + ", ".join(f"{number} {word}" for word, number in counts.items())
    given = f"{len(run.tasks):,} selected, {counted(run.tries, 'agent')}"
    lines = [
        *filter(None, [gist(run)]),
        f"{counted(len(run.tests), 'test')} collected, {given}.",
        "",
        *(f"- {number} {word}" for word, number in counts.items()),
        *(("", GATED) if run.picks else ()),
    ]
    lines += _section("Implementation fixes, by rank", _repairs(run))
    lines += _section("Flagged lines, possible special cases for tests", _flags(run))
    lines += _section("Changed expectations, for you to decide", _expectations(run), EXPECTATION)
    lines += _section("Held for review, not on this branch", _held(run), HELD)
    lines += _section("Blocked", _blocked(run))
    lines += _section("Evicted changes", _evicted(run))
    if run.unsteady:
        lines += ["", UNSTEADY, "", *(f"- {_quoted(each)}" for each in sorted(run.unsteady)[:50])]
    return textwrap.shorten(title, 100, placeholder=" …"), "\n".join(lines) + "\n"


def _section(title: str, lines: Sequence[str], *told: str) -> list[str]:
    """Return a section with title, introduction and lines; nothing without lines."""
    return ["", f"## {title}", "", *told, *lines] if lines else []


def _repairs(run: Run) -> list[str]:
    repairs = [pick for pick in run.picks if pick.kind == "implementation"]
    return [
        f"{n}. {_quoted(pick.subject)} ({pick.commit[:12]})" for n, pick in enumerate(repairs, 1)
    ]


def _flags(run: Run) -> list[str]:
    found = [
        each
        for pick in run.picks
        for task in pick.tasks
        if (verdict := run.tasks[task].verdict)
        for each in verdict.flags
    ]
    return [f"- {_quoted(each)}" for each in dict.fromkeys(found)]


def _expectations(run: Run) -> list[str]:
    """Return the changed expectations, each with the block that its test cites."""
    lines: list[str] = []
    for pick in run.picks:
        if pick.kind == "expectation":
            task = run.tasks[pick.tasks[0]]
            block = task.verdict.block if task.verdict else ""
            lines += ["", f"- {_quoted(task.node_id)} ({pick.commit[:12]}) cites:", ""]
            lines += textwrap.indent(_plain(block) or "(nothing)", " " * 6).splitlines()
    return lines


def _held(run: Run) -> list[str]:
    """Return the held changes, each with its flagged lines and the command to apply it."""
    lines: list[str] = []
    for task, verdict in ranking.held(run):
        lines += ["", f"- {_quoted(task.node_id)}: `{taking(run, task)}`"]
        lines += [f"  - {_quoted(each)}" for each in verdict.flags]
    return lines


def taking(run: Run, task: Task) -> str:
    """Return the command that applies a change that is held for review."""
    return f"git cherry-pick {ranking.held_ref(run, task)}"


def _evicted(run: Run) -> list[str]:
    return [f"- {each.task} ({each.part}): {_quoted(each.reason)}" for each in run.evictions]


def _blocked(run: Run) -> list[str]:
    """Return one entry per cluster, with the reason of a test that had an agent."""
    clusters: dict[str, list[Task]] = {}
    for task in run.tasks.values():
        if ranking.ending_of(task) == "blocked":
            clusters.setdefault(task.cluster or task.id, []).append(task)
    lines = []
    for members in clusters.values():
        first, *others = sorted(members, key=lambda task: task.latest is None)
        more = f" and {len(others)} more of its cluster" if others else ""
        lines.append(f"- {_quoted(first.node_id)}{more}: {_quoted(why_blocked(first))}")
    return lines


def _quoted(text: str) -> str:
    """Return untrusted text as inline code, without effect on the forge."""
    plain = " ".join(cleaned(text, 500).replace("`", "'").split())
    return f"`{plain}`" if plain else ""


def why_blocked(task: Task) -> str:
    """Return why a blocked test has no fix, and what its agent requires."""
    ended = task.latest.ended if task.latest else None
    if ended is None:
        return task.skipped
    reason = ended.reason.strip().partition("\n")[0].rstrip(".:")  # the report has all of it
    return cleaned(f"{reason}; requires {ended.needs}" if ended.needs else reason, 500)
