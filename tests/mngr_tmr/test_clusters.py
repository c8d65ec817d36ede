"""The clusters of failures, the suspicious lines, and the measurement of lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.model.struct import Json
from mngr_tmr import probes
from mngr_tmr.journal.fold import apply
from mngr_tmr.journal.model import Run
from mngr_tmr.probes import reports
from mngr_tmr.probes.lines import ranges
from mngr_tmr.run import clustering, forecast
from mngr_tmr.run import coverage as reaching
from mngr_tmr.run.clustering import FailingTest, Lines
from mngr_tmr.verify import checkout
from tests.support.cli import Cli


def lines(*numbers: int) -> Lines:
    return frozenset(("app.py", number) for number in numbers)


def failure(
    name: str, signature: str = "", run: Lines = frozenset(), seconds: float = 0.0
) -> FailingTest:
    return FailingTest(name, f"t.py::{name}", signature or name, "AssertionError", seconds, run)


def names(*found: FailingTest) -> list[str]:
    return [each.id for each in found]


def test_one_signature_is_one_cluster_and_so_are_the_cases_of_one_function() -> None:
    tests = [failure("a", "s"), failure("f[1]"), failure("b", "s"), failure("f[2]"), failure("c")]
    assert [names(*each) for each in clustering.clusters(tests)] == [
        ["a", "b"],
        ["f[1]", "f[2]"],
        ["c"],
    ]


def test_cases_that_raise_something_else_are_apart() -> None:
    other = FailingTest("f[2]", "t.py::f[2]", "x", "KeyError")
    assert len(clustering.clusters([failure("f[1]"), other])) == 2


def test_tests_that_run_a_line_which_few_others_run_are_one_cluster() -> None:
    """For example a table of 200 tests with 200 messages and one wrong token."""
    broken = [failure(f"t{n}", run=lines(1, 2, 50, 100 + n)) for n in range(20)]
    passing = [lines(1, 2, 200 + n) for n in range(30)] + [lines(1, 2, 50)] * 5
    (cluster,) = clustering.clusters(broken, passing)
    assert len(cluster) == 20
    passed = Counter(line for each in passing for line in each)
    first = clustering.suspects(cluster, passed)[0]
    assert (first.lines, first.failing, first.passing, first.score) == ("50", 20, 5, 0.894)


def test_a_line_on_the_way_to_several_causes_joins_none_of_them() -> None:
    """Twice as many failing as passing tests run line 5; no passing test runs lines 10 and 20."""
    broken = [failure(f"a{n}", run=lines(1, 5, 10)) for n in range(2)]
    broken += [failure(f"b{n}", run=lines(1, 5, 20)) for n in range(2)]
    passing = [lines(1, 5)] * 2 + [lines(1)] * 10
    assert sorted(names(*each) for each in clustering.clusters(broken, passing)) == [
        ["a0", "a1"],
        ["b0", "b1"],
    ]


def test_the_most_suspicious_line_joins_tests_before_others_do() -> None:
    """Line 5 is run mostly by failing tests too, but of both causes, and by a passing one."""
    broken = [failure("a0", run=lines(1, 5, 10))]
    broken += [failure(f"a{n}", run=lines(1, 10)) for n in range(1, 4)]
    broken += [failure(f"b{n}", run=lines(1, 5, 20)) for n in range(2)]
    broken += [failure(f"b{n}", run=lines(1, 20)) for n in range(2, 4)]
    passing = [lines(1, 5), *[lines(1)] * 10]
    assert sorted(sorted(names(*each)) for each in clustering.clusters(broken, passing)) == [
        ["a0", "a1", "a2", "a3"],
        ["b0", "b1", "b2", "b3"],
    ]


def test_tests_whose_suspicious_lines_coincide_are_one_cluster_and_others_are_not() -> None:
    """All of them also run code that many passing tests run."""
    broken = [failure(f"a{n}", run=lines(1, 10, 11, 12)) for n in range(3)]
    broken += [failure(f"b{n}", run=lines(1, 20, 21, 22)) for n in range(3)]
    passing = [lines(1, 10, 11, 12)] * 20 + [lines(1, 20, 21, 22)] * 20
    assert [names(*each) for each in clustering.clusters(broken, passing)] == [
        ["a0", "a1", "a2"],
        ["b0", "b1", "b2"],
    ]


def test_the_canary_is_the_fastest_through_the_fewest_lines() -> None:
    tests = [
        failure("slow", "s", lines(1), 3.0),
        failure("wide", "s", lines(1, 2, 3, 4), 0.01),
        failure("narrow", "s", lines(1, 2), 0.02),
    ]
    assert names(*clustering.clusters(tests)[0]) == ["narrow", "wide", "slow"]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 9),
            st.integers(0, 3),
            st.integers(0, 3),
            st.frozensets(st.integers(1, 9)),
        )
    )
)
def test_every_failure_is_in_exactly_one_cluster(
    given_: list[tuple[int, int, int, frozenset[int]]],
) -> None:
    tests = [
        FailingTest(
            f"{n}", f"t.py::f{function}[{n}]", f"s{signature}", f"E{kind}", 0.0, lines(*run)
        )
        for n, (signature, function, kind, run) in enumerate(given_)
    ]
    passing = [lines(1, 2), lines(3)]
    found = [each for cluster in clustering.clusters(tests, passing) for each in cluster]
    assert sorted(names(*found)) == sorted(names(*tests))


@given(st.sets(st.integers(1, 5000)))
def test_lines_survive_their_short_form(found: set[int]) -> None:
    assert reaching.decoded({"a.py": ranges(found)}) == {("a.py", line) for line in found}


def test_the_forecast_says_how_many_agents_a_cluster_needs() -> None:
    run = Run(name="r")
    tasks: list[Json] = [
        {
            "task": f"t{n}",
            "node_id": f"t{n}",
            "want": "fix",
            "signature": "s",
            "canary": "t0" if n else "",
            "cluster": "t0",
        }
        for n in range(195)
    ]
    alone: Json = {"task": "x", "node_id": "x", "want": "fix", "signature": "y"}
    apply(run, {"type": "selected", "tasks": [*tasks, alone]})
    told = "196 failing tests (1 cluster and 1 test outside clusters): probably 2 agents"
    assert told in forecast.told(run)
    assert forecast.forecast(run, "/nowhere", metered=False).agents == 2


# the plugin, in a separate pytest

PROJECT = {
    "app.py": "def one():\n    return 1\n\n\ndef two():\n    return 2\n",
    "test_app.py": (
        "import subprocess, sys\nimport app, pytest\n\n\n"
        "def test_one():\n    assert app.one() == 1\n\n\n"
        "def test_two():\n    assert app.two() == 3\n\n\n"
        "@pytest.mark.parametrize('path', ['.', '.:theirs'])\n"
        "def test_program(path):\n"
        "    code = 'import app, os; app.two(); print(getattr(os, \"tailored\", 0))'\n"
        "    given = {'PYTHONPATH': path, 'HOME': '/'}\n"
        "    done = subprocess.run([sys.executable, '-c', code], env=given, capture_output=True)\n"
        "    assert (done.stderr, int(done.stdout)) == (b'', 7 * ('theirs' in path))\n"
    ),
    "theirs/sitecustomize.py": "import os\nos.tailored = 7\n",
}


@pytest.mark.parametrize("coverage", [True, False])
def test_the_lines_of_each_test_are_measured_with_coverage_and_without(
    tmp_path: Path, coverage: bool
) -> None:
    tools, project = tmp_path / "tools", tmp_path / "project"
    for folder in (tools, project):
        folder.mkdir()
    for name, data in probes.sources(["probe", "lines"]).items():
        (tools / name).write_bytes(data)
    if not coverage:
        (tools / "coverage.py").write_text("raise ImportError\n")
    (project / "theirs").mkdir()
    for name, text in PROJECT.items():
        (project / name).write_text(text)
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env = {**ours, "PYTHONPATH": str(tools)}
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    words = ["-p", "mngr_tmr_probe", "-p", "mngr_tmr_lines", "-p", "no:cacheprovider", "-q"]
    argv = [sys.executable, "-m", "pytest", *words]
    orders = checkout.orders("n", [], {})
    done = subprocess.run(
        argv, cwd=project, env=env, input=orders, stdout=subprocess.PIPE, check=False
    )
    probed = reports.parse(done.stdout, "n")
    assert {test: run.outcome for test, run in probed.runs.items()} == {
        "test_app.py::test_one": "passed",
        "test_app.py::test_two": "failed",
        "test_app.py::test_program[.]": "passed",
        "test_app.py::test_program[.:theirs]": "passed",
    }
    reached = {test: reaching.decoded(files) for test, files in probed.lines.items()}
    mine = {
        test: {line for path, line in each if path == "app.py"} for test, each in reached.items()
    }
    assert mine["test_app.py::test_one"] - {1} == {2} and mine["test_app.py::test_two"] - {5} == {6}
    assert mine["test_app.py::test_program[.]"] == {1, 5, 6}, "in a program that it starts"


def test_what_the_probe_says_of_lines_is_hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "MOST", 1000)
    entries: list[dict[str, object]] = [
        {"ran": "t", "lines": {"a.py": "1-3,9999999999999,x,7-", "b.py": 3}},
        {"ran": 3, "lines": []},
    ]
    many = "1-600,1000000-9999999"
    entries.append({"ran": "u", "lines": {"a.py": many, "b.py": many}})
    told = [json.dumps({"nonce": "n", **each}).encode() for each in entries]
    probed = reports.parse(b"\n".join(told), "n")
    assert {line for _, line in reaching.decoded(probed.lines["t"])} >= {1, 2, 3, 7}
    assert len(reaching.decoded(probed.lines["u"])) == reaching.MOST


APART = """\
from shop import double, greet


def test_double():
    assert double(2) == 4


def test_greet():
    assert greet("Ann") == "Hello, Ann!"


def test_none():
    assert not double(0)
"""


def test_code_of_python_itself_joins_no_failures(local: Cli) -> None:
    local.write("coverage.py", "raise ImportError('not installed')\n")
    local.write(
        "shop.py", "def double(n):\n    return n * 3\n\n\ndef greet(who):\n    return who\n"
    )
    local.write("test_shop.py", APART)
    local.commit("a shop")
    words = ("--only", "failing", "--type", "mechanic", "--dry-run", "--repeats", "1")
    done = local("tmr", "run", *words, timeout=120).ok()
    assert "Would start 2 agents" in done.out, done.out
