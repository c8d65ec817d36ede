"""A change that looks like a special case for a test is held for review, off the branch."""

from __future__ import annotations

import random

import pytest

from mngr_tmr.integrate.ranking import counts
from mngr_tmr.journal.model import Ruling
from mngr_tmr.run import prompting
from mngr_tmr.run.settings import ProjectSettings
from tests.mngr_tmr.test_resume import PATIENCE, killed_in_between
from tests.support.cli import Cli, until
from tests.support.robots import SETTINGS, Robots

# `one` is repaired. The cases of `many` are right under pytest only; honestly so in a second try,
# unless the robots are stubborn.
ROBOT = r"""#!/bin/sh
printf '%s %s\n' "$MNGR_TMR_TASK" "$MNGR_TMR_TRY" >> "$1/launches"
done_with() {
  git -c user.name=Robot -c user.email=robot@example.com commit -qam "$1" &&
    "$MNGR_AGENT_STATE_DIR/publish" --attempted fix --summary "$1"
}
case $MNGR_TMR_TASK in
  one-*) sed -i 's/= 0/= 1/' app/one.py; done_with 'One is one' ;;
  *)
    if [ "$MNGR_TMR_TRY" = 1 ] || [ -e "$1/stubborn" ]; then
      sed -i 's/return 0/return n if "pytest" in __import__("sys").modules else 0/' app/many.py
      done_with 'Many are right'
    else
      sed -i 's/return 0/return n/' app/many.py; done_with 'Many are themselves'
    fi ;;
esac
"""
FILES = {
    "app/__init__.py": "",
    "app/one.py": "VALUE = 0\n",
    "app/many.py": "def many(n):\n    return 0\n",
    "tests/test_one.py": "from app.one import VALUE\n\n\ndef test_one():\n    assert VALUE == 1\n",
    "tests/test_many.py": (
        "import pytest\n\nfrom app.many import many\n\n\n"
        '@pytest.mark.parametrize("n", [1, 2, 3])\ndef test_many(n):\n    assert many(n) == n\n'
    ),
}
LINE = 'app/many.py:2: return n if "pytest" in __import__("sys").modules else 0'
WHY = "(names the test runner: pytest)"


class Cheats(Robots):
    def _write(self) -> None:
        self.script.write_text(ROBOT)
        self.cli.write("pyproject.toml", SETTINGS)
        for name, text in FILES.items():
            self.cli.write(name, text)
        self.base = self.cli.commit("cheats")

    @property
    def words(self) -> tuple[str, ...]:
        return (*super().words, "--only", "failing", "--yes")

    def stubborn(self) -> None:
        (self.folder / "stubborn").touch()

    def show(self, path: str) -> str:
        return self.cli.git("show", f"tmr/held:{path}")


@pytest.fixture
def robots(local: Cli) -> Cheats:
    return Cheats(local, "held", seconds=0)


def test_a_flagged_change_is_held_and_everything_says_how_to_take_it(robots: Cheats) -> None:
    cli = robots.cli
    done = cli(*robots.words, "--rounds", "1", timeout=PATIENCE).ok()
    assert len(robots.launches()) == 4, "those that waited for a held fix got their own agents"
    assert counts(robots.run) == {"held for review": 3, "fixed": 1}
    assert [pick.subject for pick in robots.run.picks] == ["One is one"]
    assert robots.show("app/many.py") == FILES["app/many.py"].strip()

    task = next(task for task in robots.run.tasks.values() if task.id.startswith("many"))
    command = f"git cherry-pick refs/mngr/tmr/held/held/{task.id}"
    told = (robots.run_folder / "pull-request.md").read_text()
    page = (robots.run_folder / "report/index.html").read_text()
    shown = cli("tmr", "show", "held").ok().out
    for text in (done.out, shown, told, page):
        assert command in text
        assert "many.py:2: return n if" in text
        assert "names the test runner: pytest" in text
    row = cli("tmr", "show", "held", "--format", "json").ok().json()
    assert row["counts"] == {"held for review": 3, "fixed": 1}
    ref = command.rpartition(" ")[2]
    assert {"test": task.node_id, "flags": [f"{LINE} {WHY}"], "ref": ref} in row["held"]

    cli.git("checkout", "-q", "tmr/held")
    cli.git(*command.split()[1:])
    assert "pytest" in (cli.repo / "app/many.py").read_text()
    assert f"- {LINE} {WHY}" in cli.git("show", "-s", "--format=%B", "HEAD")


def test_flagged_changes_come_last_where_they_are_asked_for(robots: Cheats) -> None:
    robots.stubborn()
    cli = robots.cli
    cli(*robots.words, timeout=PATIENCE).ok()
    assert len(robots.launches()) == 7, "a round without a new commit is the last"
    assert counts(robots.run) == {"held for review": 3, "fixed": 1}
    done = cli("tmr", "integrate", "held", "--include-flagged", timeout=PATIENCE).ok()
    run = robots.run
    assert counts(run) == {"fixed": 4}
    assert [pick.subject for pick in run.picks] == ["One is one", "Many are right"]
    assert "pytest" in robots.show("app/many.py") and "cherry-pick" not in done.out
    assert f"- {LINE} {WHY}" in cli.git("show", "-s", "--format=%B", "tmr/held")
    # said again, it is the same; and it stays so without the option
    cli("tmr", "integrate", "held", timeout=PATIENCE).ok()
    assert [pick.tree for pick in robots.run.picks] == [pick.tree for pick in run.picks]


@pytest.mark.soak
def test_a_run_may_ask_for_flagged_changes_from_the_start(robots: Cheats) -> None:
    robots.cli(*robots.words, "--include-flagged", timeout=PATIENCE).ok()
    assert robots.run.round == 1 and counts(robots.run) == {"fixed": 4}
    assert [pick.subject for pick in robots.run.picks] == ["One is one", "Many are right"]


def test_a_test_whose_change_is_held_gets_another_agent_that_is_told_why(robots: Cheats) -> None:
    robots.cli(*robots.words, timeout=PATIENCE).ok()
    run = robots.run
    assert counts(run) == {"fixed": 2, "passes": 2}
    assert robots.show("app/many.py") == "def many(n):\n    return n"
    assert len(robots.launches()) == 5
    task = next(task for task in run.tasks.values() if len(task.tries) == 2)
    assert [each.verdict and each.verdict.ruling for each in task.tries] == [
        Ruling.HELD,
        Ruling.ACCEPTED,
    ]
    # including what was held adds nothing to a test that passes
    trees = [pick.tree for pick in run.picks]
    robots.cli("tmr", "integrate", "held", "--include-flagged", timeout=PATIENCE).ok()
    assert [pick.tree for pick in robots.run.picks] == trees

    task.tries.pop()  # as it was when the second agent began
    prompt = prompting.tester(run, ProjectSettings(), task, "")
    assert f"    {LINE} {WHY}\n" in prompt and "not on the branch" in prompt
    task.tries.clear()
    assert "not on the branch" not in prompting.tester(run, ProjectSettings(), task, "")


@pytest.mark.soak
@pytest.mark.parametrize("seed", [21, 22])
def test_a_run_that_is_killed_holds_the_same(robots: Cheats, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(2):
        killed_in_between(robots, dice, robots.words)
    robots.cli(*robots.words, timeout=PATIENCE).ok()
    until(lambda: not robots.cli.processes(), 60, "processes are left")
    assert [pick.subject for pick in robots.run.picks] == ["One is one", "Many are themselves"]
    assert len(robots.launches()) == len(set(robots.launches())) == 5
    held = robots.cli.git("for-each-ref", "--format=%(refname)", "refs/mngr/tmr/held/held")
    assert len(held.split()) == 3


DOCTESTED = '''\
"""Prices."""


def total(prices):
    """Add prices.

    >>> total([2, 3])
    5
    """
    amount = 0
    for price in prices:
        amount -= price
    return amount


def double(n):
    """Double a number.

    >>> double(2)
    4
    """
    return n * 3
'''
EDITS = r"""
case $MNGR_TMR_TASK in
  *total*) sed -i 's/^    5$/    -5/' shop.py ;;
  *) sed -i 's/n \* 3/n * 2/' shop.py ;;
esac
git -c user.name=Robot -c user.email=robot@example.com commit -qam 'a change'
"$MNGR_AGENT_STATE_DIR/publish" --attempted fix --summary "changed it"
"""


def test_a_module_with_doctests_is_fixed_and_its_examples_are_not_changed(local: Cli) -> None:
    local.write("shop.py", DOCTESTED)
    local.write("pytest.ini", "[pytest]\naddopts = --doctest-modules\n")
    local.commit("a shop")
    agent = (f"--agent-arg={word}" for word in ("sh", "-c", EDITS))
    words = ("--name", "d", "--type", "command", "--only", "failing", "--rounds", "1", "--yes")
    done = local("tmr", "run", *words, *agent, timeout=300).ok()
    assert "held for review: shop.py::shop.total" in done.out, done.out
    assert "shop.py: (changes examples that are doctests)" in done.out, done.out
    changed = local.git("diff", "main", "tmr/d").splitlines()
    assert [line for line in changed if line[:1] in "+-" and line[1:3] not in ("++", "--")] == [
        "-    return n * 3",
        "+    return n * 2",
    ]
