"""Hosts that a test can cut off, break and restore: one entry per provider.

Each site has a host `box`, created before the test begins, in an engine that no other test uses at
the same time.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import pytest

from mngr.hosts import ledger
from mngr.hosts.base import Host
from mngr.hosts.ledger import HostNote
from mngr.ops.world import World
from mngr.plugins.registry import load_registry
from mngr.settings.layers import Config
from tests.support.cli import Cli, Result
from tests.support.cloud import running
from tests.support.lab import cluster, engine, machines
from tests.support.lab.cluster import Cluster
from tests.support.lab.engine import Engine
from tests.support.places import (
    BOXES,
    describe,
    ended,
    on_cloud,
    on_cluster,
    on_engine,
    on_slurm_templates,
    reaching,
    without_hosts,
)


@dataclass
class Site:
    """A CLI, a host that it can reach, and the faults of that host."""

    cli: Cli
    host: str
    provider: str
    inside: Callable[[str], str]
    """Runs a script there as root, without mngr."""
    cut: Callable[[], None]
    """Makes the host stop answering, without an error."""
    refuse: Callable[[], None]
    """Breaks off running calls, and refuses new ones."""
    heal: Callable[[], None]
    """Undoes all faults; may be repeated."""
    wrappers: str
    """A folder at the front of PATH there, for programs of a test."""
    die: Callable[[], object]
    """Ends the host itself, with everything that runs there."""
    smaller: Callable[[], Site]
    """Returns the site of a host, perhaps this one, whose home has 3 MB of space."""
    delay: Callable[[int], None]
    """Delays every later call by that many seconds; 0 ends this."""

    def __call__(self, *words: str, timeout: float = 200) -> Result:
        return self.cli(*words, timeout=timeout)

    @property
    def it(self) -> Host:
        """Return the host as mngr itself has it."""
        config = Config.load(str(self.cli.controller_home), str(self.cli.repo), self.cli.env)
        return World(config, load_registry(config)).host(self.host, self.provider)

    def argv(self, *words: str) -> list[str]:
        """Return the local command that runs these words there."""
        return [*self.cli.within, *self.it.argv(words)]

    def at(self, name: str) -> str:
        return f"{name}@{self.host}"

    @property
    def home(self) -> str:
        """Return $MNGR_HOST_DIR there."""
        path = self.cli.controller_home / "hosts" / self.provider / f"{self.host}.json"
        return str(json.loads(path.read_text())["home"])

    def folders(self, name: str) -> list[str]:
        return self.inside(f"cd {self.home} && ls {name} 2>/dev/null || :").split()

    def states(self, *words: str) -> dict[str, str]:
        listed = self("list", "--format", "json", *words).ok().json()["agents"]
        return {each["name"]: each["state"] for each in listed}

    def program(self, name: str, text: str) -> None:
        """Put a program at the front of PATH there, or remove it."""
        path = shlex.quote(f"{self.wrappers}/{name}")
        if not text:
            self.inside(f"rm -f {path}")
            return
        self.inside(f"printf %s {shlex.quote(text)} > {path} && chmod 755 {path}")


@contextmanager
def ssh(request: pytest.FixtureRequest, base: Path) -> Iterator[Site]:
    lab: machines.Lab = request.getfixturevalue("lab")
    box = lab.machines[0]
    cli = reaching(lab, base)
    note = HostNote(
        name=box.name, provider="ssh", home=f"{box.home}/.mngr", user=1000, shell="bash"
    )
    ledger.write(str(cli.controller_home), note)  # as if it had been used before

    def inside(script: str) -> str:
        return box.inside("sh", "-c", script)

    def smaller() -> Site:
        inside(f"mkdir -p {box.home}/.mngr; chown {box.user} {box.home}/.mngr")
        return shrunk(made, inside)

    made = Site(
        cli, box.name, "ssh", inside, box.cut, box.refuse, box.heal, "/usr/local/bin", box.refuse,
        smaller, box.answer_after,
    )  # fmt: skip
    yield made
    ended(cli)
    inside(f"umount -l {box.home}/.mngr 2>/dev/null; :")  # left by a failed test
    for each in lab.machines:
        each.reset()


def shrunk(site: Site, mounting: Callable[[str], str]) -> Site:
    """Replace a host's home by a small file system with the same files."""
    home = site.home
    small = f"mount -t tmpfs -o size=3m,mode=700,uid=$(stat -c %u {home}.away) none {home}"
    mounting(f"mv {home} {home}.away && mkdir {home} && {small} && cp -a {home}.away/. {home}/")
    return site


CLIENTS = {"boxes": "docker", "slurm": "srun", "nodes": "srun", "kubernetes": "kubectl"}
LATE = """#!/bin/sh
case "{program} $* " in srun*|"docker exec"*|kubectl*" exec "*) sleep {seconds} ;; esac
exec {path} "$@"
"""


def late_client(cli: Cli, provider: str) -> Callable[[int], None]:
    """Return a function that delays this provider's client, also for commands under way."""
    program = CLIENTS.get(provider, provider)
    folder = cli.base / "late"
    folder.mkdir()
    cli.env["PATH"] = f"{folder}:{cli.env['PATH']}"

    def delay(seconds: int) -> None:
        (folder / program).unlink(missing_ok=True)
        if seconds:
            fresh = folder / "fresh"
            fresh.write_text(LATE.format(program=program, path=which(program), seconds=seconds))
            fresh.chmod(0o755)
            fresh.rename(folder / program)

    return delay


def _on(made: Engine, cli: Cli, provider: str) -> Site:
    delay = late_client(cli, provider)

    def host(name: str, *words: str) -> Site:
        cli("host", "create", name, "--provider", provider, *words, timeout=200).ok()
        note = json.loads((cli.controller_home / "hosts" / provider / f"{name}.json").read_text())
        handle = str(note["handle"])
        into = ("exec", "-u", "root", handle, "sh", "-c")
        return Site(
            cli, name, provider, lambda script: made.told(*into, script), made.freeze, made.down,
            made.heal, "/usr/local/bin", lambda: made.told("kill", handle), smaller, delay,
        )  # fmt: skip

    def smaller() -> Site:
        return host("small", "-s", "--tmpfs=/srv/dev/.mngr:size=3m,mode=0700,uid=1000")

    return host("box")


@contextmanager
def docker(request: pytest.FixtureRequest, base: Path) -> Iterator[Site]:
    made: Engine = request.getfixturevalue("own_engine")
    with on_engine(made, base) as cli:
        yield _on(made, cli, "docker")
        made.heal()


@contextmanager
def docker_template(request: pytest.FixtureRequest, base: Path) -> Iterator[Site]:
    made: Engine = request.getfixturevalue("own_engine")
    with on_engine(made, base) as cli:
        describe(cli, "boxes", BOXES)
        yield _on(made, cli, "boxes")
        made.heal()


def _allocated(made: Cluster, cli: Cli, provider: str, base: Path, *words: str) -> Site:
    bin = base / "wrappers"
    bin.mkdir()
    cli.env["PATH"] = f"{bin}:{cli.env['PATH']}"  # Slurm passes it on
    delay = late_client(cli, provider)
    cli("host", "create", "box", "--provider", provider, *words, timeout=200).ok()
    job, node = made.ask("squeue", "-h", "-o", "%i %N").split()

    def inside(script: str) -> str:
        return made.inside(node, script)

    def die() -> None:
        made.ask("scancel", job)

    site = Site(
        cli, "box", provider, inside, made.freeze, made.refuse, made.heal, str(bin), die,
        lambda: shrunk(site, inside), delay,
    )  # fmt: skip
    return site


@contextmanager
def slurm(request: pytest.FixtureRequest, base: Path) -> Iterator[Site]:
    made: Cluster = request.getfixturevalue("own_cluster")
    with on_cluster(made, base) as cli:
        yield _allocated(made, cli, "slurm", base)
        made.heal()


@contextmanager
def slurm_template(request: pytest.FixtureRequest, base: Path) -> Iterator[Site]:
    made: Cluster = request.getfixturevalue("own_cluster")
    with on_slurm_templates(made, base) as cli:
        found = _allocated(made, cli, "nodes", base)
        yield found
        made.heal()
        # These hosts share a home, so the next test would see the agents of this one.
        home = found.home
        without_hosts(cli)
        found.inside(f"umount -l {home} 2>/dev/null; rm -rf {home}")


@contextmanager
def modal(request: pytest.FixtureRequest, base: Path) -> Iterator[Site]:
    made: running.Cloud = request.getfixturevalue("own_cloud")
    with on_cloud(made, base) as cli, pytest.MonkeyPatch.context() as patch:
        for key in made.env(""):  # for hosts that the test asks itself, in this process
            patch.setenv(key, cli.env[key])
        cli("host", "create", "box", "--provider", "modal").ok()
        (box,) = made.sandboxes(running.owner(cli))

        def die() -> None:
            made.end(running.owner(cli), box)

        def inside(script: str) -> str:
            return made.inside(box, script)

        def delay(seconds: int) -> None:
            made.order(running.owner(cli), hold={"TaskExecStart": seconds})

        site = Site(
            cli, "box", "modal", inside, made.freeze, made.refuse, made.heal, "/usr/local/bin",
            die, lambda: shrunk(site, inside), delay,
        )  # fmt: skip
        yield site
        made.heal()


def only(*names: str) -> pytest.MarkDecorator:
    """Return these sites in every run, and all others in the soak."""
    every = [
        each if each in names else pytest.param(each, marks=pytest.mark.soak) for each in SITES
    ]
    return pytest.mark.parametrize("site", every, indirect=True)


Opened = Callable[[pytest.FixtureRequest, Path], AbstractContextManager[Site]]

SITES: dict[str, tuple[Opened, Callable[[], str]]] = {
    "ssh": (ssh, machines.why_not),
    "docker": (docker, engine.why_not),
    "slurm": (slurm, cluster.why_not),
    "modal": (modal, running.why_not),
    "docker-template": (docker_template, engine.why_not),
    "slurm-template": (slurm_template, cluster.why_not),
}
