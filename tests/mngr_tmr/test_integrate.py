"""From verdicts to a branch, on a real repository and bench: every commit passes its gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from mngr.errors import MngrError
from mngr_outcome.codec import to_json
from mngr_tmr.integrate import messages, ranking
from mngr_tmr.integrate.resolving import Resolver
from mngr_tmr.journal.fold import apply
from mngr_tmr.journal.model import Eviction, Run, Task
from mngr_tmr.run.options import Options
from mngr_tmr.verify import patches
from mngr_tmr.verify.bench import Bench
from mngr_tmr.verify.checks import Check, Checked
from tests.support import tmr_kit as kit
from tests.support.tmr_lab import (
    ALPHA,
    BETA,
    FINE,
    FINE_SOURCE,
    GAMMA,
    SHARED,
    WORDS,
    Files,
    Lab,
    lab_in,
)

AGAIN = """

def test_{0}_again(e2e: E2eSession) -> None:
    result = e2e.run("kit {0}", comment="again")
    expect(result.stdout).to_equal("{0} works\\n")
"""


RECORDED = """

def test_what_alpha_says(e2e: E2eSession) -> None:
    result = e2e.run("kit alpha", comment="as it is now")
    expect(result.stdout).to_equal("alpha is broken\\n")
"""


def mend(name: str) -> dict[str, str]:
    return {f"kit/{name}.sh": kit.mended(name)}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = lab_in(tmp_path_factory.mktemp("integrate"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def tasks(lab: Lab) -> dict[str, Task]:
    """Verified once, put together in many ways."""
    same: Files = {"kit/shared.sh": 'echo "shared works $1"\n'}
    fine, notes = f"{FINE}::test_fine", "NOTES.md"
    made = {
        **{f"shared_{n}": (spec.node_id, same) for n, spec in enumerate(SHARED, 1)},
        "alpha": (ALPHA.node_id, {**mend("alpha"), kit.FILE: lab.source + AGAIN.format("alpha")}),
        "breaks": (BETA.node_id, {**mend("beta"), "kit/fine.sh": kit.broken("fine")}),
        "gamma": (GAMMA.node_id, {**mend("gamma"), notes: "notes\ngamma works\n"}),
        "top": (fine, {notes: "From the top\nnotes\n"}),
        "title": (fine, {notes: "A title\nnotes\n"}),
        "page": (fine, {"docs/page.md": "a page\n"}),
        "bad": (fine, {"docs/words.txt": "other words\n", notes: "All bad\nnotes\n"}),
    }
    found = {name: lab.attempt(test, files, name=name) for name, (test, files) in made.items()}
    for name, task in found.items():
        assert task.verdict and task.verdict.ruling == "accepted", (name, task.verdict)
    return found


def chosen(tasks: dict[str, Task], *names: str) -> list[Task]:
    return [tasks[name] for name in names]


def assert_gated(lab: Lab, run: Run) -> None:
    """All that passed before, and the tests that a commit and those before it claim."""
    claimed = set(lab.passing_before())
    tip = run.base
    for pick in run.picks:
        assert lab.cli.git("rev-parse", f"{pick.commit}^") == tip, "one line of commits"
        tip = pick.commit
        if pick.kind == "implementation":
            for task in pick.tasks:
                verdict = run.tasks[task].verdict
                assert verdict
                added = verdict.tests_added if verdict.together else ()
                claimed |= {*verdict.turned_green, *added}
        assert lab.failing(pick.commit, sorted(claimed)) == []


def test_a_branch_of_everything_that_can_be_taken(lab: Lab, tasks: dict[str, Task]) -> None:
    names = ("shared_1", "shared_2", "shared_3", "alpha", "breaks", "gamma", "page", "bad")
    run = lab.integrate("all", chosen(tasks, *names))
    assert [(pick.kind, set(pick.tasks)) for pick in run.picks] == [
        ("other", {"gamma", "page"}),
        ("implementation", {"shared_1", "shared_2", "shared_3"}),
        ("implementation", {"alpha"}),
        ("implementation", {"gamma"}),
    ]
    assert_gated(lab, run)

    # what breaks something is out, with its reason, and kept
    reasons = {(each.task, each.part): each.reason for each in run.evictions}
    assert reasons == {
        ("breaks", "implementation"): f"breaks {FINE}::test_fine",
        ("bad", "other"): f"breaks {WORDS}",
    }
    for each in run.evictions:
        kept = lab.cli.git("rev-parse", each.ref)
        verdict = run.tasks[each.task].verdict
        assert verdict and kept in (verdict.implementation, verdict.other)
    assert ranking.counts(run) == {"fixed": 5, "evicted": 2, "improved": 1}, "what is on the branch"

    # three agents agree, and are all named
    body = lab.cli.git("show", "-s", "--format=%B", run.picks[1].commit)
    assert "Agents: tmr-lab-shared_1-1, tmr-lab-shared_2-1, tmr-lab-shared_3-1" in body
    assert "Score: " in body and "(3 tests, 3 agents, 2 lines in 1 file)" in body
    assert all(f"- {spec.node_id}" in body for spec in SHARED)

    # a repair carries the test that needs it
    carried = lab.cli.git("show", "--format=", "--name-only", run.picks[2].commit).split()
    assert carried == ["kit/alpha.sh", kit.FILE]
    body = lab.cli.git("show", "-s", "--format=%B", run.picks[2].commit)
    added = f"{kit.FILE}::test_alpha_again"
    assert f"Fixed tests:\n- {ALPHA.node_id}\n\nAdded tests:\n- {added}\n" in body
    assert "(1 test, 1 agent, " in body, "an added test is no fixed one"
    assert "Mended page" in lab.cli.git("show", "-s", "--format=%B", run.picks[0].commit)

    assert_reverts(lab, run)


def assert_reverts(lab: Lab, run: Run) -> None:
    """Each repair alone turns its tests red again, and no other."""
    tip = run.picks[-1].commit
    green = {t for pick in run.picks for t in turned_green(run, pick.tasks)}
    for pick in run.picks[1:]:
        lab.cli.git("checkout", "-q", "--force", "--detach", tip)
        lab.cli.git("revert", "--no-commit", pick.commit)
        reverted = lab.cli.commit(f"Without {pick.subject}")
        red = set(lab.failing(reverted, sorted(green | set(lab.passing_before()))))
        assert red == turned_green(run, pick.tasks), pick.subject


def turned_green(run: Run, tasks: Sequence[str]) -> set[str]:
    verdicts = [run.tasks[task].verdict for task in tasks]
    return {test for verdict in verdicts if verdict for test in verdict.turned_green}


def test_the_same_verdicts_give_the_same_branch(lab: Lab, tasks: dict[str, Task]) -> None:
    some = chosen(tasks, "shared_2", "alpha", "page", "shared_1")
    one, other = lab.integrate("one", some), lab.integrate("one", some[::-1])
    assert [pick.tree for pick in one.picks] == [pick.tree for pick in other.picks]
    text = "--format=%s%n%b"
    told = [lab.cli.git("show", "-s", text, pick.commit) for pick in one.picks]
    assert told == [lab.cli.git("show", "-s", text, pick.commit) for pick in other.picks]


def test_a_real_conflict_is_asked_about_once(lab: Lab, tasks: dict[str, Task]) -> None:
    asked: list[tuple[str, ...]] = []

    def resolve(tree: str, base: str, part: str, paths: Sequence[str]) -> str:
        asked.append(tuple(paths))
        merged = lab.commit({"NOTES.md": "A title\nFrom the top\nnotes\n"})
        return lab.cli.git("rev-parse", f"{merged}^{{tree}}")

    run = lab.integrate("asked", chosen(tasks, "top", "title"), resolve)
    assert asked == [("NOTES.md",)] and len(run.conflicts) == 1
    assert [set(pick.tasks) for pick in run.picks] == [{"top", "title"}]
    assert lab.cli.git("show", f"{run.picks[0].commit}:NOTES.md").startswith("A title\nFrom")


def test_an_answer_that_fails_the_gate_is_not_taken(lab: Lab, tasks: dict[str, Task]) -> None:
    """Nor asked for again while the batch is cut in halves."""
    asked: list[str] = []

    def resolve(tree: str, base: str, part: str, paths: Sequence[str]) -> str:
        asked.append(part)
        merged = lab.commit({"docs/words.txt": "no words\n"})
        return lab.cli.git("rev-parse", f"{merged}^{{tree}}")

    run = lab.integrate("wrong", chosen(tasks, "bad", "top", "title"), resolve)
    assert [set(pick.tasks) for pick in run.picks] == [{"title"}]
    reasons = [(each.task, each.reason) for each in run.evictions]
    assert reasons == [("bad", f"breaks {WORDS}"), ("top", f"breaks {WORDS}")]
    assert len(asked) == 1
    assert_gated(lab, run)


def test_an_integrator_answers_once_and_keeps_to_its_files(lab: Lab) -> None:
    """Its answers are kept as refs; what reaches further than the change itself is no answer."""
    run = replace(lab.new_run("answers"), options=Options(agent_type="command"))
    resolver = Resolver(lab.api, run, lab.repo, lab.project, lab.folder)
    part = lab.commit({"NOTES.md": "A title\nnotes\n", FINE: FINE_SOURCE + "# more\n"})
    tree = lab.cli.git("rev-parse", f"{lab.base}^{{tree}}")
    keep = f"refs/mngr/tmr/answers/conflicts/{tree[:12]}-{part[:12]}/answer"

    def answer(files: Files) -> str:
        lab.cli.git("update-ref", keep, lab.commit(files))
        return resolver.resolve(tree, lab.base, part, ["NOTES.md"])

    good = answer({"NOTES.md": "Both\nnotes\n"})
    assert lab.cli.git("show", f"{good}:NOTES.md") == "Both\nnotes"
    assert answer({"NOTES.md": "Both\n", "kit/alpha.sh": kit.mended("alpha")}) == ""
    assert answer({"NOTES.md": "Both\n", FINE: kit.HEAD}) == "", "it lost a test"
    assert answer({".github/ci.yml": "on: push\n"}) == ""
    assert lab.api.list() and not [a for a in lab.api.list() if "merge" in a.name]


def test_nobody_answers_and_the_first_stays(lab: Lab, tasks: dict[str, Task]) -> None:
    run = lab.integrate("silent", chosen(tasks, "top", "title"))
    assert [set(pick.tasks) for pick in run.picks] == [{"title"}]
    assert [each.reason for each in run.evictions] == ["conflicts with other changes"]


def test_what_is_evicted_is_in_nobodys_way(lab: Lab, tasks: dict[str, Task]) -> None:
    """`bad` comes first and conflicts with `title`, but does not stay."""

    def resolve(tree: str, base: str, part: str, paths: Sequence[str]) -> str:
        raise AssertionError("nobody has to be asked")

    run = lab.integrate("way", chosen(tasks, "bad", "title"), resolve)
    assert [set(pick.tasks) for pick in run.picks] == [{"title"}]
    assert [each.task for each in run.evictions] == ["bad"]


def test_a_repair_on_top_of_another_comes_after_it(lab: Lab, tasks: dict[str, Task]) -> None:
    first = lab.attempt(ALPHA.node_id, mend("alpha"), name="z-canary")
    assert first.verdict is not None
    base = first.verdict.implementation
    # It turns more tests green, and would be the first of two that know nothing of each other.
    on_top = {"kit/alpha.sh": "echo 'alpha works'; echo more\n", **mend("beta"), **mend("gamma")}
    second = lab.attempt(BETA.node_id, on_top, name="a-second", base=base)
    run = lab.integrate("canary", [first, second])
    assert [pick.tasks for pick in run.picks] == [("z-canary",), ("a-second",)]
    assert_gated(lab, run)


FLAKY = """
from pathlib import Path


def test_flaky():
    outcomes = Path({!r})  # outside of every checkout, so that it is kept
    now, *later = outcomes.read_text().split() or ["fine"]
    outcomes.write_text(" ".join(later))
    assert now == "fine"
"""


@pytest.fixture(scope="module")
def flaky(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Yield a lab with one more test, whose next results are in the file `outcomes`."""
    made = lab_in(tmp_path_factory.mktemp("flaky"), sandbox=False)
    outcomes = made.folder / "outcomes"
    outcomes.write_text("")
    made.base = made.commit({"tests/test_flaky.py": FLAKY.format(str(outcomes))})
    made.plain = made._baseline()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("outcomes", "looks", "taken"),
    [
        ("fine", ["gate"], True),
        ("bad fine", ["gate", "gate, again"], True),
        ("bad bad bad", ["gate", "gate, again", "gate, at the base"], True),
        ("bad bad fine", ["gate", "gate, again", "gate, at the base"], False),
    ],
)
def test_a_flaky_test_evicts_no_change(
    flaky: Lab, outcomes: str, looks: list[str], *, taken: bool
) -> None:
    task = flaky.attempt(f"{FINE}::test_fine", {"docs/page.md": f"{outcomes}\n"}, name="page")
    (flaky.folder / "outcomes").write_text(outcomes)
    run = flaky.integrate("flaky", [task])
    test = "tests/test_flaky.py::test_flaky"
    assert [pick.tasks for pick in run.picks] == ([("page",)] if taken else [])
    assert [each.reason for each in run.evictions] == ([] if taken else [f"breaks {test}"])
    assert run.unsteady == ({test} if taken and len(looks) > 1 else set())
    [gate] = flaky.gates
    assert list(dict.fromkeys(proof["what"] for proof in gate["gate"]["proofs"])) == looks
    assert gate["broken"] == ([] if taken else [test])
    told = messages.pull_request(run)[1]
    assert (test in told) is (len(looks) > 1)


def test_what_the_branch_claims_is_never_excused_by_the_base(flaky: Lab) -> None:
    """The test of a fix fails at its gate, and at the base, where failing is expected."""
    task = flaky.attempt(ALPHA.node_id, mend("alpha"))
    assert task.verdict is not None
    worse = flaky.commit({"kit/alpha.sh": "echo 'alpha limps'\n"})
    task.tries[0].verdict = replace(task.verdict, implementation=worse)
    run = flaky.integrate("claimed", [task])
    assert run.picks == [] and run.unsteady == set()
    assert [each.reason for each in run.evictions] == [f"breaks {ALPHA.node_id}"]


def test_a_test_that_passed_at_the_second_try_is_in_the_evidence(flaky: Lab) -> None:
    """This includes a resumed run, which repeats no gate."""
    task = flaky.attempt(ALPHA.node_id, mend("alpha"), name="shaky")
    (flaky.folder / "outcomes").write_text("bad fine")
    run = flaky.integrate("shaky", [task])
    told = "failed without this commit):\n- tests/test_flaky.py"
    assert told in flaky.cli.git("show", "-s", "--format=%B", run.picks[0].commit)
    again = flaky.integrate("shaky", [task], known=run)
    assert flaky.gates == [], "each gate was remembered"
    assert told in flaky.cli.git("show", "-s", "--format=%B", again.picks[0].commit)


def test_a_test_that_expects_a_defect_gives_way_to_the_repair(
    lab: Lab, tasks: dict[str, Task]
) -> None:
    """An agent has added a test of what the program prints today, which a repair changes."""
    recorded = {**mend("gamma"), "tests/test_recorded.py": kit.HEAD + RECORDED}
    gamma = lab.attempt(GAMMA.node_id, recorded, name="recorded")
    assert gamma.verdict and gamma.verdict.tests_added and not gamma.verdict.together
    run = lab.integrate("recorded", [gamma, *chosen(tasks, "alpha", "page", "breaks")])
    assert [(pick.kind, set(pick.tasks)) for pick in run.picks] == [
        ("other", {"page"}),
        ("implementation", {"alpha"}),
        ("implementation", {"recorded"}),
    ]
    assert {(each.task, each.part): each.reason for each in run.evictions} == {
        ("recorded", "other"): f"contradicts the fix of {ALPHA.node_id}",
        ("breaks", "implementation"): f"breaks {FINE}::test_fine",
    }
    assert_gated(lab, run)


def test_a_changed_test_that_expects_a_defect_is_as_it_was_before(
    lab: Lab, tasks: dict[str, Task]
) -> None:
    body = RECORDED.partition(":\n")[2].replace("result", "said")
    changed = lab.attempt(f"{FINE}::test_fine", {FINE: FINE_SOURCE + body}, name="extended")
    assert changed.verdict and changed.verdict.tests_changed, changed.verdict
    run = lab.integrate("extended", [changed, *chosen(tasks, "alpha", "page")])
    assert [set(pick.tasks) for pick in run.picks] == [{"page"}, {"alpha"}]
    assert [(each.task, each.part) for each in run.evictions] == [("extended", "other")]
    assert lab.cli.git("show", f"{run.picks[-1].commit}:{FINE}") == FINE_SOURCE.strip()
    assert_gated(lab, run)


STALE = kit.Spec("stale", "fine", "fine works")


def test_a_changed_expectation_comes_last_and_by_itself(lab: Lab, tasks: dict[str, Task]) -> None:
    """A test that expects other words than its block shows, beside repairs and documents."""
    path = "tests/test_stale.py"
    stale = kit.source(STALE).replace('to_contain("fine works")', 'to_contain("fine runs")')
    base, plain = lab.base, lab.plain
    try:
        lab.base = lab.commit({path: stale})
        lab.plain = lab._baseline()
        changed = lab.attempt(f"{path}::test_stale", {path: kit.source(STALE), "docs/page.md": "p"})
        repair = lab.attempt(GAMMA.node_id, mend("gamma"), name="z-gamma")
        run = lab.integrate("stale", [changed, repair])
    finally:
        lab.base, lab.plain = base, plain
    assert [pick.kind for pick in run.picks] == ["other", "implementation", "expectation"]
    assert ranking.counts(run) == {"expectation changed": 1, "fixed": 1}
    last = run.picks[-1].commit
    assert lab.cli.git("show", "--format=", "--name-only", last) == path
    body = lab.cli.git("show", "-s", "--format=%B", last)
    assert body.startswith("Expectation changed: test_stale\n\nThe implementation was not fixed")
    assert "    # stale: it says fine works\n    kit fine" in body


def test_a_repair_that_conflicts_or_is_there_already_is_evicted(lab: Lab) -> None:
    """The one that turns two tests green comes first."""
    found = {
        "both": (ALPHA.node_id, {**mend("alpha"), **mend("gamma")}),
        "gamma": (GAMMA.node_id, mend("gamma")),
        "otherwise": (ALPHA.node_id, {**mend("alpha"), "kit/gamma.sh": "echo gamma is odd\n"}),
    }
    made = [lab.attempt(test, files, name=name) for name, (test, files) in found.items()]
    run = lab.integrate("twice", made)
    assert [pick.tasks for pick in run.picks] == [("both",)]
    assert {each.task: (each.reason, each.needless) for each in run.evictions} == {
        "gamma": ("earlier changes on the branch already include it", True),
        "otherwise": ("conflicts with earlier changes", False),
    }
    assert len(run.conflicts) == 1


def test_an_expectation_that_conflicts_with_another_is_evicted(lab: Lab) -> None:
    path, wanted = "tests/test_stale.py", 'to_contain("fine works")'
    right = kit.source(STALE)
    base, plain = lab.base, lab.plain
    try:
        lab.base = lab.commit({path: right.replace(wanted, 'to_contain("fine runs")')})
        lab.plain = lab._baseline()
        node, noted = f"{path}::test_stale", right.replace(wanted, f"{wanted}  # as its block")
        made = [lab.attempt(node, {path: right}, name="one")]
        made.append(lab.attempt(node, {path: noted}, name="other"))
        run = lab.integrate("twice-stale", made)
    finally:
        lab.base, lab.plain = base, plain
    assert [(pick.kind, pick.tasks) for pick in run.picks] == [("expectation", ("one",))]
    assert [(each.task, each.part, each.reason) for each in run.evictions] == [
        ("other", "expectation", "conflicts with earlier changes")
    ]


class Torn(Bench):
    """The sessions of candidates do not finish, or none at all."""

    asked: list[str]
    base = ""

    def check(self, check: Check) -> Checked:
        self.asked.append(check.commit)
        checked = super().check(check)
        return checked if check.commit == self.base else replace(checked, finished=False)


@pytest.mark.parametrize("base_finishes", [True, False])
def test_a_gate_that_does_not_finish_is_blamed_on_work_only_by_comparison(
    lab: Lab, tasks: dict[str, Task], *, base_finishes: bool
) -> None:
    bench, sound = (
        Torn(lab.api, str(lab.cli.repo), "torn", lab.folder, lab.project, lab.options),
        lab.bench,
    )
    bench.base = lab.base if base_finishes else ""
    bench.asked = []
    lab.bench = bench
    try:
        if base_finishes:
            run = lab.integrate("torn", chosen(tasks, "page"))
            reason = "breaks pytest itself, which ends before its tests have run"
            assert [each.reason for each in run.evictions] == [reason]
        else:
            with pytest.raises(MngrError, match="pytest did not finish: gate"):
                lab.integrate("torn", chosen(tasks, "page"))
        assert len(bench.asked) == 2 * bench.asked.count(lab.base), "each session once"
    finally:
        lab.bench = sound
        bench.close()


def test_a_held_change_is_included_only_where_its_test_still_fails(
    lab: Lab, tasks: dict[str, Task]
) -> None:
    cheat = {**mend("alpha"), "kit/fine.sh": f"{kit.mended('fine')}# test_alpha\n"}
    held = lab.attempt(ALPHA.node_id, cheat, name="held")
    assert held.verdict and held.verdict.ruling == "held for review"
    assert held.verdict.flags[0].endswith("# test_alpha (names the test: test_alpha)")

    def integrated(name: str, *found: Task) -> list[tuple[str, ...]]:
        run = lab.integrate(name, [*found], include_flagged=True)
        assert_gated(lab, run)
        return [pick.tasks for pick in run.picks]

    assert integrated("with", held, tasks["gamma"])[-1] == ("held",)
    assert integrated("without", held, tasks["alpha"]) == [("alpha",)]

    # it may be wrong, so no test gives way to it
    recorded = {"tests/test_recorded.py": kit.HEAD + RECORDED}
    test = lab.attempt(f"{FINE}::test_fine", recorded, name="noticed")
    assert test.verdict and test.verdict.tests_added
    assert integrated("against", held, test) == [("noticed",)]


def test_no_work_is_no_commit(lab: Lab, tasks: dict[str, Task]) -> None:
    run = lab.integrate("nothing", [])
    assert run.picks == [] and run.evictions == []


def test_parts_of_a_branch_are_kept_from_gits_cleaning(lab: Lab, tasks: dict[str, Task]) -> None:
    run = lab.integrate("kept", chosen(tasks, "page"))
    lab.cli.git("reflog", "expire", "--expire=now", "--all")
    lab.cli.git("gc", "-q", "--prune=now")
    assert patches.changes(lab.repo, run.base, run.picks[-1].commit)


def test_who_was_spared_by_a_fix_needs_it_on_the_branch() -> None:
    run = Run(tasks={name: Task(name, f"t.py::{name}", "fix") for name in ("x", "y", "z")})
    told = {"task": "y", "reason": "passes with the fix of x", "by": "x"}
    apply(run, {"type": "skipped", **told})
    assert ranking.ending_of(run.tasks["y"]) == "skipped"
    for needless, ending in ((True, "skipped"), (False, "evicted")):
        eviction = Eviction("x", "implementation", "breaks z", needless=needless)
        apply(run, {"type": "evicted", "eviction": to_json(eviction)})
        assert ranking.ending_of(run.tasks["y"]) == ending
    assert run.tasks["y"].evicted == "the fix of x was evicted: breaks z"
    assert not run.tasks["z"].evicted
    apply(run, {"type": "integration_started"})
    assert ranking.ending_of(run.tasks["y"]) == "skipped"
