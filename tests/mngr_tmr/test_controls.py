"""A run in progress, controlled and watched from other processes, with and without a terminal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mngr.model.struct import Json
from mngr_outcome.codec import to_json
from mngr_tmr.dispatch import orders
from mngr_tmr.dispatch.orders import obey
from mngr_tmr.journal.fold import fold
from mngr_tmr.journal.journal import Journal, read
from mngr_tmr.journal.model import Ended, Outcome, Pick
from mngr_tmr.run import runs
from mngr_tmr.run.options import Options
from tests.support.cli import Cli, lives, until
from tests.support.robots import Robots
from tests.support.screen import Screen
from tests.support.simulated import SimulatedInbox

PATIENCE = 300
"""Seconds; a quiet machine needs a hundredth of it."""


def test_a_run_is_paused_retuned_and_cancelled_from_other_processes(robots: Robots) -> None:
    cli = robots.cli
    robots.hold()
    running = robots.start("--max-agents", "1", "--format", "jsonl")
    until(robots.launches, PATIENCE, "a first agent")

    begin = (*robots.words[1:], "--yes")
    for verb in (begin, ("resume", robots.name, "--yes"), ("integrate",)):
        cli("tmr", *verb).fails(1, "in progress in another process", "mngr tmr watch")

    dry = cli("tmr", "pause", "--dry-run", "--format", "json").ok().json()
    assert dry == {"run": "six", "action": "pause", "sent": False}
    assert "Paused run six; no new agents will start." in cli("tmr", "pause", "six").ok().out
    until(lambda: robots.run.paused == "paused by hand", PATIENCE, "the pause")
    assert cli("tmr", "list", "--format", "{status}").ok().out == "paused by hand\n"

    tuned = cli("tmr", "retune", "--max-agents", "4", "--format", "json").ok().json()
    assert tuned["options"] == {"max_agents": 4} and tuned["sent"] is True
    until(lambda: robots.run.options.max_agents == 4, PATIENCE, "the new slots")
    assert len(robots.launches()) == 1, "a paused run launched an agent"

    limits = ("--max-launches", "4", "--max-time", "90m")
    dry = cli("tmr", "retune", *limits, "--dry-run", "--format", "json").ok().json()
    assert dry["options"] == {"max_time": 5400.0, "max_launches": 4} and not dry["sent"]
    told = cli("tmr", "retune", *limits).ok().out
    assert "Retuned run six; --max-time 5400s --max-launches 4." in told
    until(lambda: robots.run.options.max_time == 5400.0, PATIENCE, "limits")
    cli("tmr", "retune", "--max-time", "2h").ok()
    until(lambda: robots.run.options.max_time == 7200.0, PATIENCE, "another limit")
    assert robots.run.options.max_launches == 4, "the others stay as they are"

    with Screen(cli) as screen:
        screen.mngr("tmr", "watch")
        until(lambda: "1 of 4 slots" in screen.text(), PATIENCE, "the view of a watcher")
        cli("tmr", "unpause").ok()
        until(lambda: len(robots.launches()) == 4, PATIENCE, "four agents at once")
        until(lambda: "4 of 4 slots" in screen.text(), PATIENCE, screen.text())
        cli("tmr", "cancel", "--format", "json").ok()
        out, err = running.communicate(timeout=PATIENCE)
        until(lambda: "was cancelled" in screen.text(), PATIENCE, "the end of the watch")

    assert running.returncode == 1, err
    *lines, last = err.splitlines()
    events = [json.loads(line) for line in lines]
    assert {each["type"] for each in events} == {"forecast", "progress"}
    assert {each["run"] for each in events if each["type"] == "progress"} == {"six"}
    assert last == b"mngr: the run six was cancelled"
    assert json.loads(out)["counts"]["cancelled"] == 4
    assert len(robots.launches()) == 4
    assert set(robots.agents().values()) == {"STOPPED"}, "work is kept, nothing runs"


def test_a_run_is_cancelled_while_its_tests_still_run(robots: Robots) -> None:
    mark = robots.hang()
    running = robots.start()
    until(lambda: mark.exists() and mark.read_text(), PATIENCE, "a check hangs")
    robots.cli("tmr", "cancel").ok()
    _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 1 and b"was cancelled" in err, err
    until(lambda: not lives(mark.read_text()), 30, "the check ends")
    assert robots.agents() == {}
    robots.cli("tmr", "resume", timeout=PATIENCE).fails(1, "was cancelled")


@pytest.mark.parametrize(
    ("number", "code", "dry"),
    [(signal.SIGINT, 130, False), (signal.SIGTERM, 143, False), (signal.SIGTERM, 143, True)],
)
def test_who_is_interrupted_leaves_no_check_behind(
    robots: Robots, number: signal.Signals, code: int, *, dry: bool
) -> None:
    mark = robots.hang()
    running = robots.start(*(["--dry-run"] if dry else []))
    until(lambda: mark.exists() and mark.read_text(), PATIENCE, "a check hangs")
    running.send_signal(number)
    _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == code, err
    told = b"Interrupted. Continue with `mngr tmr resume six`." if not dry else b""
    assert told in err and b"Traceback" not in err
    assert robots.run_folder.exists() is not dry
    until(lambda: not lives(mark.read_text()), 30, "the check ends")
    assert robots.agents() == {}


def test_a_run_that_cannot_write_names_the_command_that_continues_it(robots: Robots) -> None:
    robots.hold()
    running = robots.start("--only", "failing")
    until(robots.launches, PATIENCE, "a first agent")
    (robots.run_folder / "pull-request.md").mkdir()
    robots.release()
    _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 1, err
    assert b"the run six stopped: " in err and b"Is a directory" in err, err
    assert b"`mngr tmr resume six`" in err
    (robots.run_folder / "pull-request.md").rmdir()
    robots.cli("tmr", "resume", "six", "--yes", timeout=PATIENCE).ok()


@pytest.mark.soak
def test_edits_in_the_repository_do_not_disturb_a_run_that_has_begun(robots: Robots) -> None:
    cli = robots.cli
    cli.write("app/add.py", "broken\n")
    cli(*robots.words, "--yes").fails(1, "uncommitted changes", "app/add.py", "commit them")
    cli.git("checkout", "-q", "app/add.py")
    robots.hold()
    running = robots.start("--max-agents", "1")
    until(robots.launches, PATIENCE, "a first agent")
    cli.write("app/add.py", "broken\n")
    robots.release()
    _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, err
    assert len(robots.branch()) == 4, "tests, and three repairs"
    assert cli.git("status", "--porcelain").split() == ["M", "app/add.py"]


# orders without a run in progress


@pytest.mark.parametrize("action", [pytest.param("pause", marks=pytest.mark.soak), "cancel"])
def test_an_order_outlives_the_process_that_was_killed_before_it_read_it(
    robots: Robots, action: str
) -> None:
    """Only a pause does not outlive the `resume` that comes after it."""
    robots.hold()
    running = robots.start("--max-agents", "1")
    until(robots.launches, PATIENCE, "a first agent")
    running.kill()
    running.communicate()
    orders.send(robots.run_folder, {"action": action})
    robots.release()
    done = robots.cli("tmr", "resume", timeout=PATIENCE)
    if action == "cancel":
        done.fails(1, "was cancelled")
        assert len(robots.launches()) == 1
    else:
        assert "The run six is done." in done.ok().out
    assert [each["action"] for each in read(robots.run_folder) if "action" in each] == [action]
    assert list((robots.run_folder / "control").iterdir()) == []


def test_agents_are_announced_agreed_to_and_watched_on_a_terminal(robots: Robots) -> None:
    """These agents all die, which is told at once, and again at the end."""
    words = [word for word in robots.words if not word.startswith("--agent-arg")]
    limits = ["--retries", "0", "--alert-after", "2", "--only", "failing", "--max-agents", "2"]
    told = robots.folder / "told"
    alert = ["--on-alert", f'echo "$MNGR_TMR_RUN: $MNGR_TMR_ALERT" >> {told}']
    begin = [*words, *limits, *alert, "--agent-arg=false"]
    with Screen(robots.cli) as screen:
        screen.mngr(*begin)
        until(lambda: "Start them? [y/N]" in screen.text(), PATIENCE, "a question")
        for words_there in (
            "6 tests collected, 4 selected: 4 to fix, 0 to improve.",
            "Agents of this type do not report their usage.",
            "At most 2 agents at the same time",
        ):
            assert words_there in screen.text()
        screen.type("n")
        until(lambda: "No agent was started" in screen.text(), PATIENCE, "a no")
        assert not robots.run_folder.exists()
        screen.type("clear")
        screen.mngr(*begin)
        until(lambda: "Start them? [y/N]" in screen.text(), PATIENCE, "the question again")
        screen.type("y")
        until(lambda: "of 4; " in screen.text() and "slots" in screen.text(), PATIENCE, "a view")
        until(lambda: "no change was accepted" in screen.text(), PATIENCE, "the end")
        assert "mngr: alert: 2 agents ended the same way: died" in screen.text()
    assert told.read_text().startswith("six: 2 agents ended the same way: died")
    assert len(told.read_text().splitlines()) == 1
    robots.cli("tmr", "resume", "six", timeout=PATIENCE).fails(1, "failed")
    assert len(told.read_text().splitlines()) == 1, "an old alert was raised again"


# looking at runs, from a journal alone


@pytest.fixture
def past(local: Cli) -> Cli:
    """Return a run with two tasks, one of which has ended, that no process works on."""
    folder = runs.root(str(local.home)) / "past"
    tasks: list[Json] = [
        {"task": each, "node_id": f"t.py::test_{each}", "want": "fix"} for each in ("a", "b")
    ]
    with Journal(folder, lambda: 1_700_000_000.0) as journal:
        options = to_json(Options())
        journal.append("run_started", {"run": "past", "repository": "/r", "options": options})
        journal.append("selected", {"tasks": tasks})
        journal.append("agreed", {})
        journal.append("try_intended", {"task": "a", "try": 1, "agent_name": "tmr-past-a-1"})
        ended = Ended(Outcome.BLOCKED, "no\x1b[31m network")
        journal.append("try_ended", {"task": "a", "try": 1, "ended": to_json(ended)})
    return local


def test_runs_are_listed_and_shown_in_every_format(past: Cli) -> None:
    assert (
        past("tmr", "list").ok().out.splitlines()[1].split()[:4] == "past interrupted 0 2".split()
    )
    row = past("tmr", "list", "--format", "json").ok().json()["runs"][0]
    assert (row["run"], row["status"], row["begun"]) == (
        "past",
        "interrupted",
        "2023-11-14T22:13:20Z",
    )
    assert json.loads(past("tmr", "list", "--format", "jsonl").ok().out) == row
    assert past("tmr", "show", "--format", "{task} {ending}\\n").ok().out == (
        "a blocked\n\nb unfinished\n\n"
    )
    shown = past("tmr", "show", "past", "--format", "json").ok().json()
    assert shown["counts"] == {"blocked": 1, "unfinished": 1}
    assert [task["agent"] for task in shown["tasks"]] == ["tmr-past-a-1", ""]
    human = past("tmr", "show").ok().out
    assert human.startswith("The run past is interrupted (1 blocked, 1 unfinished).\nENDING ")
    assert "\x1b" not in human
    with Screen(past) as screen:
        screen.tmux("resize-window", "-x", "34", "-y", "40")
        screen.mngr("tmr", "show")
        screen.shows("The run past is interrupted", "blocked     t.py::tes…  no network")
        lines = screen.tmux("capture-pane", "-p").partition("ENDING")[2].splitlines()
        assert [line.split()[0] for line in lines[1:3]] == ["blocked", "unfinished"], "not wrapped"
    assert past("tmr", "watch", "--format", "json").ok().json()["run"] == "past"


def test_a_branch_that_is_not_published_yet_has_no_name(past: Cli) -> None:
    pick = Pick("implementation", ("a",), "c" * 40, "t" * 40, "Fix it")
    with Journal(runs.root(str(past.home)) / "past", lambda: 1_700_000_000.0) as journal:
        journal.append("picked", {"pick": to_json(pick)})
    assert past("tmr", "show").ok().out.endswith("\nBranch: 1 commit so far\n")


@pytest.mark.parametrize("verb", ["pause", "cancel", "retune", "show", "watch", "resume", "report"])
def test_a_run_that_is_not_there_is_named_with_the_nearest(past: Cli, verb: str) -> None:
    more = ["--max-agents", "2"] if verb == "retune" else []
    past("tmr", verb, "pst", *more).fails(4, "no run 'pst'", "'past'")
    past("tmr", verb, "past", "other", *more).fails(2, "expected one run")


@pytest.mark.parametrize("verb", ["pause", "cancel", "retune"])
def test_a_run_that_nobody_works_on_cannot_be_steered(past: Cli, verb: str) -> None:
    more = ["--max-agents", "2"] if verb == "retune" else []
    past("tmr", verb, *more).fails(1, "is not in progress", "mngr tmr resume past")
    assert not (past.home / "tmr/past/control").exists()


def test_a_run_that_has_ended_is_not_to_be_continued(past: Cli) -> None:
    with Journal(runs.root(str(past.home)) / "past", lambda: 1_700_000_000.0) as journal:
        journal.append("run_ended", {"status": "cancelled", "branch": ""})
    past("tmr", "pause").fails(1, "the run past has ended (cancelled); see `mngr tmr show past`")


def test_retune_wants_something_to_change_even_if_that_is_the_default(past: Cli) -> None:
    past("tmr", "retune").fails(2, "nothing to change", "--max-agents")
    past("tmr", "retune", "--max-agents", "4").fails(1, "is not in progress")


def test_budgets_and_seeds_may_be_large(past: Cli) -> None:
    budgets = ["--max-tokens", "2000000", "--agent-max-tokens", "500k"]
    past("tmr", "retune", *budgets).fails(1, "is not in progress")
    past("tmr", "retune", "--max-tokens", "0").fails(2, "--max-tokens: must be more than 0")
    past("tmr", "show", "--seed", "20261119").fails(2, "does not take --seed")


def test_orders_that_are_none_do_not_reach_the_journal(past: Cli) -> None:
    folder = runs.root(str(past.home)) / "past"
    run = fold(read(folder))
    noted: list[str] = []
    options: list[Json] = ["x", {"max_agents": "many"}, [1]]
    inbox = SimulatedInbox([{"action": "retune", "options": each} for each in options])
    obey(run, lambda type, fields: noted.append(type), lambda: None, inbox)
    assert not noted and not inbox.orders
    control = folder / "control"
    control.mkdir()
    Path(control, "1.json").write_text("{")
    Path(control, "2.json").write_text("[]")
    sent = orders.send(folder, {"action": "pause"})
    assert orders.ControlFolder(folder).waiting() == [(sent.name, {"action": "pause"})]
    assert list(control.iterdir()) == [sent]


# Obeys as a run does, and is killed either before an order is in the journal, or right after.
OBEY = """
import os, sys, time
from pathlib import Path
from mngr_tmr.run import runs
from mngr_tmr.dispatch import orders
from mngr_tmr.journal.fold import apply
from mngr_tmr.journal.journal import Journal

folder, moment = Path(sys.argv[1]), sys.argv[2]
run, inbox = runs.load(folder), orders.ControlFolder(folder)

def note(type, fields):
    if moment == "before":
        os.kill(os.getpid(), 9)
    apply(run, journal.append(type, fields, sync=False))

def killed(name):
    os.kill(os.getpid(), 9)

if moment == "after":
    inbox.discard = killed
with Journal(folder, time.time) as journal:
    orders.obey(run, note, journal.sync, inbox)
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_orders_are_obeyed_once_whenever_the_one_who_obeys_is_killed(
    past: Cli, moment: str
) -> None:
    folder = runs.root(str(past.home)) / "past"
    orders.send(folder, {"action": "pause"})
    orders.send(folder, {"action": "retune", "options": {"max_cost": 5.0}})
    orders.send(folder, {"action": "cancel"})
    for each, code in ((moment, -9), ("", 0)):
        argv = [sys.executable, "-c", OBEY, str(folder), each]
        assert subprocess.run(argv, env=past.env).returncode == code
    actions = [each["action"] for each in read(folder) if each["type"] == "control"]
    assert actions == ["pause", "retune", "cancel"]
    run = runs.load(folder)
    assert run.paused == "paused by hand" and run.cancelled
    assert run.options.max_cost == 5.0
    assert list((folder / "control").iterdir()) == []
