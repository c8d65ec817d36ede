"""Record a day's work with mngr as the animated picture of the README; `make docs` runs this.

    scripts/record_day.py docs/day.svg           records in a real terminal of 80 columns
    scripts/record_day.py --check docs/day.svg   runs the same commands without one, and compares

One agent is Claude Code with a scripted model, so no account is required. The picture contains its
text as a description, so the check requires no terminal. Text that differs from run to run (names
of folders, hashes, ages) is replaced by text of the same width.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parent))

from terminal_svg import Frame, svg, text_of

from tests.support.model import ModelServer
from tests.support.programs import program

ROOT = Path(__file__).parents[1]
WIDTH, HEIGHT = 80, 24
HOME = "/home/you"
PATIENCE = 120.0
SHELL = "env 'PS1=$ ' sh"
"""The shell of the recording. tmux starts it from another shell, whose prompt would differ."""

PROJECT = {
    "shop.py": "def total(prices):\n    amount = 0\n    for price in prices:\n"
    "        amount -= price\n    return amount\n",
    "tests/test_shop.py": "from shop import total\n\n\ndef test_total():\n"
    "    assert total([2, 3]) == 5\n",
    "Makefile": "notes:\n\tgit log --format='- %s' > NOTES.md\n",
}
PROMPT = "write the release notes"
ASKING = '{"permissions": {"defaultMode": "default"}}'
"""Not Claude's automatic mode, in which the model decides whether a command is safe."""

# Claude records its question a moment after it shows it.
ASKED = "until mngr answer notes | grep -q 'make notes'; do :; done"
# Each scene begins on an empty screen. The second command of a pair is a wait, which is not shown.
SCENES: list[list[tuple[str, str]]] = [
    [
        ("# create three agents, each on its own branch", ""),
        ("mngr create fix mechanic -m 'fix tests/test_shop.py::test_total'", ""),
        ("mngr create suite -- python3 -m pytest -q", "mngr wait suite --timeout 2m"),
        (f"mngr create notes claude -m '{PROMPT}'", f"mngr wait fix notes --timeout 2m; {ASKED}"),
    ],
    [
        ("# show their states, and answer a permission request", ""),
        ("mngr list", ""),
        ("mngr answer notes", ""),
        ("mngr answer notes --allow", "until mngr exec notes 'test -s NOTES.md'; do :; done"),
    ],
    [
        ("# review the fix of the bug, and merge it", ""),
        ("mngr diff fix", ""),
        ("mngr merge fix", ""),
    ],
    [
        ("# a destroyed agent can be restored, with its uncommitted files", ""),
        ("mngr destroy suite notes --force", ""),
        ("mngr restore notes", ""),
        ("mngr exec notes 'cat NOTES.md'", ""),
        ("mngr list", ""),
    ],
]


class Day:
    """A temporary home and project; its path has the length of the path that is shown."""

    def __init__(self) -> None:
        self.home = _folder()
        self.work = self.home / "shop"
        self.model = ModelServer()
        # The model never answers after the tool has run, so that the agent stays at work.
        self.model.on(PROMPT, say="Looking.", run="make notes").then(hold="the end of the day")
        self.env = {
            "HOME": str(self.home),
            "PATH": f"{ROOT}/.venv/bin:{program('claude')}:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "TERM": "xterm-256color",
            "MNGR__COMMANDS__CREATE__CONNECT": "false",
            "PYTHONDONTWRITEBYTECODE": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            **self.model.environment("claude"),
        }
        for name, text in PROJECT.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.home / ".gitconfig").write_text("[user]\nname = You\nemail = you@example.com\n")
        (self.home / ".claude").mkdir()
        (self.home / ".claude" / "settings.json").write_text(ASKING)
        for words in ("init -q -b main", "add -A", "commit -qm 'Add the shop'"):
            self.run(f"git {words}")

    def run(self, command: str) -> str:
        """Run a command and return its output; the exit code is not checked."""
        done = subprocess.run(
            ["sh", "-c", command], cwd=self.work, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=2 * PATIENCE,
            check=False,
        )  # fmt: skip
        return done.stdout

    def close(self) -> None:
        """End the agents and their tmux server, and remove the home."""
        from mngr.hosts import tmux

        self.run("mngr stop --all --quiet")
        socket = tmux.socket_path(str(self.home / ".mngr"), os.getuid())
        subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True, check=False)
        Path(socket).unlink(missing_ok=True)
        self.model.__exit__(None, None, None)
        shutil.rmtree(self.home, ignore_errors=True)


def _folder() -> Path:
    """Create and return a folder whose path is as long as HOME, so that masking keeps columns."""
    while True:
        stem = os.urandom(4).hex()[: len(HOME) - len("/tmp/d")]
        try:
            made = Path(f"/tmp/d{stem}")
            made.mkdir(mode=0o700)
            return made
        except FileExistsError:
            continue


# masking


HASH = re.compile(r"(?<![\w-])(?=[a-f]*\d)[0-9a-f]{7,40}(?![\w])|(?<=-)(?=[a-f]*\d)[0-9a-f]{8}\b")
AGE = re.compile(r"(?<= )\d{1,2}[smh] {2,3}(?=\S)")
# Usually `starting`, but `working` on a busy machine.
CREATED = re.compile(r"^(Created \S+; it is RUNNING )\((?:starting|working)\)", re.MULTILINE)
DIGITS = "3f2a91c07be4d586" * 3


def masked(text: str, home: Path, known: dict[str, str]) -> str:
    """Return the text with `home`, hashes and ages replaced by text of the same width."""

    def alias(found: re.Match[str]) -> str:
        shift = 5 * (len(known) + 1) % 16
        short = found[0][:7]
        known.setdefault(short, DIGITS[shift:] + DIGITS[:shift])
        return known[short][: len(found[0])]

    text = text.replace(str(home), HOME)
    text = CREATED.sub(r"\1(starting)", HASH.sub(alias, text))
    return AGE.sub(lambda found: "4s".ljust(len(found[0])), text)


# without and with a terminal


def replayed(day: Day) -> str:
    """Run the scenes without a terminal; return the transcript."""
    known: dict[str, str] = {}
    lines = []
    for scene in SCENES:
        for command, wait in scene:
            lines.append(f"$ {command}")
            if not command.startswith("#"):
                lines += masked(day.run(command), day.home, known).splitlines()
            if wait:
                day.run(wait)
    return "\n".join(line.rstrip() for line in lines if line.strip())


class Terminal:
    """A shell in a separate tmux server."""

    def __init__(self, day: Day) -> None:
        self.day = day
        self.socket = str(day.home / "screen")
        self.prompts = 1
        size = ("-x", str(WIDTH), "-y", str(HEIGHT))
        self.tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(day.work), SHELL)
        self.tmux("set-option", "-g", "status", "off")
        self.tmux("resize-window", *size)

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", self.socket, *words],
            env=self.day.env, capture_output=True, check=False,
        )  # fmt: skip
        return done.stdout.decode()

    def type(self, command: str) -> None:
        self.prompts += 1
        self.tmux("send-keys", "-l", command)
        self.tmux("send-keys", "Enter")
        self._settle(command)

    def _settle(self, command: str) -> None:
        """Wait until the screen ends with one more prompt."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            lines = [line.rstrip() for line in self.tmux("capture-pane", "-p").splitlines()]
            shown = [line for line in lines if line]
            prompts = [line for line in shown if line == "$" or line.startswith("$ ")]
            if shown[-1:] == ["$"] and len(prompts) == self.prompts:
                return
            time.sleep(0.05)
        raise SystemExit(f"record_day: no prompt after {command!r}:\n{self.frame()}")

    def frame(self) -> str:
        return self.tmux("capture-pane", "-p", "-e")

    def clear(self) -> None:
        """Start a new shell on an empty screen; a typed `clear` might not have run yet."""
        self.prompts = 1
        self.tmux("respawn-pane", "-k", "-c", str(self.day.work), SHELL)
        self._settle("")

    def close(self) -> None:
        self.tmux("kill-server")


def recorded(day: Day) -> tuple[list[Frame], str]:
    """Return a frame for each command, and the transcript; raise if a line is too wide."""
    terminal = Terminal(day)
    known: dict[str, str] = {}
    frames: list[Frame] = []
    lines: list[str] = []
    try:
        for scene in SCENES:
            terminal.clear()
            for command, wait in scene:
                terminal.type(command)
                if not command.startswith("#"):
                    frames.append(Frame(masked(terminal.frame(), day.home, known)))
                if wait:
                    day.run(wait)
            shown = terminal.tmux("capture-pane", "-p", "-J")
            wide = [line for line in shown.splitlines() if len(line.rstrip()) > WIDTH]
            if wide:
                raise SystemExit(f"record_day: wider than {WIDTH} columns: {wide[0]}")
            lines += text_of(frames[-1]).splitlines()[:-1]
    finally:
        terminal.close()
    return frames, "\n".join(line.rstrip() for line in lines if line.strip())


def check(path: Path) -> int:
    day = Day()
    try:
        now = replayed(day)
    finally:
        day.close()
    found = re.search(r"<desc>(.*?)</desc>", path.read_text(), re.DOTALL)
    from html import unescape

    before = unescape(found[1]).strip() if found else ""
    if now == before:
        return 0
    import difflib

    for line in difflib.unified_diff(before.splitlines(), now.splitlines(), str(path), "now"):
        print(line.rstrip())
    print(f"{path} is stale; run `make docs`")
    return 1


def main(words: list[str]) -> int:
    if not shutil.which("npm"):
        print("record_day: npm is not installed; it installs Claude Code", file=sys.stderr)
        return 1
    if words[:1] == ["--check"] and len(words) == 2:
        return check(Path(words[1]))
    if len(words) != 1 or words[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    day = Day()
    try:
        frames, text = recorded(day)
    finally:
        day.close()
    path = Path(words[0])
    picture = svg(frames, WIDTH, HEIGHT, "A day's work with mngr", text)
    if not path.exists() or path.read_text() != picture:
        path.write_text(picture)
        print(f"{path} written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
