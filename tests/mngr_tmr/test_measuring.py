"""Mutants, the kinds of paths and flags: what verification measures with."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr.api import local_repository
from mngr_tmr.probes.reports import parse
from mngr_tmr.run.coverage import decoded
from mngr_tmr.run.settings import ProjectSettings
from mngr_tmr.verify.flags import Added, expected, flags
from mngr_tmr.verify.measuring import Measured, sample_size
from mngr_tmr.verify.mutants import Mutant, mutants
from mngr_tmr.verify.parts import Kind, Parts
from tests.support.cli import Cli
from tests.support.tmr_shop import PRICES

ALL = {"a.py": frozenset(range(1, 100))}

# mutants


@settings(max_examples=20)
@given(st.text(max_size=10), st.integers(0, 20))
def test_the_same_seed_draws_the_same_mutants(seed: str, count: int) -> None:
    drawn = mutants({"a.py": PRICES}, ALL, seed, count)
    assert drawn == mutants({"a.py": PRICES}, ALL, seed, count)
    assert len(drawn) == count, "there are enough of them"
    assert len({each.text for each in drawn}) == count
    for each in drawn:
        assert ast.dump(ast.parse(each.text)) != ast.dump(ast.parse(PRICES))
        assert each.told.startswith("a.py:")


def test_only_lines_that_are_reached_get_mutants() -> None:
    lines = PRICES.splitlines()
    reached = frozenset([lines.index("    return amount") + 1])
    for each in mutants({"a.py": PRICES}, {"a.py": reached}, "s", 9):
        assert each.text.split("def label")[1] == PRICES.split("def label")[1]
    assert mutants({"a.py": PRICES}, {}, "s", 9) == []


@given(st.text(max_size=200))
def test_any_text_may_be_asked_for_mutants(text: str) -> None:
    mutants({"a.py": text}, ALL, "s", 3)


def test_a_file_in_another_encoding_gets_no_mutants() -> None:
    assert mutants({"a.py": PRICES.replace("What", "\ufffd")}, ALL, "s", 3) == []


@pytest.mark.parametrize(
    ("budget", "seconds", "count"), [(20, 0.01, 12), (20, 3.7, 5), (20, 100, 3), (0, 0, 0)]
)
def test_the_sample_is_as_large_as_the_time_allows(
    budget: float, seconds: float, count: int
) -> None:
    assert sample_size(budget, seconds) == count


def test_what_counts_as_noticed() -> None:
    mutant = Mutant("a.py", "", "a.py:1: x -> y")
    found = Measured("s")
    found.count(mutant, {"old": False}, {"old": True})
    found.count(mutant, {}, {"new": False})
    found.count(mutant, {}, {"new": True})
    assert (found.tried, found.old, found.more) == (3, 1, 1), "a crash notices itself"
    assert found.killers == {"old", "new"}
    found.count(mutant, {"old": True}, {"new": True})
    assert found.survivor == "old no longer fails with the defect a.py:1: x -> y"


# what the plugins tell: it comes from the same process as agents' code

VALUES = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=3)
ENTRIES = st.dictionaries(
    st.sampled_from(["ran", "mutant", "lines", "outcomes"]),
    VALUES | st.dictionaries(st.text(max_size=3), VALUES, max_size=2),
)


@given(st.lists(ENTRIES))
def test_no_entry_disturbs_the_reading(entries: list[dict[str, object]]) -> None:
    told = [json.dumps({"nonce": "n", **each}).encode() for each in entries]
    probed = parse(b"\n".join(told), "n")
    for files in probed.lines.values():
        assert all(type(line) is int for _, line in decoded(files))
    assert all(type(number) is int for number in probed.mutants)


# paths

FILES = {
    "pyproject.toml": '[project]\nname = "big-tool"\n',
    "bigtool/__init__.py": "from bigtool.core import run\n",
    "bigtool/core.py": 'from pathlib import Path\nWORDS = Path(__file__).with_name("words.txt")\n',
    "bigtool/words.txt": "a\n",
    "bigtool/orphan.py": "x = 1\n",
    "bigtool/test_core.py": "from bigtool import core, orphan\nfrom support import checks\n",
    "single.py": "x = 1\n",
    "tests/test_single.py": "import single\n",
    "support/checks.py": "def same(a, b): return a == b\n",
    "cases/first.json": "{}\n",
    "golden/out.txt": "x\n",
    "data/both.txt": "x\n",
    "bigtool/reader.py": 'open("data/both.txt")\n',
    "tests/test_x.py": 'import bigtool\nopen("golden/out.txt")\nopen("data/both.txt")\n'
    'for each in glob("cases/*.json"): ...\nopen("bigtool/words.txt")\n',
    "docs/guide.md": "golden/out.txt and cases/first.json\n",
    "inner/tests/test_y.py": "from inner.tests import fakes\n",
    "inner/tests/fakes.py": "x = 1\n",
    "inner/real.py": "x = 1\n",
}
COLLECTED = ["bigtool/test_core.py", "tests/test_x.py", "inner/tests/test_y.py"]


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    cli = Cli(tmp_path_factory.mktemp("tool"))
    for path, text in FILES.items():
        cli.write(path, text)
    cli.commit("tool")
    yield cli
    cli.close()


def parts(tool: Cli, *implementation: str) -> Parts:
    repo, project = local_repository(str(tool.repo)), ProjectSettings(implementation=implementation)
    return Parts(repo, tool.git("rev-parse", "HEAD"), project, COLLECTED)


KINDS = {
    "bigtool/core.py": Kind.IMPLEMENTATION,
    "bigtool/__init__.py": Kind.IMPLEMENTATION,
    "bigtool/orphan.py": Kind.IMPLEMENTATION,
    "bigtool/words.txt": Kind.IMPLEMENTATION,
    "data/both.txt": Kind.IMPLEMENTATION,
    "bigtool/new.py": Kind.IMPLEMENTATION,
    "bigtool/test_core.py": Kind.TEST,
    "support/checks.py": Kind.TEST,
    "golden/out.txt": Kind.TEST,
    "cases/first.json": Kind.TEST,
    "cases/second.json": Kind.TEST,
    "tests/anything.py": Kind.TEST,
    "a/conftest.py": Kind.TEST,
    "inner/tests/fakes.py": Kind.TEST,
    "inner/tests/new.py": Kind.TEST,
    "docs/guide.md": Kind.DOCUMENT,
}


@pytest.mark.parametrize("implementation", [(), ("**",)])
def test_what_only_tests_use_is_a_test_whatever_a_project_says(
    tool: Cli, implementation: tuple[str, ...]
) -> None:
    made = parts(tool, *implementation)
    found = {path: made.kind(path) for path in KINDS}
    claimed = {"tests/anything.py", "docs/guide.md"} if implementation else set()
    assert {p: k for p, k in found.items() if p not in claimed} == {
        p: k for p, k in KINDS.items() if p not in claimed
    }


FLAT = {
    "shop.py": "",
    "test_shop.py": "import shop, helpers\n",
    "helpers.py": "",
    "lib/core.py": "",
    "lib/checks.py": "",
    "lib/test_core.py": "import lib.core, lib.checks\n",
}


@pytest.mark.parametrize("apart", [False, True])
def test_a_module_beside_its_tests_is_implementation(local: Cli, *, apart: bool) -> None:
    files = FLAT | ({"app/real.py": ""} if apart else {})
    for path, text in files.items():
        local.write(path, text)
    head = local.commit("flat")
    collected = [path for path in files if "test_" in path]
    made = Parts(local_repository(str(local.repo)), head, ProjectSettings(), collected)
    assert {made.kind(path) for path in ("shop.py", "lib/core.py")} == {Kind.IMPLEMENTATION}
    others = Kind.TEST if apart else Kind.IMPLEMENTATION
    assert {made.kind(path) for path in ("helpers.py", "lib/checks.py", "new.py")} == {others}
    assert made.kind("test_shop.py") is Kind.TEST
    doubtful = [path for path in files if made.may_be_a_helper(path)]
    assert doubtful == ([] if apart else ["helpers.py", "lib/checks.py"])


def test_a_change_concerns_the_tests_that_use_the_file(tool: Cli) -> None:
    made = parts(tool)
    assert made.test_files("support/checks.py") == {"bigtool/test_core.py"}
    assert made.test_files("golden/out.txt") == {"tests/test_x.py"}
    assert made.test_files("inner/conftest.py") == {"inner/tests/test_y.py"}
    assert made.test_files("conftest.py") == set(COLLECTED)
    assert made.only_tests_use("bigtool/orphan.py"), "which is worth a remark"
    assert not made.only_tests_use("single.py"), "users of the library import it"


# flags

TEST = "tests/test_sum.py::test_sum[1]"
QUOTED = "has a literal that the test expects: 'say: \"five\"'"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('if "PYTEST_CURRENT_TEST" in os.environ:', "names the test runner: PYTEST_CURRENT_TEST"),
        ('if "pytest" in sys.modules:', "names the test runner: pytest"),
        ("if os.environ.get('MNGR_E2E_NOOP'):", "names the test runner: MNGR_E2E_NOOP"),
        ("if name == 'test_sum':", "names the test: test_sum"),
        ("open('tests/test_sum.py')", "names the test: test_sum.py"),
        ("return 'sum: 5 apples'", "has a literal that the test expects: 'sum: 5'"),
        (r'return "say: \"five\""', QUOTED),
        (r"return 'say: ' '\"five\"'", QUOTED),
        ("return 12345", "has a literal that the test expects: '12345'"),
        ("def __eq__(self, other):", "affects what tests compare: __eq__"),
        ("builtins.isinstance = all", "affects what tests compare: builtins"),
        ("return known_before", ""),
        ("return test_summary(latest)", ""),
        ("return five", ""),
    ],
)
def test_special_cases_are_flagged_with_their_line(line: str, why: str) -> None:
    literals = ["sum: 5\n", 'say: "five"', "12345", "known_before", "five"[:3]]
    found = flags([Added("src/a.py", 7, f"    {line}")], [TEST], literals, "known_before = 1")
    assert found == ([f"src/a.py:7: {line} ({why})"] if why else [])


@pytest.mark.parametrize(
    ("old", "new", "honest"),
    [
        ("return 'smu: 5 apples'", "return 'sum: 5 apples'", True),
        ("say('sum: 4', 'x')", "say('sum: 5', 'x')", True),
        ("return f'sum: {five}'", "return 'sum: 5'", False),
        ("return 'sum: ' + five", "return 'sum: 5'", False),
        ("return ''", "return 'sum: 5'", False),
        ("return 'no apples'", "return 'sum: 5'", False),
        ("return 12344", "return 12345", False),
        ("def __eq__(self):", "def __eq__(self, other):", True),
        ("return os.environ['MNGR_HOME']", "return os.environ.get('MNGR_HOME')", True),
        ("if 'MNGR_HOME' in env:", "if 'PYTEST_VERSION' in env and 'MNGR_HOME' in env:", False),
        ("name = 'test_sum'", "name = 'test_sum.py'", False),
        ("return 'smu: 5 apples'", "if pytest: return 'sum: 5 apples'", False),
    ],
)
def test_a_line_that_is_corrected_is_no_special_case(old: str, new: str, *, honest: bool) -> None:
    found = flags([Added("a.py", 7, new)], [TEST], ["sum: 5", "12345"], "", [old])
    assert (found == []) is honest, found


def test_only_what_is_asserted_is_expected() -> None:
    source = (
        'FAR = ["named"]\nOTHER = "unused"\n'
        '@pytest.mark.parametrize("x", ["case"])\ndef test_a(e2e):\n    r = run("command")\n'
        '    near = "local"\n    assert r == "plain" + near + FAR[0]\n'
        '    expect(r.stdout).to_contain("seen")\n'
    )
    module = ast.parse(source)
    named = {"local", "named", "0"}
    assert expected(module.body[2], module) == {"x", "case", "plain", "seen", *named}
