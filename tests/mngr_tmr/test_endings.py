"""How a run says that it ended: in words, and by its exit status."""

from __future__ import annotations

import signal

import pytest

from mngr_tmr.integrate.ranking import counts
from mngr_tmr.run import runs
from tests.support import tmr_kit as kit
from tests.support.cli import Cli, Result, until

NONE = "\"$MNGR_AGENT_STATE_DIR/publish\" --attempted none --summary 'All is well'"
SPECS = [kit.Spec("one"), kit.Spec("two"), kit.Spec("three")]


def run(cli: Cli, agent: str, *more: str, format: str = "human") -> Result:
    words = (f"--agent-arg={word}" for word in ("sh", "-c", agent))
    return cli(
        *("tmr", "run", "--name", "e", "--type", "command", "--yes", "--repeats", "1"),
        *("--format", format, *words, *more),
        timeout=300,
    )


def project(cli: Cli, *, works: bool) -> None:
    say = kit.mended if works else kit.broken
    kit.write(cli, {spec.name: say(spec.name) for spec in SPECS}, {kit.FILE: kit.source(*SPECS)})


def test_nothing_needed_changing(local: Cli) -> None:
    project(local, works=True)
    done = run(local, NONE).ok()
    assert "The run e found nothing to change." in done.out
    assert "3 unchanged" in done.out
    assert local.git("rev-parse", "tmr/e") == local.git("rev-parse", "main")
    assert "3 selected: 0 to fix, 3 to improve" in done.err
    # said again, it has nothing left to do
    again = run(local, "exit 3", format="json").ok().json()
    assert (again["status"], again["commits"]) == ("nothing to do", 0)


def test_nothing_was_failing(local: Cli) -> None:
    project(local, works=True)
    done = run(local, "exit 3", "--only", "failing").ok()
    assert "found nothing to change" in done.out
    assert runs.load(local.home / "tmr/e").tries == 0


ORDERED = """KNOWN = []


def test_first():
    KNOWN.append(1)


def test_second():
    assert KNOWN == [1]


def test_third():
    assert KNOWN == [1]


def test_fourth():
    assert KNOWN == [1]
"""


def test_tests_of_a_single_file_that_need_an_earlier_one_do_not_fail(local: Cli) -> None:
    kit.write(local, {}, {"tests/test_order.py": ORDERED})
    done = run(local, "exit 3", "--only", "failing", "--workers", "3").ok()
    assert "found nothing to change" in done.out


def test_everything_failed(local: Cli) -> None:
    project(local, works=False)
    agent = f"""case $MNGR_TMR_TASK in
      one-*) exit 3 ;;
      two-*) {NONE} ;;
      *) {NONE} --blocked 'no key' --needs 'a key' ;;
    esac"""
    done = run(local, agent, "--retries", "0", "--alert-after", "1")
    done.fails(1, "the run e failed: no change was accepted")
    ended = runs.load(local.home / "tmr/e")
    assert counts(ended) == {"died": 1, "refused": 1, "blocked": 1}
    assert all(f"1 {word}" in done.out for word in counts(ended))
    assert "no key; requires a key" in done.out
    told = (local.home / "tmr/e/pull-request.md").read_text()
    assert "Every commit was tested" not in told, "there is none"
    rows = local("tmr", "show", "e", "--format", "json").ok().json()["tasks"]
    (refused,) = [each["reason"] for each in rows if each["ending"] == "refused"]
    assert refused.startswith("failed without any change: "), "its row names the test"
    assert len(ended.alerts) == 2, "nobody is alarmed by a verdict"
    assert local.git("rev-parse", "tmr/e") == local.git("rev-parse", "main")
    # also for a later reader
    assert local("tmr", "show", "e", "--format", "json").ok().json()["status"] == "failed"


def test_some_needed_nothing_and_some_failed(local: Cli) -> None:
    project(local, works=True)
    agent = f"case $MNGR_TMR_TASK in one-*) exit 3 ;; *) {NONE} ;; esac"
    done = run(local, agent, "--retries", "0").fails(1, "the run e made no commit: 1 of 3")
    assert (
        "The run e made no commit: 1 of 3 tests require your help.\n  2 unchanged\n  1 died"
        in done.out
    )


def test_a_budget_that_was_used_up_is_no_good_end(local: Cli) -> None:
    project(local, works=False)
    one = f"{NONE} --blocked 'no key' --needs 'a key'"
    done = run(local, one, "--max-launches", "1", "--max-agents", "1")
    done.fails(1, "the run e failed: no change was accepted")
    assert "  2 over budget\n  1 blocked\n" in done.out
    shown = local("tmr", "show", "e").ok().out
    assert "the run has started its maximum number of agents (1)" in shown
    page = (local.home / "tmr/e/report/index.html").read_text()
    assert page.count(" has no agent.") == 2


# the forecast, and what was really used


def test_what_was_forecast_stands_beside_what_was_used(local: Cli) -> None:
    project(local, works=True)
    takes_time = f"sleep 1; {NONE}"
    done = run(local, takes_time).ok()
    assert "Agents of this type do not report their usage." in done.err
    assert "Forecast: 3 agents, time not known\nUsed:     3 agents, " in done.out
    shown = local("tmr", "show", "e").ok().out
    assert "Forecast: 3 agents, time not known" in shown and "Used:     3 agents" in shown
    told = local("tmr", "show", "e", "--format", "json").ok().json()
    assert told["forecast"]["agents"] == told["agents"] == 3
    assert told["forecast"]["minutes"] is None and told["minutes"] > 0

    # the next run knows what one agent took
    words = (f"--agent-arg={word}" for word in ("sh", "-c", takes_time))
    more = ("--name", "f", "--type", "command", "--repeats", "1", "--yes", "--max-launches", "1")
    second = local("tmr", "run", *more, *words, timeout=300).fails(
        1, "2 of 3 tests require your help"
    )
    assert "Based on the last 3 agents of this type: about " in second.err
    forecast = runs.load(local.home / "tmr/f").forecast
    assert forecast is not None and forecast.known == 3
    assert forecast.minutes == told["minutes"], "three again"
    assert "Used:     1 agent," in second.out, "though only one was let"


# a baseline that did not come to its end

SLOW = """
import time
from pathlib import Path

MARKS = Path({!r})


def test_quick():
    pass


def test_slow():
    (MARKS / "begun").touch()
    while not (MARKS / "go").exists():
        time.sleep(0.05)
"""
CRASH = """
import os


def test_first():
    assert False


def test_crash():
    os._exit(3)


def test_last():
    pass
"""


def plain(cli: Cli, source: str, settings: str = "") -> None:
    cli.write("tests/test_plain.py", source)
    cli.write("pyproject.toml", f"{kit.SETTINGS}{settings}")
    cli.commit("plain")


TRACED = """
import sys


def test_slow_if_traced():
    assert "mngr_tmr_touch" not in sys.modules


def test_broken():
    assert False
"""


@pytest.mark.parametrize("repeats", [1, 2])
def test_what_measures_the_tests_makes_none_of_them_fail(local: Cli, repeats: int) -> None:
    plain(local, TRACED)
    run(local, NONE, "--only", "failing", "--repeats", str(repeats)).fails(1, "no change was")
    ended = runs.load(local.home / "tmr/e")
    assert [each.standing for each in ended.baseline.values()] == ["passed", "failed"]
    assert [len(each.runs) for each in ended.baseline.values()] == [repeats, repeats]


def test_an_interrupted_baseline_says_nothing_about_any_test(local: Cli) -> None:
    plain(local, SLOW.format(str(local.base)), "sandbox = false\n")
    words = ("tmr", "run", "--name", "e", "--type", "command", "--yes", "--repeats", "1")
    running = local.start(*words, "--only", "failing")
    until((local.base / "begun").exists, 60, "the test runs")
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    ended = runs.load(local.home / "tmr/e")
    assert len(ended.tests) == 2 and ended.rounds == 0 and not ended.baseline
    (local.base / "go").touch()
    assert "found nothing to change" in local("tmr", "resume", "e", timeout=120).ok().out
    assert {each.standing for each in runs.load(local.home / "tmr/e").baseline.values()} == {
        "passed"
    }


def test_a_baseline_that_takes_too_long_is_an_error_and_not_a_result(local: Cli) -> None:
    plain(local, SLOW.format(str(local.base)), "sandbox = false\ncheck_timeout = 8\n")
    done = run(local, NONE, "--only", "failing")
    done.fails(1, "the baseline took longer than 8 s", "check_timeout")
    assert not runs.load(local.home / "tmr/e").baseline


def test_a_test_that_ends_pytest_does_not_hide_those_after_it(local: Cli) -> None:
    plain(local, CRASH)
    done = run(local, NONE, "--only", "failing", "--workers", "1")
    done.fails(1, "no change was accepted")
    baseline = runs.load(local.home / "tmr/e").baseline
    standing = {node.rpartition("_")[2]: each.standing for node, each in baseline.items()}
    assert standing == {"first": "failed", "crash": "failed", "last": "passed"}


# projects that are not like ours

COV = """
import pytest


def pytest_addoption(parser):
    parser.addoption("--cov", action="append", dest="cov_source")
    parser.addoption("--no-cov", action="store_true", default=False)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config, parser, args):
    if not early_config.known_args_namespace.no_cov:
        early_config.pluginmanager.register(Measure())


class Measure:
    def __init__(self):
        import coverage

        self.cov = coverage.Coverage(data_file=None)
        self.cov.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtestloop(self, session):
        yield
        self.cov.stop()
        session.testsfailed += 1  # fail-under
"""
NEVER = """
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtestloop(session):
    yield
    if session.config.option.collectonly is False:
        raise RuntimeError("the licence server does not answer")
"""
SCRIPTED = """
import pytest


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".cases":
        return Cases.from_parent(path=file_path, parent=parent)


class Cases(pytest.File):
    def collect(self):
        for line in self.path.read_text().splitlines():
            item = Case.from_parent(self, name="case")
            item.line = line
            yield item


class Case(pytest.Item):
    def runtest(self):
        assert self.line == "good"
"""


def test_a_project_that_measures_its_coverage_is_like_any_other(local: Cli) -> None:
    local.write("measures.py", COV)
    local.write("pytest.ini", "[pytest]\naddopts = -p measures --cov=tool --ff\npythonpath = .\n")
    plain(local, "def test_one():\n    assert False\n\n\ndef test_two():\n    pass\n")
    done = run(local, NONE, "--only", "failing")
    done.fails(1, "no change was accepted")
    baseline = runs.load(local.home / "tmr/e").baseline
    assert [each.standing for each in baseline.values()] == ["failed", "passed"], done.out


def test_a_baseline_without_any_result_is_an_error(local: Cli) -> None:
    local.write("conftest.py", NEVER)
    plain(local, "def test_one():\n    pass\n")
    done = run(local, NONE, "--only", "failing")
    done.fails(1, "no test could be run", "RuntimeError: the licence server does not answer")


def test_tests_that_share_a_name_are_one_test(local: Cli) -> None:
    local.write("tests/conftest.py", SCRIPTED)
    local.write("tests/mixed.cases", "good\nbad\ngood\n")
    local.write("tests/all.cases", "good\ngood\n")
    plain(local, "def test_one():\n    pass\n")
    run(local, NONE, "--only", "failing").fails(1, "no change was accepted")
    baseline = runs.load(local.home / "tmr/e").baseline
    assert {node: each.standing for node, each in baseline.items()} == {
        "tests/all.cases::case": "passed",
        "tests/mixed.cases::case": "failed",
        "tests/test_plain.py::test_one": "passed",
    }


SPEECHLESS = """
class Broken(dict):
    def __repr__(self):
        raise TypeError("no words")


def test_error():
    raise ValueError(Broken())


def test_value():
    found = {"a": Broken()}
    assert found["a"] == {1: 2}


def test_last():
    pass
"""


def test_a_failure_that_cannot_be_printed_is_a_failure(local: Cli) -> None:
    plain(local, SPEECHLESS)
    words = ("--name", "e", "--type", "mechanic", "--yes", "--only", "failing", "--workers", "1")
    done = local("tmr", "run", *words, timeout=300)
    done.fails(1, "no change was accepted")
    run = runs.load(local.home / "tmr/e")
    baseline = run.baseline.items()
    frames = {node.rpartition("_")[2]: each.runs[0].exception for node, each in baseline}
    assert frames == {"error": "ValueError", "value": "AssertionError", "last": ""}
    assert done.out.count("found no candidate repair") == 2, done.out


def test_a_project_in_a_folder_of_the_repository_runs_with_its_own_settings(local: Cli) -> None:
    local.write("parts/shop/src/shop.py", "PRICE = 3\n")
    local.write(
        "parts/shop/tests/test_shop.py",
        "from shop import PRICE\n\n\ndef test_price():\n    assert PRICE == 4\n",
    )
    settings = '[tool.pytest.ini_options]\npythonpath = ["src"]\n'
    local.write("parts/shop/pyproject.toml", settings)
    local.commit("parts")
    fix = "sed -i s/3/4/ parts/shop/src/shop.py && git commit -qam fix && "
    publish = "\"$MNGR_AGENT_STATE_DIR/publish\" --attempted fix --summary 'the price'"
    run(local, NONE).fails(1, "No module named 'shop'", f"in {local.repo} to see", "put paths of")
    run(local, fix + publish, "parts/shop", "--only", "failing").ok()
    assert local.git("show", "tmr/e:parts/shop/src/shop.py") == "PRICE = 4"
    assert [*runs.load(local.home / "tmr/e").tests] == ["parts/shop/tests/test_shop.py::test_price"]
