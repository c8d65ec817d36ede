"""Commit messages and the text of a pull request. Every number in them is counted by code."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from mngr.outcome import cleaned
from mngr_tmr import ranking
from mngr_tmr.model import Run, Task
from mngr_tmr.ranking import Repair

WIDTH = 72
GATED = (
    "Every commit was checked in a clean checkout: all tests that passed before, and all that a "
    "commit claims, pass at each of them."
)

UNSTEADY = (
    "These failed at a gate and passed when run again, or failed without any of these commits "
    "too. They were not counted against anybody:"
)


def others(run: Run, groups: Sequence[Sequence[Task]]) -> tuple[str, str]:
    """Subject and body of the one commit with all changes of tests and documents."""
    tasks = [task for group in groups for task in group]
    changed = {t for task in tasks for t in _changed(task)}
    added = {t for task in tasks for t in _added(task)}
    counted = [_count(len(changed), "test", "changed"), _count(len(added), "test", "added")]
    subject = f"Improve tests and documents: {', '.join(each for each in counted if each)}"
    lines = [f"- {group[0].node_id}\n{_indented(_why(group[0]))}\n{_by(group)}" for group in groups]
    return subject.removesuffix(": ")[:100], "\n".join(lines)


def _count(number: int, noun: str, verb: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'} {verb}" if number else ""


def repair(run: Run, each: Repair) -> tuple[str, str]:
    task = run.tasks[each.task]
    why = _why(task)
    subject = _subject(why) or f"Fix {task.node_id}"
    verdict = task.verdict
    proofs = verdict.proofs if verdict else ()
    evidence = [f"- {proof.what}: exit code {proof.exit_code}" for proof in proofs]
    green = [f"- {test}" for test in each.turned_green]
    found = [run.tasks[each] for each in each.tasks]
    return subject, "\n".join(
        [
            *_rest(why, subject),
            "Turns green:",
            *green,
            "",
            f"Evidence, for {task.node_id}:",
            *dict.fromkeys(evidence),
            "",
            _scored(each),
            _by(found).strip(),
        ]
    )


def _rest(why: str, subject: str) -> list[str]:
    """What the subject does not say yet."""
    first, _, rest = why.strip().partition("\n")
    text = why if _subject(first).endswith("…") or not rest.strip() else rest
    lines = _wrapped(text.strip(), WIDTH)
    return [] if lines == [subject] else [*lines, ""]


def _wrapped(text: str, width: int) -> list[str]:
    """Line by line: what somebody broke on purpose stays broken."""
    return [piece for line in text.splitlines() for piece in textwrap.wrap(line, width) or [""]]


def _scored(each: Repair) -> str:
    counted = f"{len(each.turned_green)} tests, {len(each.tasks)} agents"
    return f"Score: {each.score:g} ({counted}, {each.lines} lines in {each.files} files)"


def _subject(why: str) -> str:
    first = why.strip().splitlines()[0] if why.strip() else ""
    sentence = " ".join(first.split(". ")[0].rstrip(".").split())
    sentence = sentence[:1].upper() + sentence[1:]
    if len(sentence) <= WIDTH:
        return sentence
    cut = textwrap.shorten(sentence, WIDTH, placeholder=" …")
    return cut if len(cut) > WIDTH // 2 else f"{sentence[: WIDTH - 2]} …"


def _why(task: Task) -> str:
    ended = task.latest.ended if task.latest else None
    return cleaned(ended.summary, 4000).strip() if ended and ended.summary else task.node_id


def _indented(text: str) -> str:
    return textwrap.indent("\n".join(_wrapped(text, WIDTH - 2)), "  ")


def _by(tasks: Sequence[Task]) -> str:
    names = ", ".join(task.latest.agent_name for task in tasks if task.latest)
    return f"  Agent: {names}" if len(tasks) == 1 else f"  Agents: {names}"


def _changed(task: Task) -> tuple[str, ...]:
    return task.verdict.tests_changed if task.verdict else ()


def _added(task: Task) -> tuple[str, ...]:
    return task.verdict.tests_added if task.verdict else ()


def pull_request(run: Run) -> tuple[str, str]:
    """Title and body."""
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
    lines += _not_taken(run)
    if run.unsteady:
        lines += ["", UNSTEADY, "", *(f"- {_quoted(each)}" for each in sorted(run.unsteady)[:50])]
    return textwrap.shorten(title, 100, placeholder=" …"), "\n".join(lines) + "\n"


def _not_taken(run: Run) -> list[str]:
    lines: list[str] = []
    blocked = [task for task in run.tasks.values() if ranking.ending_of(task) == "blocked"]
    if blocked:
        lines += ["", "## Blocked", ""]
        lines += [f"- {_quoted(task.node_id)}: {_quoted(_reason(task))}" for task in blocked]
    if run.evictions:
        lines += ["", "## Left out", ""]
        lines += [f"- {each.task} ({each.part}): {_quoted(each.reason)}" for each in run.evictions]
    return lines


def _quoted(text: str) -> str:
    """As code: the words of agents and of their tests call nobody, close nothing, load nothing."""
    plain = " ".join(cleaned(text, 500).replace("`", "'").split())
    return f"`{plain}`" if plain else ""


def _reason(task: Task) -> str:
    ended = task.latest.ended if task.latest else None
    if ended is None:
        return task.skipped
    needs = f"; needs {ended.needs}" if ended.needs else ""
    return cleaned(f"{ended.reason}{needs}", 500).replace("\n", " ")
