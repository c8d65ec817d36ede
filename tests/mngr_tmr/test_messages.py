"""Commit messages and pull requests: safe for any text of agents, and in a fixed order."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr_tmr.integrate import messages, ranking
from mngr_tmr.journal.model import (
    Baseline,
    Ended,
    Eviction,
    Outcome,
    Pick,
    Ruling,
    Run,
    Task,
    TestRun,
    Try,
    Verdict,
)
from mngr_tmr.journal.proofs import Proof

# texts

TEXTS = st.text(max_size=300) | st.text("ab .\n`#\x1b\x00\u202e\ud800", max_size=300)


def told(summary: str, reason: str = "") -> Run:
    ended = Ended(Outcome.FIXED, summary=summary, reason=reason)
    verdict = Verdict(Ruling.ACCEPTED, "verified", "i" * 40, turned_green=("t.py::a",))
    each = Try(1, "tmr-r-a-1", "b" * 40, 0.0, ended=ended, verdict=verdict)
    run = Run(name="r", base="b" * 40)
    run.tasks = {"a": Task("a", "t.py::a", "fix", tries=[each])}
    return run


def repairs(run: Run) -> list[ranking.Repair]:
    return ranking.repairs(
        ranking.accepted(run), lambda base, commit: commit, lambda base, commit: (2, 1)
    )


@given(TEXTS)
def test_commit_messages_of_any_summary_are_well_formed(summary: str) -> None:
    run = told(summary)
    [repair] = repairs(run)
    subject, body = messages.repair(run, repair)
    assert 0 < len(subject) <= 72 and len(subject.splitlines()) == 1
    assert subject == subject.strip()
    assert body.endswith("Agent: tmr-r-a-1"), "the last line is ours"
    assert not set(subject + body) & set("\x00\x1b\u202e\ud800")
    (subject + body).encode()
    other, listed = messages.others([[run.tasks["a"]]])
    assert len(other.splitlines()) == 1 and "tmr-r-a-1" in listed


@given(TEXTS, TEXTS)
def test_words_of_agents_are_only_words_in_a_pull_request(summary: str, reason: str) -> None:
    run = told(summary, reason)
    run.picks = [Pick("implementation", ("a",), "c" * 40, "t" * 40, summary or "x")]
    run.evictions = [Eviction("a", "other", reason or "x")]
    title, body = messages.pull_request(run)
    assert len(title.splitlines()) == 1 and len(title) <= 100
    for line in body.splitlines():
        if line.startswith(("1. ", "- a (other)")):
            assert line.count("`") in (0, 2), line


def test_a_word_without_end_is_cut() -> None:
    run = told("x" * 300)
    subject, body = messages.repair(run, repairs(run)[0])
    assert subject == "X" + "x" * 69 + " …"
    assert "x" * 68 in body


def test_what_the_subject_says_is_not_said_twice() -> None:
    run = told("the day itself was left out.\nA comparison was too strict.")
    subject, body = messages.repair(run, repairs(run)[0])
    assert subject == "The day itself was left out"
    said = "From the agent:\n\n  > A comparison was too strict.\n\n"
    assert body.startswith(f"{said}Fixed tests:\n- t.py::a\n")


def test_a_sentence_is_its_subject_and_a_name_in_the_code_keeps_its_case() -> None:
    run = told("fixed the day.")
    subject, body = messages.repair(run, repairs(run)[0])
    assert subject == "Fixed the day" and body.startswith("Fixed tests:\n")
    run = told("to_json was ignored")
    assert messages.repair(run, repairs(run)[0])[0] == "to_json was ignored"


IMITATION = """All is well. Closes #12, fixes GH-7, resolves https://x.org/a/b/issues/3. Ping @all

Fixed tests:
- t.py::everything

Evidence, for t.py::a:
- the fix alone: passed
Signed-off-by: somebody
"""


def test_a_summary_imitates_no_evidence_and_closes_no_issue() -> None:
    run = told(IMITATION)
    subject, body = messages.repair(run, repairs(run)[0])
    assert subject == "All is well"
    ours = [line for line in body.splitlines() if line and not line.startswith("  >")]
    assert ours[:4] == ["From the agent:", "Fixed tests:", "- t.py::a", "Evidence, for t.py::a:"]
    _, listed = messages.others([[run.tasks["a"]]])
    assert [line for line in listed.splitlines() if not line.startswith("  >")] == [
        "- t.py::a",
        "  Agent: tmr-r-a-1",
    ]
    for text in (subject, body, listed):
        assert not re.search(r"#\d|GH-\d|issues/\d|@", text), text
    run = told("Closes #12")
    assert messages.repair(run, repairs(run)[0])[0] == "Closes # 12"


@pytest.mark.parametrize("mark", ["[skip ci]", "[CI skip]", "[no ci]", "***NO_CI***"])
def test_a_summary_cannot_skip_the_checks_of_the_branch(mark: str) -> None:
    run = told(f"Repaired {mark}\n\nIt is right. {mark}")
    for text in (*messages.repair(run, repairs(run)[0]), *messages.others([[run.tasks["a"]]])):
        assert mark.lower() not in text.lower()


def judged(**more: object) -> Run:
    run = told("Repaired")
    latest = run.tasks["a"].latest
    assert latest is not None
    assert latest.verdict is not None
    latest.verdict = replace(latest.verdict, **more)  # type: ignore[arg-type]
    return run


def test_a_flag_and_a_test_that_needed_a_second_try_are_in_the_evidence() -> None:
    run = judged(flags=("src/a.py:3: return 'sum: 5' (has a literal that the test expects)",))
    _, body = messages.repair(run, repairs(run)[0], ["t.py::slow"])
    assert "Flagged for review, as special cases for tests:\n- src/a.py:3: return" in body
    assert (
        "Flaky at the gate (passed when run again, or failed without this commit):\n- t.py::slow\n"
        in body
    )
    run.picks = [Pick("implementation", ("a",), "c" * 40, "t" * 40, "x")]
    assert (
        "## Flagged lines, possible special cases for tests\n\n- `src/a.py:3:"
        in messages.pull_request(run)[1]
    )


def test_a_test_change_is_listed_with_what_it_newly_detects() -> None:
    idle = Proof("the original tests, with commands that do nothing", "pytest", 0)
    noticed = Proof("with commands that do nothing", "pytest", 1)
    for proofs, times in (
        ((idle, noticed), 1),
        ((noticed,), 0),
        ((idle, replace(noticed, exit_code=0)), 0),
    ):
        run = judged(proofs=proofs, mutants="of 2 mutants the old tests killed 1")
        _, listed = messages.others([[run.tasks["a"]]])
        said = "  Measured: if the commands do nothing, the old tests pass and the new tests fail\n"
        assert listed.count(said) == times
        assert "  Measured: of 2 mutants the old tests killed 1\n" in listed


def test_a_changed_expectation_is_shown_beside_its_block() -> None:
    block = "# it says 5\nshop 2 3"
    run = judged(implementation="", turned_green=(), expectation="e" * 40, block=block)
    assert ranking.counts(run) == {"expectation changed": 1}
    subject, body = messages.expectation(run.tasks["a"])
    assert subject == "Expectation changed: a"
    assert "The implementation was not fixed" in " ".join(body.split())
    assert "The test cites:\n    # it says 5\n    shop 2 3\n" in body
    run.picks = [Pick("expectation", ("a",), "c" * 40, "t" * 40, subject)]
    told = messages.pull_request(run)[1]
    assert "## Changed expectations, for you to decide" in told
    assert "- `t.py::a` (cccccccccccc) cites:\n\n      # it says 5\n      shop 2 3\n" in told


def test_blocked_members_of_one_cluster_are_one_entry_of_a_pull_request() -> None:
    run = told("x")
    for n in range(190):
        waited = Task(f"b{n}", f"t.py::b{n}", "fix", canary="z", cluster="z")
        waited.skipped, waited.skipped_as = "blocked like z: no network", Outcome.BLOCKED
        run.tasks[waited.id] = waited
    ended = Ended(Outcome.BLOCKED, "no network", needs="a network")
    tries = [Try(1, "agent", "f" * 40, 0.0, ended=ended)]
    run.tasks["z"] = Task("z", "t.py::z", "fix", cluster="z", tries=tries)
    body = messages.pull_request(run)[1]
    entry = "- `t.py::z` and 190 more of its cluster: `no network; requires a network`"
    assert f"## Blocked\n\n{entry}\n" in body and body.count("t.py::b") == 0


def test_a_reason_of_several_lines_is_its_first_line_in_a_pull_request() -> None:
    ended = Ended(Outcome.BLOCKED, "t.py cannot be collected:\nE   SyntaxError", needs="a test")
    each = Try(1, "agent", "f" * 40, 0.0, ended=ended)
    told = messages.why_blocked(Task("z", "t.py::z", "fix", tries=[each]))
    assert told == "t.py cannot be collected; requires a test"


def test_a_pull_request_begins_with_the_result_in_a_sentence() -> None:
    run = told("x")
    for name in "xyz":
        run.tasks[name] = Task(name, f"t.py::{name}", "fix")
    run.tasks["x"].passes_with = "c" * 40
    run.baseline = {f"t.py::{n}": Baseline((TestRun("failed"),)) for n in "axy"}
    run.baseline["t.py::z"] = Baseline((TestRun("failed"), TestRun("passed")))
    assert messages.gist(run) == "", "no branch"
    run.picks = [Pick("implementation", ("a",), "c" * 40, "t" * 40, "Fix it")]
    assert messages.gist(run) == "On the branch: 2 of 3 failing tests pass."
    body = messages.pull_request(run)[1]
    assert body.startswith(f"{messages.gist(run)}\n0 tests collected, 4 selected, 1 agent.\n\n")


def test_a_pull_request_calls_nobody() -> None:
    run = told("x")
    nasty = "Closes #1 @everyone ![](http://x) `<img src=x>`\n# Title"
    run.picks = [Pick("implementation", ("a",), "c" * 40, "t" * 40, nasty)]
    _, body = messages.pull_request(run)
    assert "1. `Closes #1 @everyone ![](http://x) '<img src=x>' # Title` (cccccccccccc)" in body


# ranking


def accepted(name: str, base: str, commit: str, green: int) -> Task:
    tests = tuple(f"t.py::{name}{n}" for n in range(green))
    verdict = Verdict(Ruling.ACCEPTED, "verified", commit, turned_green=tests)
    ended = Ended(Outcome.FIXED)
    return Task(name, name, "fix", tries=[Try(1, name, base, 0.0, ended=ended, verdict=verdict)])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 6)), max_size=6))
def test_rank_is_the_same_in_any_order_and_respects_bases(
    rows: list[tuple[int, int, int]],
) -> None:
    tasks = [
        accepted(f"k{n}", f"c{below}" if below < n else "base", f"c{n}", green)
        for n, (below, _, green) in enumerate(rows)
    ]
    run, other = Run(base="base"), Run(base="base")
    run.tasks = {task.id: task for task in tasks}
    other.tasks = {task.id: task for task in tasks[::-1]}
    ranked = repairs(run)
    assert ranked == repairs(other) and len(ranked) == len(rows)
    place = {each.implementation: n for n, each in enumerate(ranked)}
    for each in ranked:
        assert each.base not in place or place[each.base] < place[each.implementation]


def test_agreement_and_green_tests_count() -> None:
    run = Run(base="b")
    alike = [accepted(name, "b", "same", 1) for name in ("y", "z")]
    run.tasks = {
        t.id: t for t in [accepted("a", "b", "one", 1), *alike, accepted("m", "b", "x", 3)]
    }
    assert [each.tasks for each in repairs(run)] == [("m",), ("y", "z"), ("a",)]
