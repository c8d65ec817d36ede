"""Tests that still fail on the branch get another agent there; all are tried at its tip."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mngr_tmr.journal.journal import read
from tests.mngr_tmr.test_resume import PATIENCE, killed_in_between
from tests.support.cli import Cli, until
from tests.support.robots import SETTINGS, Robots

# `one` is repaired at once. `two` first breaks what passed, and is repaired on the branch. `three`
# is given up by its agent, and passes with the repair of `one`.
ROBOT = r"""#!/bin/sh
printf '%s %s\n' "$MNGR_TMR_TASK" "$MNGR_TMR_TRY" >> "$1/launches"
done_with() {
  git -c user.name=Robot -c user.email=robot@example.com commit -qam "$1" &&
    "$MNGR_AGENT_STATE_DIR/publish" --attempted fix --summary "$1"
}
case $MNGR_TMR_TASK in
  one-*) sed -i 's/= 0/= 1/' app/one.py; done_with 'One is one' ;;
  two-*)
    sed -i 's/= 0/= 2/' app/two.py
    [ "$MNGR_TMR_TRY" = 2 ] && grep -q '= 1' app/one.py || sed -i 's/= 5/= 6/' app/fine.py
    done_with 'Two is two' ;;
  *) "$MNGR_AGENT_STATE_DIR/publish" --attempted none --summary 'Too hard' \
      --blocked 'found no repair' --needs 'a manual fix' --no-fix ;;
esac
"""
VALUES = {"one": 0, "two": 0, "fine": 5}
TESTS = {
    "one": "from app.one import VALUE\n\n\ndef test_one():\n    assert VALUE == 1\n",
    "two": "from app.two import VALUE\n\n\ndef test_two():\n    assert VALUE == 2, 'two'\n",
    "three": "from app.one import VALUE\n\n\ndef test_three():\n    assert VALUE + 2 == 3, '3'\n",
    "fine": "from app.fine import VALUE\n\n\ndef test_fine():\n    assert VALUE == 5\n",
}


class Overfitting(Robots):
    def _write(self) -> None:
        self.script.write_text(ROBOT)
        self.cli.write("pyproject.toml", SETTINGS)
        for name, value in VALUES.items():
            self.cli.write(f"app/{name}.py", f"VALUE = {value}\n")
        for name, text in TESTS.items():
            self.cli.write(f"tests/test_{name}.py", text)
        self.cli.write("app/__init__.py", "")
        self.base = self.cli.commit("overfitting")

    @property
    def words(self) -> tuple[str, ...]:
        return (*super().words, "--only", "failing", "--yes")


@pytest.fixture
def robots(local: Cli) -> Overfitting:
    return Overfitting(local, "rounds", seconds=0)


def test_a_test_that_still_fails_on_the_branch_gets_another_agent_there(
    robots: Overfitting,
) -> None:
    done = robots.cli(*robots.words, timeout=PATIENCE).ok()
    launches = [line.partition("-")[0] + line[-2:] for line in robots.launches()]
    assert sorted(launches) == ["one 1", "three 1", "two 1", "two 2"]
    run = robots.run
    assert run.round == 2 and len(run.picks) == 2
    first, second = (pick.commit for pick in run.picks)
    two = next(task for task in run.tasks.values() if task.id.startswith("two-"))
    assert [each.base for each in two.tries] == [robots.base, first]
    assert robots.cli.git("show", "tmr/rounds:app/two.py") == "VALUE = 2"
    assert robots.cli.git("show", "tmr/rounds:app/fine.py") == "VALUE = 5"
    assert robots.cli.git("rev-parse", "tmr/rounds") == second
    assert f"passes with {first[:12]}: tests/test_three.py::test_three" in done.out
    shown = robots.cli("tmr", "show", "rounds", "--format", "json").ok().json()
    assert shown["counts"] == {"fixed": 2, "passes": 1}


@pytest.mark.soak
def test_one_round_is_all_where_no_more_were_asked_for(robots: Overfitting) -> None:
    robots.cli(*robots.words, "--rounds", "1", timeout=PATIENCE).ok()
    assert len(robots.launches()) == 3 and robots.run.round == 1


@pytest.mark.parametrize("seed", [11, pytest.param(12, marks=pytest.mark.soak)])
def test_a_run_that_is_killed_in_any_round_ends_with_the_same_branch(
    robots: Overfitting, seed: int
) -> None:
    dice = random.Random(seed)
    for _ in range(2):
        killed_in_between(robots, dice, robots.words)
    robots.cli(*robots.words, timeout=PATIENCE).ok()
    until(lambda: not robots.cli.processes(), 60, "processes are left")
    assert robots.cli.git("show", "tmr/rounds:app/two.py") == "VALUE = 2"
    assert [pick.subject for pick in robots.run.picks] == ["One is one", "Two is two"]
    assert len(robots.launches()) == len(set(robots.launches())) == 4
    folder: Path = robots.run_folder
    rounds = [event for event in read(folder) if event["type"] == "round"]
    assert len(rounds) == 1
