"""What becomes of agents that cheat, one way at a time, on a real bench."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mngr.errors import MngrError
from mngr_tmr.journal.model import Baseline, Ruling, Task, TestRun, Verdict
from mngr_tmr.run.words import result_of
from mngr_tmr.verify import attempts
from mngr_tmr.verify.bench import Bench, BenchWorker
from mngr_tmr.verify.cases import Case
from mngr_tmr.verify.checks import Check, Checked
from mngr_tmr.verify.fixed import FIX, OTHERS, FixJudge
from mngr_tmr.verify.verify import RealInspector
from mngr_view.artifacts import recorded
from tests.support import tmr_kit as kit
from tests.support.cli import lives, until
from tests.support.tmr_lab import ALPHA, BETA, FINE, FINE_SOURCE, WORDS, Files, Lab, lab_in

MENDED = {"kit/alpha.sh": kit.mended("alpha")}
LOOK = '    expect(result.stdout).to_contain("alpha works")\n'
AGAIN = """

def test_alpha_again(e2e: E2eSession) -> None:
    result = e2e.run("kit alpha", comment="again")
    expect(result.stdout).to_equal("alpha works\\n")
"""
VACUOUS = """

def test_nothing(e2e: E2eSession) -> None:
    expect(e2e.run("kit fine")).to_succeed()
"""
EASY = """

class Easy:
    def __getattr__(self, name: str) -> object:
        return lambda *_: None


def expect(_: object) -> Easy:
    return Easy()
"""
HOOK = """

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = lab_in(tmp_path_factory.mktemp("verify"))
    yield made
    made.close()


def verdict(task: Task) -> Verdict:
    assert task.verdict is not None
    return task.verdict


def edited(lab: Lab, old: str, new: str) -> dict[str, str]:
    assert old in lab.source
    return {kit.FILE: lab.source.replace(old, new)}


def test_a_repair_is_taken_with_its_evidence(lab: Lab) -> None:
    given = verdict(lab.attempt(ALPHA.node_id, MENDED))
    assert (given.ruling, given.reason) == (Ruling.ACCEPTED, "verified")
    assert given.implementation and not given.other and not given.together
    assert given.turned_green == (ALPHA.node_id,)
    red = next(proof for proof in given.proofs if proof.what == "before the fix")
    green = next(proof for proof in given.proofs if proof.what == FIX)
    assert (red.exit_code, green.exit_code) == (1, 0)
    others = next(proof for proof in given.proofs if proof.what == OTHERS)
    assert [each for each in (red, green, others) if each.may_fail] == [red, others]
    assert result_of(others) == "no new failures (exit code 1)", "beta fails as before"
    assert b"alpha" in (lab.folder / red.log).read_bytes()
    assert lab.cli.git("diff", "--name-only", lab.base, given.implementation) == "kit/alpha.sh"


def test_what_the_test_left_is_kept_as_it_was_verified(lab: Lab) -> None:
    """Only plain files of a bounded size, regardless of other files beside them."""
    beside = (
        'left="$here/../.mngr-e2e"; ln -s /etc/passwd "$left/link"; echo x > "$left/small"\n'
        'head -c 5000000 /dev/zero > "$left/large"\n'
    )
    given = verdict(lab.attempt(ALPHA.node_id, {"kit/alpha.sh": kit.mended("alpha") + beside}))
    assert given.ruling is Ruling.ACCEPTED, given.reason
    folder = lab.folder / given.artifacts / ".mngr-e2e"
    [run], older = recorded(folder.parent, ALPHA.node_id)
    assert run.outcome == "passed" and older == 0
    assert "$ kit alpha\nalpha works" in run.transcript
    assert (folder / "small").is_file()
    assert not (folder / "large").exists() and not (folder / "link").is_symlink()

    # also for a test that still fails, which is when they are useful
    lies = verdict(lab.attempt(ALPHA.node_id, {"kit/alpha.sh": "echo 'alpha limps'\n"}))
    assert lies.ruling is Ruling.REFUSED
    [failed], _ = recorded(lab.folder / lies.artifacts, ALPHA.node_id)
    assert failed.outcome == "failed" and "alpha limps" in failed.transcript
    assert not (folder / "small").exists(), "what was there before is gone"


def cheats(lab: Lab) -> dict[str, tuple[str, Files, str]]:
    """Name -> the test, the files, and the beginning or a part of the refusal."""
    alpha, fine = ALPHA.node_id, f"{FINE}::test_fine"
    elsewhere = 'e2e.run("echo alpha works", comment="alpha")'
    return {
        "lies": (alpha, {"kit/alpha.sh": kit.broken("alpha") + "# mended\n"}, "failed with"),
        "deletes": (alpha, edited(lab, LOOK, ""), "removed `expect(result.stdout)"),
        "asks for less": (
            alpha,
            edited(lab, LOOK, "    expect(result).to_succeed()\n"),
            "replaced `expect(result.stdout)",
        ),
        "looks elsewhere": (
            alpha,
            edited(lab, 'e2e.run("kit alpha", comment="alpha")', elsewhere),
            "`result` is no longer",
        ),
        "returns early": (alpha, edited(lab, LOOK, f"    return\n{LOOK}"), "removed `expect("),
        "removes it": (alpha, edited(lab, "def test_alpha(", "def no_alpha("), "removes the test"),
        "forbidden": (alpha, {**MENDED, ".github/ci.yml": "on: push\n"}, "changes forbidden paths"),
        "nested": (alpha, {**MENDED, "kit/.gitattributes": "* -diff\n"}, "kit/.gitattributes"),
        "own plugin": (
            alpha,
            {"pyproject.toml": '[tool.pytest.ini_options]\naddopts = ["-p", "x"]\n', "x.py": ""},
            "changes how pytest runs tests: pyproject.toml",
        ),
        "large": (alpha, {**MENDED, "kit/data": "x" * (1 << 20) + "x"}, "adds a file larger"),
        "no judge": (
            alpha,
            {"tests/conftest.py": kit.CONFTEST + HOOK},
            "changes how pytest runs tests",
        ),
        "easy": (
            alpha,
            {kit.FILE: lab.source.replace(kit.HEAD, kit.HEAD + EASY)},
            "passes only because of the change of tests/test_kit.py",
        ),
        "vacuous": (fine, {FINE: FINE_SOURCE + VACUOUS}, "test_nothing also passes if"),
        "not needed": (fine, MENDED, "its test does not require its implementation changes"),
        "half way": (alpha, edited(lab, kit.HEAD, f"{kit.HEAD}\nraise OSError\n"), "not collect"),
    }


def test_every_cheat_is_refused_with_its_reason(lab: Lab) -> None:
    for name, (node_id, files, reason) in cheats(lab).items():
        given = verdict(lab.attempt(node_id, files))
        assert given.ruling is Ruling.REFUSED, name
        assert reason in given.reason, (name, given.reason)


def test_links_are_refused(lab: Lab) -> None:
    lab.cli.git("checkout", "-q", "--force", "--detach", lab.base)
    os.symlink("/etc/passwd", lab.cli.repo / "kit/secret")
    given = lab.verify(lab.task(ALPHA.node_id, lab.cli.commit("A link")))
    assert given.reason == "adds links or submodules: kit/secret"


def test_history_of_ones_own_is_refused(lab: Lab) -> None:
    lab.cli.git("checkout", "-q", "--force", "--orphan", "alone", lab.base)
    lab.cli.write("kit/alpha.sh", kit.mended("alpha"))
    given = lab.verify(lab.task(ALPHA.node_id, lab.cli.commit("Alone")))
    assert given.reason == "its commits are not based on the commit that it started from"


def test_none_is_an_answer_only_where_the_test_passes(lab: Lab) -> None:
    lazy = lab.verify(lab.task(ALPHA.node_id, lab.base))
    assert lazy.ruling is Ruling.REFUSED and "failed" in lazy.reason
    content = lab.verify(lab.task(f"{FINE}::test_fine", lab.base))
    assert (content.ruling, content.reason) == (Ruling.UNCHANGED, "no change was required")


def test_none_is_no_answer_to_a_test_that_failed_before(lab: Lab) -> None:
    """Luck has run out before; on the base of a canary it is the canary's fix, and fine."""
    node_id = f"{FINE}::test_fine"
    task = replace(lab.task(node_id, lab.base), want="fix")
    run = lab.new_run("luck")
    run.baseline = {node_id: Baseline((TestRun("passed"), TestRun("failed")))}
    given = lab.verify(task, run)
    assert given.ruling is Ruling.REFUSED
    assert given.reason.startswith(
        "it failed in 1 of 2 runs before any agent started, and passes now"
    )
    canary = lab.commit(MENDED)
    after = replace(lab.task(node_id, canary, base=canary), want="fix")
    assert lab.verify(after, run).ruling is Ruling.UNCHANGED


def test_what_a_test_does_not_need_is_left_out_and_said(lab: Lab) -> None:
    better = FINE_SOURCE + "    expect(result).to_succeed()\n"
    given = verdict(lab.attempt(f"{FINE}::test_fine", {**MENDED, FINE: better}))
    assert given.ruling is Ruling.ACCEPTED
    assert given.other and not given.implementation and not given.together
    assert given.tests_changed == (f"{FINE}::test_fine",)
    assert given.remarks[-1] == "left out: its test does not require its implementation changes"


def test_a_test_that_needs_the_repair_goes_with_it(lab: Lab) -> None:
    given = verdict(lab.attempt(ALPHA.node_id, {**MENDED, kit.FILE: lab.source + AGAIN}))
    assert given.ruling is Ruling.ACCEPTED, given.reason
    assert given.together and given.implementation and given.other
    assert given.tests_added == (f"{kit.FILE}::test_alpha_again",)
    assert given.turned_green == (ALPHA.node_id,), "an added test was never red"


def test_a_repair_does_not_need_its_broken_tests(lab: Lab) -> None:
    broken = {"tests/conftest.py": "import gone\n"}
    given = verdict(lab.attempt(ALPHA.node_id, {**MENDED, **broken}))
    assert given.ruling is Ruling.ACCEPTED and given.implementation and not given.other
    assert "its test change was left out" in given.remarks[0]


def test_work_that_ends_pytest_is_told_from_a_checker_that_fails(lab: Lab) -> None:
    """At the base the same session finishes: it is the work that ends it."""
    source = FINE_SOURCE + "\n\ndef test_exit():\n    import os\n\n    os._exit(0)\n"
    given = verdict(lab.attempt(f"{FINE}::test_fine", {FINE: source}))
    assert given.ruling is Ruling.REFUSED
    assert "pytest ended before its tests, but not at the base" in given.reason


class Torn(Bench):
    """Its sessions do not finish, as on a full disk, or fail at first."""

    failures = 0
    sessions = 0

    def _checked(self, worker: BenchWorker, check: Check) -> Checked:
        self.sessions += 1
        if self.sessions <= self.failures:
            raise MngrError("no space left on device")
        checked = super()._checked(worker, check)
        return checked if self.failures else replace(checked, finished=False, infrastructure="torn")


@pytest.fixture
def torn(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Torn]:
    monkeypatch.setattr(attempts, "PAUSES", (0.0, 0.0))
    bench = Torn(lab.api, str(lab.cli.repo), "torn", lab.folder, lab.project, lab.options)
    yield bench
    bench.close()


def test_a_checker_that_fails_refuses_nothing(lab: Lab, torn: Torn) -> None:
    task = lab.task(ALPHA.node_id, lab.commit(MENDED))
    assert task.latest is not None
    inspector = RealInspector(lab.plain, lab.repo, torn, lab.project, lab.folder / "scratch")
    with pytest.raises(MngrError, match="pytest did not finish"):
        inspector.verify(task, task.latest)
    assert torn.sessions == 3 + 3  # with the change, and at the base


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_a_check_that_fails_has_three_attempts(lab: Lab, torn: Torn, failures: int) -> None:
    torn.failures = failures
    check = Check("a check", lab.base, (f"{FINE}::test_fine",))
    if failures < 3:
        assert torn.check(check).passed(check.tests)
    else:
        with pytest.raises(MngrError, match="no space left on device"):
            torn.check(check)
    assert torn.sessions == min(3, failures + 1)


def test_documents_stand_alone(lab: Lab) -> None:
    given = verdict(lab.attempt(ALPHA.node_id, {**MENDED, "NOTES.md": "notes\nalpha works\n"}))
    assert given.implementation and given.other and not given.together


def test_a_new_test_with_parameters_is_all_of_them(lab: Lab) -> None:
    case = (
        '\n\n@pytest.mark.parametrize("word", ["works", "{}"])\n'
        "def test_words(e2e: E2eSession, word: str) -> None:\n"
        '    expect(e2e.run("kit fine", comment="again").stdout).to_contain(word)\n'
    )
    source = FINE_SOURCE.replace("from mngr_e2e", "import pytest\nfrom mngr_e2e")
    good = verdict(lab.attempt(f"{FINE}::test_fine", {FINE: source + case.format("fine")}))
    assert good.ruling is Ruling.ACCEPTED, good.reason
    bad = verdict(lab.attempt(f"{FINE}::test_fine", {FINE: source + case.format("bad")}))
    assert "test_words failed with its test change" in bad.reason


def test_tests_without_commands_are_exempt_from_the_no_op_and_it_says_so(lab: Lab) -> None:
    path = WORDS.partition("::")[0]
    old = (lab.cli.repo / path).read_text() if (lab.cli.repo / path).exists() else ""
    more = "\n\ndef test_more():\n    assert Path(__file__).exists()\n"
    given = verdict(lab.attempt(WORDS, {path: old + more}))
    assert given.ruling is Ruling.ACCEPTED, given.reason
    assert given.remarks == (
        f"not run with commands that do nothing, because it runs no command: {path}::test_more",
        f"not measured, because the implementation is not Python: {path}::test_more",
    )


def test_only_what_it_turns_green_itself_counts(lab: Lab) -> None:
    """On the base of a canary the canary's tests are green already."""
    first = verdict(lab.attempt(ALPHA.node_id, MENDED)).implementation
    both = {**MENDED, "kit/beta.sh": kit.mended("beta")}
    given = verdict(lab.attempt(BETA.node_id, both, base=first))
    assert given.turned_green == (BETA.node_id,)


def test_work_that_never_ends_is_refused_and_ends_with_its_bench(lab: Lab) -> None:
    project = replace(lab.project, check_timeout=4)
    seconds = f"1000.{os.getpid()}"
    # Like a daemon: in its own session, with a parent that has ended, and a small environment.
    words = f"env -i PATH=$PATH TMPDIR=$TMPDIR setsid sleep {seconds} > /dev/null 2>&1"
    daemon = f"sh -c 'cd /; {words} &'\n"
    head = lab.commit({"kit/alpha.sh": f"{daemon}exec sleep 1000\n"})
    task = lab.task(ALPHA.node_id, head)
    assert task.latest is not None
    bench = Bench(lab.api, str(lab.cli.repo), "slow", lab.folder, project, lab.options)
    try:
        inspector = RealInspector(lab.plain, lab.repo, bench, project, lab.folder / "scratch")
        given = inspector.verify(task, task.latest)
        ids = [agent.id[-8:] for agent in lab.api.list() if "slow" in agent.name]
    finally:
        bench.close()
    assert given.reason == f"{FIX}: timed out after 4 s"
    until(lambda: not running(seconds), 30, "the sleeper is ended")
    left = [each for id in ids for each in Path(tempfile.gettempdir()).glob(f"tmr-{id}-*")]
    assert ids and left == []


def running(word: str) -> bool:
    found = [each for each in Path("/proc").glob("[0-9]*/cmdline") if lives(each.parent.name)]
    return any(word.encode() in _read(each) for each in found)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_sockets_fit_where_temporary_files_lie_and_nothing_stays(lab: Lab) -> None:
    """A socket's path has at most 108 characters, and pytest's folders are deep already."""
    bind = (
        "\n\ndef test_socket(tmp_path):\n    import socket\n"
        "    with socket.socket(socket.AF_UNIX) as made:\n"
        "        made.bind(str(tmp_path / 'socket'))\n"
    )
    given = verdict(lab.attempt(f"{FINE}::test_fine", {FINE: FINE_SOURCE + bind}))
    assert given.ruling is Ruling.ACCEPTED, given.reason
    ids = [agent.id[-8:] for agent in lab.api.list()]
    left = [each for id in ids for each in Path(tempfile.gettempdir()).glob(f"tmr-{id}-*")]
    assert ids and left == []


def test_no_check_leaves_anything_to_the_next(lab: Lab) -> None:
    """A test that poisons what it finds of its checkout, its home and its own folder."""
    poison = (
        "\n\ndef test_poison(tmp_path):\n    import os\n    from pathlib import Path\n"
        "    for folder in (tmp_path, Path.home(), Path.cwd()):\n"
        "        (folder / 'sitecustomize.py').write_text('raise SystemExit(9)')\n"
        "        (folder / 'usercustomize.py').write_text('raise SystemExit(9)')\n"
    )
    lab.attempt(f"{FINE}::test_fine", {FINE: FINE_SOURCE + poison})
    given = verdict(lab.attempt(ALPHA.node_id, MENDED))
    assert given.ruling is Ruling.ACCEPTED, given.reason
    left = [*Path(lab.cli.home).glob("agents/*/check-*")]
    assert left == [], "each check removes its folder"


def test_with_a_fix_run_the_tests_that_run_a_changed_line(lab: Lab) -> None:
    """All that need the file, where no test is known to run one of the lines."""
    head = lab.commit({"NOTES.md": "other notes\n"})
    passing = sorted(lab.passing_before())
    needs = {test: frozenset(["NOTES.md"]) for test in passing}
    task = lab.task(ALPHA.node_id, head)
    assert task.latest is not None and task.latest.ended is not None
    case = Case(task, task.latest, task.latest.ended, lab.bench)

    def concerned(line: int) -> list[str]:
        reached = {passing[0]: frozenset([("NOTES.md", line)])}
        return FixJudge(lab.plain, lab.repo, needs, reached)._concerned(case, head)

    assert concerned(1) == passing[:1]
    assert concerned(2) == passing and len(passing) > 1
