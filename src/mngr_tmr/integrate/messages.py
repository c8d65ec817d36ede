"""Commit messages and the text of a pull request. All numbers are computed by code."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from mngr_outcome.outcome import cleaned
from mngr_tmr.integrate import ranking
from mngr_tmr.integrate.ranking import Repair
from mngr_tmr.journal.model import Run, Task
from mngr_tmr.run.words import counted

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
    "Read the line; the command takes the change, in the repository of the run."
)
UNSTEADY = (
    "Flaky tests: they failed at a gate and passed when run again, or failed without these commits "
    "too. They did not evict any change:"
)


def others(
    run: Run, groups: Sequence[Sequence[Task]], shaky: Sequence[str] = ()
) -> tuple[str, str]:
    """Return subject and body of the commit with all test and documentation changes."""
    tasks = [task for group in groups for task in group]
    changed = {t for task in tasks for t in _changed(task)}
    added = {t for task in tasks for t in _added(task)}
    counted = [_count(len(changed), "test", "changed"), _count(len(added), "test", "added")]
    subject = f"Update tests and documentation: {', '.join(each for each in counted if each)}"
    lines = [_item(group) for group in groups]
    return subject.removesuffix(": ")[:100], "\n".join([*lines, *_shaky(shaky)])


def _item(group: Sequence[Task]) -> str:
    task = group[0]
    measured = task.verdict.mutants if task.verdict else ""
    lines = [
        f"- {task.node_id}",
        *_said(_why(task)),
        *([f"  Measured: {measured}"] if measured else []),
    ]
    return "\n".join([*lines, _by(group)])


def _count(number: int, noun: str, verb: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'} {verb}" if number else ""


def repair(run: Run, each: Repair, shaky: Sequence[str] = ()) -> tuple[str, str]:
    task = run.tasks[each.task]
    why = _why(task)
    subject = _subject(why) or f"Fix {task.node_id}"
    green = [f"- {test}" for test in each.turned_green]
    found = [run.tasks[each] for each in each.tasks]
    return subject, "\n".join(
        [
            *_quotation(_rest(why, subject)),
            "Fixed tests:",
            *green,
            "",
            *_evidence(task),
            *_flagged(task),
            *_shaky(shaky),
            _scored(each),
            _by(found).strip(),
        ]
    )


def expectation(run: Run, task: Task, shaky: Sequence[str] = ()) -> tuple[str, str]:
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
            *_flagged(task),
            *_shaky(shaky),
            _by([task]).strip(),
        ]
    )


def held(task: Task) -> tuple[str, str]:
    """Return subject and body of the commit with a change that is held for review."""
    why = _why(task)
    subject = _subject(why) or f"Fix {task.node_id}"
    said = _quotation(_rest(why, subject))
    return subject, "\n".join([*said, *_evidence(task), *_flagged(task), _by([task]).strip()])


def _evidence(task: Task) -> list[str]:
    verdict = task.verdict
    proofs = sorted(verdict.proofs if verdict else (), key=lambda each: "before" not in each.what)
    lines = [f"- {proof.what}: {proof.in_words}" for proof in proofs]
    lines += [f"- {verdict.mutants}"] if verdict and verdict.mutants else []
    remarks = verdict.remarks if verdict else ()
    lines += [f"- {' '.join(_plain(each).split())}" for each in remarks]
    return [f"Evidence, for {task.node_id}:", *dict.fromkeys(lines), ""]


def _flagged(task: Task) -> list[str]:
    flags = task.verdict.flags if task.verdict else ()
    lines = [f"- {' '.join(_plain(each).split())}" for each in flags]
    return ["Flagged for review, as special cases for tests:", *lines, ""] if lines else []


def _shaky(tests: Sequence[str]) -> list[str]:
    lines = [f"- {test}" for test in tests]
    return (
        ["Flaky at the gate (passed when run again, or failed without this commit):", *lines, ""]
        if lines
        else []
    )


def _rest(why: str, subject: str) -> str:
    """Return the part of the text that is not in the subject."""
    first, _, rest = why.strip().partition("\n")
    text = why if _subject(first).endswith("…") or not rest.strip() else rest
    return "" if text.strip() == subject else text.strip()


def _quotation(text: str) -> list[str]:
    return ["From the agent:", "", *_said(text), ""] if text.strip() else []


def _said(text: str) -> list[str]:
    """Return the text as a quotation, so that it cannot pass for text of mngr."""
    return [f"  > {line}".rstrip() for line in _wrapped(_plain(text).strip(), WIDTH - 4)]


REFERENCE = re.compile(r"#(?=\d)|\bGH-(?=\d)|(?<=/issues/)(?=\d)|(?<=/pull/)(?=\d)", re.IGNORECASE)


def _plain(text: str) -> str:
    """Return text of an agent without mentions and issue references, which a forge would act on."""
    apart = REFERENCE.sub(lambda found: f"{found[0]} ".replace("- ", " "), cleaned(text, 4000))
    return apart.replace("@", "(at)")


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
    return f"  Agent: {names}" if len(tasks) == 1 else f"  Agents: {names}"


def _changed(task: Task) -> tuple[str, ...]:
    return task.verdict.tests_changed if task.verdict else ()


def _added(task: Task) -> tuple[str, ...]:
    return task.verdict.tests_added if task.verdict else ()


def pull_request(run: Run) -> tuple[str, str]:
    """Return title and body of the pull request."""
    counts = ranking.counts(run)
    title = f"{run.name}: " + ", ".join(f"{number} {word}" for word, number in counts.items())
    lines = [
        f"{len(run.tests)} tests collected, {len(run.tasks)} given to agents.",
        "",
        *(f"- {number} {word}" for word, number in counts.items()),
        "",
        GATED,
    ]
    repairs = [pick for pick in run.picks if pick.kind == "implementation"]
    if repairs:
        lines += ["", "## Implementation fixes, by rank", ""]
        lines += [
            f"{n}. {_quoted(pick.subject)} ({pick.commit[:12]})"
            for n, pick in enumerate(repairs, 1)
        ]
    lines += _flags(run)
    lines += _expectations(run)
    lines += _held(run)
    lines += _not_taken(run)
    if run.unsteady:
        lines += ["", UNSTEADY, "", *(f"- {_quoted(each)}" for each in sorted(run.unsteady)[:50])]
    return textwrap.shorten(title, 100, placeholder=" …"), "\n".join(lines) + "\n"


def _flags(run: Run) -> list[str]:
    found = [
        each
        for pick in run.picks
        for task in pick.tasks
        if (verdict := run.tasks[task].verdict)
        for each in verdict.flags
    ]
    lines = [f"- {_quoted(each)}" for each in dict.fromkeys(found)]
    return ["", "## Flagged: special cases for tests", "", *lines] if lines else []


def _expectations(run: Run) -> list[str]:
    """Return the changed expectations, each with the block that its test cites."""
    lines: list[str] = []
    for pick in run.picks:
        if pick.kind == "expectation":
            task = run.tasks[pick.tasks[0]]
            block = task.verdict.block if task.verdict else ""
            lines += ["", f"- {_quoted(task.node_id)} ({pick.commit[:12]}) cites:", ""]
            lines += textwrap.indent(_plain(block) or "(nothing)", " " * 6).splitlines()
    return (
        ["", "## Changed expectations, for you to decide", "", EXPECTATION, *lines] if lines else []
    )


def _held(run: Run) -> list[str]:
    """Return the held changes, each with its flagged lines and the command that takes it."""
    lines: list[str] = []
    for task, verdict in ranking.held(run):
        lines += ["", f"- {_quoted(task.node_id)}: `{taking(run, task)}`"]
        lines += [f"  - {_quoted(each)}" for each in verdict.flags]
    return ["", "## Held for review, not on this branch", "", HELD, *lines] if lines else []


def taking(run: Run, task: Task) -> str:
    """Return the command that takes a change that is held for review."""
    return f"git cherry-pick {ranking.held_ref(run, task)}"


def _not_taken(run: Run) -> list[str]:
    lines: list[str] = []
    blocked = [task for task in run.tasks.values() if ranking.ending_of(task) == "blocked"]
    if blocked:
        lines += ["", "## Blocked", ""]
        lines += _folded(blocked)
    if run.evictions:
        lines += ["", "## Evicted changes", ""]
        lines += [f"- {each.task} ({each.part}): {_quoted(each.reason)}" for each in run.evictions]
    return lines


def _folded(tasks: Iterable[Task]) -> Iterator[str]:
    """Yield one entry per cluster, with the reason of a test that had an agent."""
    clusters: dict[str, list[Task]] = {}
    for task in tasks:
        clusters.setdefault(task.cluster or task.id, []).append(task)
    for members in clusters.values():
        first, *others = sorted(members, key=lambda task: task.latest is None)
        more = f" and {len(others)} more of its cluster" if others else ""
        yield f"- {_quoted(first.node_id)}{more}: {_quoted(_reason(first))}"


def _quoted(text: str) -> str:
    """Return untrusted text as inline code, without effect on the forge."""
    plain = " ".join(cleaned(text, 500).replace("`", "'").split())
    return f"`{plain}`" if plain else ""


def _reason(task: Task) -> str:
    ended = task.latest.ended if task.latest else None
    if ended is None:
        return task.skipped
    needs = f"; requires {ended.needs}" if ended.needs else ""
    return cleaned(f"{ended.reason}{needs}", 500).replace("\n", " ")
