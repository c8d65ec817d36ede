"""Run random commands in parallel, kill some of them, and check that nothing was lost.

Meanwhile the audit writes files and commits in the agents' directories, wherever these are at the
moment, and records each of them. All of them must be found at the end.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.cli import Cli, lives, until

SEED = int(os.environ.get("MNGR_SOAK_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
NAMES = tuple("abcdef")
PATIENCE = 300
CODES = (0, 1, 2, 3, 4)
"""Exit codes with which a command may end that was not killed."""

SLEEP = ("--", "sleep", "1000")
CREATE = ("--no-connect", *SLEEP)
MIRROR = ("--no-connect", "--transfer", "git-mirror", *SLEEP)
AT_ONCE = ("-S", "trash.keep=0s")

Words = Callable[[str, str], tuple[str, ...]]
COMMANDS: list[tuple[int, Words]] = [
    (6, lambda name, _: ("create", name, *CREATE)),
    (3, lambda name, _: ("create", name, *MIRROR)),
    (2, lambda name, other: ("clone", name, other)),
    (2, lambda name, _: ("stop", name)),
    (2, lambda name, _: ("start", name)),
    (3, lambda name, _: ("destroy", "--force", name)),
    (2, lambda name, _: ("destroy", "--force", "-b", name)),
    (4, lambda name, _: ("restore", name)),
    (1, lambda name, other: ("restore", name, "--as", other)),
    (2, lambda name, other: ("rename", name, other)),
    (3, lambda name, _: ("snapshot", "create", name)),
    (1, lambda name, _: ("snapshot", "restore", name, "1")),
    (1, lambda name, _: ("pull", name, "--force")),
    (1, lambda name, _: ("diff", name)),
    (1, lambda name, _: ("label", name, "seen=yes")),
    (1, lambda name, _: ("list",)),
    (2, lambda name, _: ("gc",)),
]
PURGE = (3, lambda name, _: ("gc", *AT_ONCE))


@dataclass
class Audit:
    """A home that is audited, and the evidence so far."""

    cli: Cli
    seed: int
    purging: bool = False
    """Whether the trash is emptied meanwhile; purged files need not be found."""
    made: dict[str, str] = field(default_factory=dict)
    """The agent in whose directory each file and commit was made, by its unique name."""
    complaints: list[str] = field(default_factory=list)
    ran: int = 0
    killed: int = 0

    # actions

    def run(self, workers: int = 8, turns: int = 20) -> Audit:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda worker: self._work(worker, turns), range(workers)))
        return self

    def _work(self, worker: int, turns: int) -> None:
        dice = random.Random(f"{self.seed}.{worker}")
        commands = [*COMMANDS, PURGE] if self.purging else COMMANDS
        weights = [weight for weight, _ in commands]
        for turn in range(turns):
            (_, words) = dice.choices(commands, weights)[0]
            delay = dice.random() * 0.8 if dice.random() < 0.2 else None
            self._command(words(dice.choice(NAMES), dice.choice(NAMES)), delay)
            self._change(dice, f"t-{worker}-{turn}")

    def _command(self, words: tuple[str, ...], delay: float | None) -> None:
        process = self.cli.start(*words)
        self.ran += 1
        if delay is not None:
            time.sleep(delay)
            self.killed += process.poll() is None
            process.send_signal(signal.SIGKILL)
        try:
            _, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            self.complaints.append(f"{words} did not end within {PATIENCE} s")
            return
        if not (process.returncode == -signal.SIGKILL and delay is not None):
            self._judge(words, process.returncode, err.decode())

    def _judge(self, words: tuple[str, ...], code: int, err: str) -> None:
        """Record a complaint unless it ended with a known exit code and a one-line error."""
        said = any(line.startswith("mngr") for line in err.splitlines())
        clean = "Traceback" not in err and "internal error" not in err
        if not clean or code not in CODES or (code and not said):
            self.complaints.append(f"{words} exited {code}: {err.strip()}")

    def _change(self, dice: random.Random, token: str) -> None:
        """Write a file, and perhaps commit it, in a random work directory, even in the trash."""
        places = work_dirs(self.cli.home)
        if places and write(place := dice.choice(places), token):
            self.made[token] = agent_of(place)
            if dice.random() < 0.5 and self._commit(place, f"c{token}"):
                self.made[f"c{token}"] = agent_of(place)

    def _commit(self, place: Path, subject: str) -> bool:
        for words in (["add", "-A"], ["commit", "-qm", subject]):
            try:
                done = subprocess.run(
                    ["git", *words], cwd=place, env=self.cli.env, capture_output=True
                )
            except FileNotFoundError:  # it was just moved
                return False
            if done.returncode:
                return False
        return True

    # checks

    def check(self) -> None:
        """Check the invariants once all commands have ended, and again without agents."""
        self._quiet()
        self._collect()
        self._settled()
        names = self._names()
        assert sorted(set(names)) == sorted(names), "two agents have one name"
        self._all_found()
        if names:
            self.cli("destroy", "--force", *names, timeout=PATIENCE).ok()
        assert self._names() == []
        self._settled()
        self._collect()
        self._all_found()
        self.cli.git("fsck", "--connectivity-only")
        assert not self.complaints, "\n".join(self.complaints)

    def _quiet(self) -> None:
        """Wait until the children of killed commands have ended, such as git."""
        ours = [pid for pid in self.cli.processes() if not agent_id_of(pid)]
        working = [pid for pid in ours if not command_of(pid).startswith("tmux")]
        until(lambda: not any(map(lives, working)), PATIENCE, "the last command's end")

    def _settled(self) -> None:
        """Check that only agents listed as running have processes."""
        deadline = time.monotonic() + 60
        while unaccounted := self._unaccounted():
            assert time.monotonic() < deadline, f"unaccounted for: {unaccounted}"
            time.sleep(0.2)

    def _names(self) -> list[str]:
        listed = self.cli("list", "--format", "json").ok().json()
        assert not listed["errors"], listed["errors"]
        states = {each["name"]: (each["state"], each["state_reason"]) for each in listed["agents"]}
        odd = {name: how for name, how in states.items() if how[0] not in ("RUNNING", "STOPPED")}
        assert not {name: how for name, how in odd.items() if not startable(how)}, odd
        return [str(each["name"]) for each in listed["agents"]]

    def _collect(self) -> None:
        """Check that `gc` completes what was interrupted, and then finds nothing more to do."""
        self.cli("gc", timeout=PATIENCE).ok()
        again = self.cli("gc", timeout=PATIENCE).ok()
        assert (again.out, again.err) == ("", "Nothing to remove.\n"), "gc leaves something"

    def _unaccounted(self) -> list[str]:
        """Return processes of this home that belong to no running agent."""
        agents = self.cli("list", "--format", "json").ok().json()["agents"]
        states = {each["id"]: f"{each['state']} ({each['state_reason']})" for each in agents}
        found = [(command_of(pid), agent_id_of(pid)) for pid in self.cli.processes()]
        return [
            f"{command}of {agent or 'no agent'}, {states.get(agent, self._whereabouts(agent))}"
            for command, agent in found
            if command and not command.startswith("tmux")
            if not states.get(agent, "").startswith("RUNNING")
        ]

    def _whereabouts(self, agent: str) -> str:
        return "in the trash" if agent and (self.cli.home / "trash" / agent).exists() else "unknown"

    def _all_found(self) -> None:
        there = found(self.cli)
        kept = agents_kept(self.cli.home)
        lost = {
            token: agent
            for token, agent in self.made.items()
            if token not in there and not (self.purging and agent not in kept)
        }
        assert not lost, f"lost, with the agent that made it: {lost}"


def startable(how: tuple[str, str]) -> bool:
    """Return whether `start` repeats a killed launch; everything else must be whole or gone."""
    state, reason = how
    return state in ("LOST", "FAILED") and "being destroyed" not in reason


def work_dirs(home: Path) -> list[Path]:
    """Return all work directories; git may still remove one that is being created."""
    begun = [place for place in home.glob("worktrees/*") if launched(home, place)]
    return sorted([*begun, *home.glob("trash/*/work")])


def launched(home: Path, place: Path) -> bool:
    return any(home.glob(f"agents/agent-{place.name.rpartition('-')[2]}*/started"))


def agent_of(place: Path) -> str:
    """Return the first eight digits of the agent's id, from the path of its work directory."""
    name = place.parent.name if place.name == "work" else place.name
    return name.removeprefix("agent-")[:8] if place.name == "work" else name.rpartition("-")[2]


def agents_kept(home: Path) -> set[str]:
    folders = [*home.glob("agents/agent-*"), *home.glob("trash/agent-*")]
    return {folder.name.removeprefix("agent-")[:8] for folder in folders}


def write(place: Path, token: str) -> bool:
    """Write a file through the open directory, which may be moved meanwhile."""
    try:
        folder = os.open(place, os.O_DIRECTORY)
    except OSError:
        return False
    try:
        file = os.open(token, os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=folder)
        os.write(file, token.encode())
        os.close(file)
        return True
    except OSError:  # it was removed, because the trash was purged
        return False
    finally:
        os.close(folder)


def found(cli: Cli) -> set[str]:
    """Return the names of all files, and the subjects and files of all commits, in this home."""
    there = set()
    for _, folders, files in os.walk(cli.home):
        folders[:] = [name for name in folders if name != ".git"]
        there |= {name for name in files if name.startswith("t-")}
    for repository in repositories(cli):
        log = cli.git("log", "--all", "-m", "--name-only", "--format=%s", cwd=repository)
        there |= set(log.split("\n"))
    return there


def repositories(cli: Cli) -> Iterator[Path]:
    yield cli.repo
    yield from cli.home.glob("mirrors/*.git")
    places = [*cli.home.glob("worktrees/*"), *cli.home.glob("trash/*/work")]
    yield from (place for place in places if cloned(place / ".git"))


def cloned(git: Path) -> bool:
    """Return whether git accepts the repository: a killed `create` leaves half a clone."""
    return all((git / part).exists() for part in ("HEAD", "objects", "refs"))


def command_of(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return ""
    return words.decode(errors="replace") if lives(pid) else ""


def agent_id_of(pid: int) -> str:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    found = [each for each in variables if each.startswith(b"MNGR_AGENT_ID=")]
    return found[0].partition(b"=")[2].decode() if found else ""
