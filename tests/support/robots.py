"""A project of six tests with six causes, and a program that treats each in its fixed way.

Plain pytest and plain sh: a whole run of the pipeline takes seconds, so that it can be killed,
resumed, paused and steered many times over.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from mngr_tmr.journal.model import Run
from mngr_tmr.run import runs
from tests.support.cli import Cli

NAMES = ("add", "sub", "mul", "div", "word", "idle")

WRONG = {"add": "one - two", "sub": "one + two", "mul": "one ** two", "word": "missing(one, two)"}
RIGHT = {"add": "one + two", "sub": "one - two", "mul": "one * two", "div": "one // two"}
EXPECTED = {"add": 5, "sub": -1, "mul": 6, "div": 0, "word": 0, "idle": 2}

MODULE = "def {name}(one: int, two: int) -> int:\n    return {body}\n"
TEST = "from app.{name} import {name}\n\n\ndef test_{name}():\n    assert {name}(2, 3) == {value}\n"

# Waits in the first check until it is killed.
HANG = """import os, time
from pathlib import Path

mark = Path({mark!r})
if not mark.exists():
    mark.write_text(str(os.getpid()))
    time.sleep(1000)
"""

# Every start is a line in $ROBOTS. `mul` dies once, `word` is blocked, `idle` changes nothing.
ROBOT = r"""#!/bin/sh
printf '%s %s\n' "$MNGR_TMR_TASK" "$MNGR_TMR_TRY" >> "$1/launches"
done_with() {
  git -c user.name=Robot -c user.email=robot@example.com commit -qam "$2" &&
    "$MNGR_AGENT_STATE_DIR/publish" --attempted "$1" --summary "$2"
}
while [ -e "$1/hold" ]; do sleep 0.1; done
sleep "${2:-0}"
case $MNGR_TMR_TASK in
  add-*) sed -i 's/one - two/one + two/' app/add.py; done_with fix 'Addition adds' ;;
  sub-*)
    sed -i 's/one + two/one - two/' app/sub.py
    printf '\n\ndef test_sub_of_nothing():\n    assert sub(2, 0) == 2\n' >> tests/test_sub.py
    done_with fix 'Subtraction subtracts' ;;
  mul-*)
    [ "$MNGR_TMR_TRY" = 1 ] && exit 3
    sed -i 's/one \*\* two/one * two/' app/mul.py; done_with fix 'Multiplication multiplies' ;;
  div-*)
    printf '    assert div(7, 2) == 3\n' >> tests/test_div.py
    done_with improve 'A quotient that is not whole' ;;
  word-*)
    "$MNGR_AGENT_STATE_DIR/publish" --attempted none --summary 'No words here' \
      --blocked 'there is no dictionary' --needs 'a dictionary' ;;
  *) "$MNGR_AGENT_STATE_DIR/publish" --attempted none --summary 'All is well' ;;
esac
"""

# Only pytest itself: the plugins of the user would take longer than the tests.
SETTINGS = """[tool.mngr_tmr]
pytest = "env PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python -m pytest"
"""


class Robots:
    """The project in a Cli's repository, and the actions of its robots."""

    def __init__(self, cli: Cli, name: str = "six", seconds: float = 0.2) -> None:
        self.cli, self.name, self.seconds = cli, name, seconds
        self.folder = cli.base / "robots"
        self.folder.mkdir()
        self.script = self.folder / "robot.sh"
        self.script.write_text(ROBOT)
        self.paths: tuple[str, ...] = ()
        self._write()

    def _write(self) -> None:
        cli = self.cli
        cli.write("pyproject.toml", SETTINGS)
        for name in NAMES:
            body = WRONG.get(name) or RIGHT.get(name) or "one"
            cli.write(f"app/{name}.py", MODULE.format(name=name, body=body))
            text = TEST.format(name=name, value=EXPECTED[name])
            cli.write(f"tests/test_{name}.py", text)
        cli.write("app/__init__.py", "")
        self.base = cli.commit("six")

    def hold(self) -> None:
        """Make robots that start or run stay at work until `release`."""
        (self.folder / "hold").touch()

    def hang(self) -> Path:
        """Make the first check of the next run hang; its process id is then in the file."""
        mark = self.folder / "hanging"
        self.cli.write("tests/conftest.py", HANG.format(mark=str(mark)))
        # Without a sandbox, in which it could not write there and would have another process id.
        self.cli.write("pyproject.toml", f"{SETTINGS}sandbox = false\n")
        self.base = self.cli.commit("hang")
        return mark

    def release(self) -> None:
        (self.folder / "hold").unlink(missing_ok=True)

    # the command

    @property
    def words(self) -> tuple[str, ...]:
        """Return the arguments of `mngr tmr` that begin or continue the run."""
        agent = ["sh", str(self.script), str(self.folder), str(self.seconds)]
        return (
            *(
                "tmr",
                "run",
                *self.paths,
                "--name",
                self.name,
                "--type",
                "command",
                "--repeats",
                "1",
            ),
            *(f"--agent-arg={word}" for word in agent),
        )

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        """Start the run in the background."""
        return self.cli.start(*self.words, "--yes", *more)

    # results

    @property
    def run_folder(self) -> Path:
        return self.cli.home / "tmr" / self.name

    @property
    def run(self) -> Run:
        return runs.load(self.run_folder)

    def lines(self) -> int:
        try:
            return (self.run_folder / "journal.jsonl").read_bytes().count(b"\n")
        except FileNotFoundError:
            return 0

    def launches(self) -> list[str]:
        """Return the task and the attempt of every robot that ever started."""
        try:
            return (self.folder / "launches").read_text().splitlines()
        except FileNotFoundError:
            return []

    def branch(self) -> list[str]:
        """Return tree and message of every commit, oldest first."""
        shas = self.cli.git("rev-list", "--reverse", f"{self.base}..tmr/{self.name}").split()
        return [self.cli.git("show", "-s", "--format=%T%n%B", sha) for sha in shas]

    def agents(self) -> dict[str, str]:
        """Return name and state of all agents that `mngr list` shows."""
        listed = self.cli("list", "--format", "json").ok().json()["agents"]
        return {each["name"]: each["state"] for each in listed}
