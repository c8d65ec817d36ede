"""Compare ssh hosts with raw ssh over a connection that is already open.

Without a network, a raw call takes only CPU time of ssh, less than the start of Python. So
everything is measured again over connections with the delay of a real network.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

from benchmarks.measure import Row, interleaved, once, ratio
from mngr.hosts.ssh import SshHost
from tests.support.cli import Cli
from tests.support.lab.machines import lab, why_not
from tests.support.places import hang_up, reaching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.run import Bench

DELAY = 10
"""Milliseconds that a byte travels to a host that is far away, and as many back."""
RELAY = Path(__file__).parent / "relay.py"
NUMBERS = count()
PROGRAM = ("--no-connect", "--", "sleep", "10000")


def rows(bench: Bench) -> list[Row]:
    """Return the rows; none if this machine cannot run the hosts."""
    if why_not():
        return []
    hosts = 3 if bench.rounds < 21 else 10
    base = Path(tempfile.mkdtemp(prefix="mngr-bench-"))
    with lab(base / "lab") as made:
        made.start(hosts)
        cli = reaching(made, base / "cli")
        try:
            _fill(cli, hosts)
            near = _rows(cli, bench.rounds, hosts, "")
            _move_away(cli)
            return [*near, *_rows(cli, bench.rounds, hosts, f"{2 * DELAY} ms away: ")]
        finally:
            hang_up(cli)
            shutil.rmtree(base, ignore_errors=True)


def _move_away(cli: Cli) -> None:
    """Delay all further connections to the hosts."""
    hang_up(cli)
    command = f"ProxyCommand {sys.executable} {RELAY} %h %p {DELAY}"
    config = Path(cli.env["MNGR__PROVIDERS__SSH__CONFIG"])
    config.write_text(f"{config.read_text()}Host *\n  {command}\n")
    cli("list").ok()


def _rows(cli: Cli, rounds: int, hosts: int, where: str) -> list[Row]:
    config = cli.env["MNGR__PROVIDERS__SSH__CONFIG"]
    host = SshHost("box1", str(cli.controller_home), config)

    def raw(argv: Sequence[str]) -> float:
        return once([*cli.within, *host.argv(argv)], cli.env, str(cli.repo))

    def mngr(*words: str) -> float:
        # The installed program, as a user runs it: `python -m` costs 2 to 4 ms more.
        program = str(Path(sys.executable).with_name("mngr"))
        return once([*cli.within, program, *words], cli.env, str(cli.repo))

    def bare() -> float:
        return once([sys.executable, "-c", "pass"], cli.env, str(cli.repo))

    names = [f"box{number}" for number in range(1, hosts + 1)]
    every = [SshHost(name, str(cli.controller_home), config).argv(["true"]) for name in names]
    commit = cli.git("rev-parse", "HEAD")
    listed, true, floor = interleaved(
        rounds,
        lambda: mngr("list"),
        lambda: raw(["true"]),
        lambda: bare() + _at_once(cli, every),
    )
    ran, command, least = interleaved(
        rounds,
        lambda: mngr("exec", "a0@box1", "--", "git", "--version"),
        lambda: raw(["git", "--version"]),
        lambda: bare() + raw(["git", "--version"]),
    )
    created, sequence = interleaved(
        max(5, rounds // 3),
        lambda: mngr("create", f"new-{next(NUMBERS)}@box1", *PROGRAM),
        lambda: _sequence(raw, f"raw-{next(NUMBERS)}", commit),
    )
    many = f"{where}list, {hosts} ssh hosts, {hosts * 10} agents /"
    return [
        ratio(f"{many} ssh true", listed, true, 3),
        # The lower bound for hosts that share these cores and a program in Python.
        ratio(f"{many} {hosts} at once", listed, floor, 2),
        ratio(f"{where}exec on an ssh host / raw ssh", ran, command, 2),
        ratio(f"{where}exec on an ssh host / raw ssh + python", ran, least, 2),
        ratio(f"{where}create on an ssh host / raw commands", created, sequence, 2.5),
    ]


def _at_once(cli: Cli, commands: Sequence[Sequence[str]]) -> float:
    """Return the time to run all commands in parallel, as any program must that asks every host."""
    began = time.perf_counter()
    started = [
        subprocess.Popen([*cli.within, *each], env=cli.env, stdin=subprocess.DEVNULL)
        for each in commands
    ]
    assert not any(each.wait() for each in started)
    return time.perf_counter() - began


def _fill(cli: Cli, hosts: int) -> None:
    lines = [
        f'{{"name":"a{n}@box{box}","args":["sleep","10000"]}}\n'
        for box in range(1, hosts + 1)
        for n in range(10)
    ]
    cli("create", "--batch", "-", input="".join(lines), timeout=600).ok()


def _sequence(raw: Callable[[Sequence[str]], float], folder: str, commit: str) -> float:
    """Return the time of the commands that any tool must run: check the name, clone, start, check.

    The commits are already on the host.
    """
    mirror = "$(ls -d .mngr/mirrors/* | head -n 1)"
    tmux = f"tmux -L raw new-session -d -s {folder} -c {folder} sh $PWD/{folder}.sh"
    commands = (
        f"test ! -e {folder}",
        f"git clone -q --shared {mirror} {folder}; git -C {folder} checkout -qb {folder} {commit}",
        f"echo 'exec sleep 10000' > {folder}.sh",
        tmux,
        f"tmux -L raw list-panes -t {folder}",
    )
    return sum(raw(["sh", "-c", each]) for each in commands)
