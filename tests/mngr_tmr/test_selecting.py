"""Which tests get an agent, what a project may set, and what is refused before a run begins."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mngr.errors import UsageError
from mngr.model.state import EndKind
from mngr.model.struct import Json
from mngr_outcome.outcome import Obstacle
from mngr_tmr.dispatch.judging import Sighting, judge
from mngr_tmr.dispatch.life import is_missing
from mngr_tmr.dispatch.throttle import over_budget
from mngr_tmr.integrate.ranking import ending_of
from mngr_tmr.journal.fold import fold
from mngr_tmr.journal.model import Baseline, Ended, Outcome, Run, Test, TestRun, Try
from mngr_tmr.run import forecast, prompting, publishing, selecting
from mngr_tmr.run.costs import Spending
from mngr_tmr.run.options import Options
from mngr_tmr.run.settings import ProjectSettings, parse, pytest_command
from mngr_tmr.run.words import span
from tests.mngr_tmr.test_conductor import Stage
from tests.support.cli import Cli

RUNS = {
    "good": ("passed", "passed"),
    "weak": ("passed", "passed"),
    "bad": ("failed", "failed"),
    "flaky": ("passed", "failed"),
    "skipped": ("skipped", "skipped"),
}


def measured(**options: object) -> Run:
    run = Run(options=Options(**options), weak={"weak"})  # type: ignore[arg-type]
    run.tests = {each: Test(each, "t.py") for each in RUNS}
    run.baseline = {each: Baseline((*map(TestRun, runs),)) for each, runs in RUNS.items()}
    return run


@pytest.mark.parametrize(
    ("only", "chosen", "why"),
    [
        ("all", ["good", "weak", "bad", "flaky"], {}),
        ("failing", ["bad", "flaky"], {"good": "passes"}),
        ("weak", ["weak"], {"good": "fails when its commands do nothing"}),
        (
            "problems",
            ["weak", "bad", "flaky"],
            {"good": "passes, and fails when its commands do nothing"},
        ),
        ("flaky", ["flaky"], {"bad": "not flaky"}),
        ("changed", ["bad"], {"good": "does not use a changed file"}),
    ],
)
def test_each_choice_selects_its_tests_and_gives_a_reason_for_the_others(
    only: str, chosen: list[str], why: dict[str, str]
) -> None:
    found = selecting.select(measured(only=only), {"bad"})
    assert [task.node_id for task in found.tasks] == chosen
    assert found.left_out["skipped"] == "skipped at the baseline"
    assert found.left_out.items() >= why.items()
    assert {*chosen, *found.left_out} == {*RUNS}


def test_a_sample_adds_passing_tests_the_same_for_the_same_seed() -> None:
    run = measured(only="failing", sample=1, seed=3)
    found = [task.node_id for task in selecting.select(run).tasks]
    assert found == [task.node_id for task in selecting.select(run).tasks]
    assert found[:2] == ["bad", "flaky"] and found[2] in ("good", "weak") and len(found) == 3
    run = measured(only="failing", sample=9)
    assert len(selecting.select(run).tasks) == 4  # and never a skipped test


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tool.mngr_tmr", "pyproject.toml: "),
        ("[tool.mngr_tmr]\nfrobidden = []", "unknown key tool.mngr_tmr.frobidden"),
        ("[tool.mngr_tmr]\nforbidden = 'x'", "tool.mngr_tmr.forbidden must be a list of strings"),
        ("[tool.mngr_tmr]\nsetup = 1", "tool.mngr_tmr.setup must be a string"),
        ("[tool.mngr_tmr]\nsandbox = 1", "tool.mngr_tmr.sandbox must be true or false"),
        ("[tool.mngr_tmr]\ncheck_timeout = true", "check_timeout must be a whole number"),
    ],
)
def test_a_wrong_setting_of_the_project_is_named(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told.replace(".", r"\.")):
        parse(text)


def test_pytest_is_run_as_the_project_says_else_by_its_own_python_else_by_ours(
    tmp_path: Path,
) -> None:
    here = str(tmp_path)
    assert pytest_command(parse("[tool.mngr_tmr]\npytest = 'uv run pytest'"), here, "") == (
        "uv run pytest"
    )
    assert pytest_command(ProjectSettings(python="py thon"), here, "") == "'py thon' -m pytest"
    assert pytest_command(ProjectSettings(), here, "") == f"{sys.executable} -m pytest"
    assert pytest_command(ProjectSettings(), here, "docker") == "python3 -m pytest"
    own = tmp_path / ".venv/bin/python"
    own.parent.mkdir(parents=True)
    own.touch()
    assert pytest_command(ProjectSettings(), here, "local") == f"{own} -m pytest"


def test_a_project_replaces_a_prompt_and_an_unknown_variable_in_it_is_an_error(
    tmp_path: Path,
) -> None:
    (tmp_path / "prompts").mkdir()
    own = tmp_path / "prompts/integrator.md"
    project, run = ProjectSettings(prompts="prompts"), Run(repository=str(tmp_path))
    own.write_text("Join $part in $paths.")
    assert prompting.integrator(run, project, "abc", "a.py", "t") == "Join abc in a.py.\n"
    own.write_text("Join $parts.")
    with pytest.raises(UsageError, match=r"the prompt integrator\.md: 'parts'") as error:
        prompting.integrator(run, project, "abc", "a.py", "t")
    assert error.value.hint == "it may use $part, $paths, $tests"


def test_an_agent_over_its_cost_or_without_its_program_ends_with_that_outcome() -> None:
    each = Try(1, "a", "b", 0.0)
    options = Options(agent_max_cost=0.5)
    step = judge(each, Sighting("RUNNING", spent=Spending(9, 0.75)), 1.0, options)
    assert (step.outcome, step.text) == (Outcome.OVER_BUDGET, "used $0.75 of $0.50")
    seen = Sighting("FAILED", "command not found: claude", ending=EndKind.NEVER_BEGAN)
    step = judge(each, seen, 1.0, options)
    assert (step.outcome, step.text) == (Outcome.LAUNCH_FAILED, "command not found: claude")


def test_a_run_is_over_its_time_limit_when_its_minutes_have_passed() -> None:
    run = Run(started=1000.0, options=Options(max_time=120.0))
    assert over_budget(run, 1119.0) == ""
    assert over_budget(run, 1120.0) == "the time limit of the run (2 min) is reached"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(1, "1 s"), (90, "90 s"), (1800, "30 min"), (5400, "90 min"), (7200, "2 h"), (0.5, "0.5 s")],
)
def test_a_limit_is_told_in_the_unit_it_was_given(seconds: float, told: str) -> None:
    assert span(seconds) == told
    run = Run(options=Options(max_time=seconds))
    assert over_budget(run, 1e9) == f"the time limit of the run ({told}) is reached"


def test_files_that_could_not_be_collected_are_named_before_and_after() -> None:
    errors = tuple(f"t{n}.py: E   No\nmodule" for n in range(7))
    run = Run(name="r", collect_errors=errors, status="nothing to do")
    for text in (forecast.told(run), forecast.dry_run(run), publishing.closing_words(run, "")):
        assert "Could not be collected: t0.py: E No module\n" in text
        assert "and 2 more" in text


def test_staggered_agents_start_one_after_the_other(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run", Options(max_agents=3, stagger=2.0))
    stage.note("selected", tasks=[{"task": f"t{n}", "node_id": f"t{n}"} for n in range(3)])
    conductor = stage.conductor()
    launched = []
    for _ in range(5):
        conductor.step()
        launched.append(len(stage.fleet.launched))
        stage.clock.sleep(1.0)
    assert launched == [1, 1, 2, 2, 3]
    stage.close()


def test_tasks_that_wait_for_each_other_are_released(tmp_path: Path) -> None:
    """Only a damaged journal contains such tasks."""
    stage = Stage(tmp_path / "run")
    row: dict[str, Json] = {"want": "improve"}
    one = {**row, "task": "a", "node_id": "a", "canary": "b"}
    stage.note("selected", tasks=[one, {**row, "task": "b", "node_id": "b", "canary": "a"}])
    conductor = stage.conductor()
    conductor.conduct(1.0)
    assert conductor.finished and len(stage.fleet.launched) == 2
    stage.close()


def test_what_cannot_begin_is_refused_before_anything_is_written(local: Cli) -> None:
    def refused(*words: str, code: int = 2) -> None:
        *args, told = words
        local("tmr", "run", "--type", "command", *args).fails(code, told)

    refused("--name", "trash", "'trash': this name is reserved")
    refused("--name", "Night", "at most 20 lower-case letters, digits and dashes")
    refused("--base", "nosuch", "'nosuch' is not a commit in")
    refused("--max-cost", "much", "'much' is not an amount of money; write dollars, as in 2.50")
    local("tmr", "rm").fails(2, "name one run", "mngr tmr list")
    local("tmr", "frobnicate").fails(2, "unknown command: mngr tmr frobnicate", "commands: run")
    local.write("README.md", "edited\n")
    local.git("add", "README.md")
    refused("has uncommitted changes (README.md), which agents would not see", code=1)
    assert not (local.home / "tmr").exists()


def test_a_mechanic_that_found_no_repair_does_not_count_as_a_missing_program() -> None:
    """Else two such canaries would give up their whole cluster as blocked."""
    assert not is_missing(Ended(Outcome.BLOCKED, needs="time", obstacle=Obstacle.NO_FIX))
    assert is_missing(Ended(Outcome.BLOCKED, needs="more time to set up an account"))


@pytest.mark.parametrize(
    ("fields", "ending"),
    [
        ({"reason": "its cluster requires lowdown", "as": "blocked"}, "blocked"),
        ({"reason": "over budget: $1.00 is used up", "as": "over budget"}, "over budget"),
        ({"reason": "died out with the fix of b", "by": "b"}, "skipped"),
        ({"reason": "passes with the fix of b", "by": "b"}, "skipped"),
    ],
)
def test_a_skipped_test_has_the_result_that_its_event_names(
    fields: dict[str, Json], ending: str
) -> None:
    tasks: list[Json] = [{"task": "a", "node_id": "t.py::a", "want": "fix"}]
    selected: dict[str, Json] = {"type": "selected", "tasks": tasks}
    run = fold([selected, {"type": "skipped", "task": "a", **fields}])
    assert ending_of(run.tasks["a"]) == ending
