"""The hosts on which tests run agents, one per provider: the same test runs on all of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from mngr.hosts.ssh import control_folder
from tests.support.cli import Cli, Result, until
from tests.support.cloud import running
from tests.support.lab import cluster, engine, kubernetes, machines


@dataclass
class Place:
    """A CLI, and the host on which its agents are created."""

    cli: Cli
    suffix: str
    """The suffix that makes a name an address there: `@box1`, `@.docker`."""
    other: str
    """Another host, as a target for moving agents."""

    def at(self, name: str) -> str:
        return f"{name}{self.suffix}"


def ended(cli: Cli) -> None:
    """Close the CLI; a process that begins at that moment, such as a hook, may be seen after it."""
    cli.close()
    hang_up(cli)
    until(lambda: not cli.processes(), what="the test left processes running")


def hang_up(cli: Cli) -> None:
    """End the connections that ssh keeps; ssh overwrites the environment that would identify it."""
    folder = Path(control_folder(str(cli.controller_home), make=False))
    for socket in folder.glob("*"):
        subprocess.run(["ssh", "-S", str(socket), "-O", "exit", "x"], capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def local(request: pytest.FixtureRequest, base: Path) -> Iterator[Place]:
    """This machine; the other host is behind `env -i sh`."""
    cli = Cli(base, provider="bare")
    del cli.env["MNGR__COMMANDS__CREATE__PROVIDER"]
    cli.home, elsewhere = cli.controller_home, cli.home
    yield Place(cli, "", "bare")
    ended(cli)
    cli.home = elsewhere
    ended(cli)


@contextmanager
def ssh(request: pytest.FixtureRequest, base: Path) -> Iterator[Place]:
    """A machine with its own file system, users and locale; the other host is the local one."""
    lab: machines.Lab = request.getfixturevalue("lab")
    cli = reaching(lab, base)
    yield Place(cli, f"@{lab.machines[0].name}", "localhost")
    ended(cli)
    for each in lab.machines:
        each.reset()


def reaching(lab: machines.Lab, base: Path) -> Cli:
    """A CLI whose ssh reaches the lab's hosts, and trusts their keys."""
    cli = Cli(base, within=tuple(lab.entering()))
    config = cli.user_home / "ssh_config"  # ssh itself reads ~/.ssh of the user that runs it
    config.write_text(lab.config())
    cli.env["MNGR__PROVIDERS__SSH__CONFIG"] = str(config)
    cli.controller_home.mkdir()
    (cli.controller_home / "known_hosts").write_text(lab.known_hosts())
    return cli


@contextmanager
def docker(request: pytest.FixtureRequest, base: Path) -> Iterator[Place]:
    """A container for each agent; the other host is this machine."""
    with on_engine(request.getfixturevalue("engine"), base) as cli:
        yield Place(cli, "@.docker", "localhost")


@contextmanager
def on_engine(made: engine.Engine, base: Path) -> Iterator[Cli]:
    """A CLI whose containers are created from the lab's image, by the tests' own engine."""
    cli = Cli(base)
    cli.env |= made.env | {"MNGR__PROVIDERS__DOCKER__BASE": engine.BASE}
    try:
        yield cli
        without_hosts(cli)
        assert not made.containers(cli), "the test left containers"
    finally:
        made.remove(cli)
        ended(cli)


@contextmanager
def slurm(request: pytest.FixtureRequest, base: Path) -> Iterator[Place]:
    """An allocation for each agent; the other host is this machine."""
    with cluster.cluster() as made, on_cluster(made, base) as cli:
        yield Place(cli, "@.slurm", "localhost")


@contextmanager
def slurm_cgroup(request: pytest.FixtureRequest, base: Path) -> Iterator[Place]:
    """The same with proctrack/cgroup: processes that a step started end with the step."""
    with cluster.cluster("cgroup") as made, on_cluster(made, base) as cli:
        yield Place(cli, "@.slurm", "localhost")


@contextmanager
def on_cluster(made: cluster.Cluster, base: Path) -> Iterator[Cli]:
    """A CLI in the cluster's network; the files of its hosts are on the nodes."""
    cli = Cli(base, within=made.entering())
    cli.env |= made.env | {"MNGR__PROVIDERS__SLURM__HOME": f"{made.private}/mngr"}
    try:
        yield cli
        without_hosts(cli)
        assert not made.ask("squeue", "-h"), "the test left jobs"
    finally:
        ended(cli)


@contextmanager
def modal(request: pytest.FixtureRequest, base: Path) -> Iterator[Place]:
    """A sandbox for each agent, on the test service; the other host is this machine."""
    with on_cloud(request.getfixturevalue("cloud"), base) as cli:
        yield Place(cli, "@.modal", "localhost")


@contextmanager
def on_cloud(made: running.Cloud, base: Path) -> Iterator[Cli]:
    """A CLI with its own login at the service."""
    cli = Cli(base)
    cli.env |= made.env(f"ak-{os.urandom(6).hex()}")
    try:
        yield cli
        without_hosts(cli)
        assert not made.sandboxes(running.owner(cli)), "the test left sandboxes"
    finally:
        made.end(running.owner(cli))
        ended(cli)
        for socket in running.sockets(cli):
            socket.unlink(missing_ok=True)


@contextmanager
def pod(request: pytest.FixtureRequest, base: Path) -> Iterator[Place]:
    """A pod for each agent; the other host is this machine."""
    with on_pods(request.getfixturevalue("pods"), base) as cli:
        yield Place(cli, "@.kubernetes", "localhost")


@contextmanager
def on_pods(made: kubernetes.Pods, base: Path) -> Iterator[Cli]:
    """A CLI in the cluster's network, whose pods are created from the lab's image."""
    cli = Cli(base, within=made.entering())
    cli.env |= made.env | {"MNGR__PROVIDERS__KUBERNETES__IMAGE": engine.BASE}
    try:
        yield cli
        without_hosts(cli)
        assert not made.names(cli), "the test left pods"
    finally:
        made.heal()
        ended(cli)


# The same engines, described by templates. The engine's name of a host is its id, so that a host
# whose creation was interrupted is found. Slurm requires more than one line, so its template is a
# script.
BOXES = {
    "CREATE": "docker run -d --name {id} --network none --hostname {name} {args} "
    "mngr-lab:base {hold} >&2 && echo {id}",
    "EXEC": "docker exec -i {handle}",
    "ATTACH": "docker exec -it {handle}",
    "LIST": "docker ps -a --format '{{.Names}} {{.State}}'",
    "DESTROY": "docker rm -f {handle}",
    "SNAPSHOT": "docker commit {handle} {label}",
}
NODES = {
    "CREATE": "on-slurm create {id} {hold}",
    "EXEC": "on-slurm exec {handle}",
    "LIST": "squeue -h --me -o '%j %T'",
    "DESTROY": "scancel -n {handle}; while squeue -h -n {handle} | grep -q .; do sleep 0.2; done",
}
ON_SLURM = r"""#!/bin/sh
verb=$1 host=$2; shift 2
common="--export=HOME,PATH,LANG --chdir=/"
case $verb in
  create)
    script=$(mktemp); printf '#!/bin/sh\nexec "$@"\n' > "$script"
    sbatch --no-requeue --output=/dev/null --job-name="$host" $common "$script" "$@" >&2 || exit
    rm -f "$script"
    until squeue -h -n "$host" -o %T | grep -q RUNNING; do sleep 0.1; done
    echo "$host" ;;
  exec)
    job=$(squeue -h -n "$host" -o %i) && [ "$job" ] || { echo "$host has ended" >&2; exit 1; }
    exec srun --jobid="$job" --overlap -n1 -N1 -u --quiet $common sh -c '
      exec 4>&1
      exit "$({ { "$@" 3>&- 4>&-; echo $? >&3; } | cat >&4 3>&-; } 3>&1)"' on-slurm "$@" ;;
esac
"""


@contextmanager
def docker_template(request: pytest.FixtureRequest, base: Path) -> Iterator[Place]:
    with on_engine(request.getfixturevalue("engine"), base) as cli:
        describe(cli, "boxes", BOXES)
        yield Place(cli, "@.boxes", "localhost")
        without_hosts(cli)
        assert "boxes" not in cli("host", "audit", "--provider", "boxes").ok().out


@contextmanager
def slurm_template(request: pytest.FixtureRequest, base: Path) -> Iterator[Place]:
    with cluster.cluster() as made, on_slurm_templates(made, base) as cli:
        yield Place(cli, "@.nodes", "localhost")


@contextmanager
def on_slurm_templates(made: cluster.Cluster, base: Path) -> Iterator[Cli]:
    """Slurm by templates; the files of agents are in a home that only the nodes have."""
    with on_cluster(made, base) as cli:
        program = base / "bin" / "on-slurm"
        program.parent.mkdir()
        program.write_text(ON_SLURM.replace("--export=HOME,", f"--export=HOME={made.private},"))
        program.chmod(0o755)
        cli.env["PATH"] = f"{program.parent}:{cli.env['PATH']}"
        describe(cli, "nodes", NODES)
        yield cli


def describe(cli: Cli, provider: str, templates: dict[str, str]) -> None:
    for key, text in templates.items():
        cli.env[f"MNGR__PROVIDERS__{provider.upper()}__{key}"] = text


def without_hosts(cli: Cli) -> None:
    """Destroy every host that this home created."""
    left = cli("host", "list", "--format", "json").ok().json()["hosts"]
    names = [each["id"] for each in left if each["provider_name"] not in ("local", "ssh")]
    if names:
        cli("host", "destroy", "--force", *names).ok()


@dataclass
class Boxes:
    """A CLI and two machines."""

    cli: Cli
    lab: machines.Lab

    @property
    def one(self) -> machines.Machine:
        return self.lab.machines[0]

    @property
    def two(self) -> machines.Machine:
        return self.lab.machines[1]

    def __call__(self, *words: str) -> Result:
        return self.cli(*words)

    def states(self, *words: str) -> dict[str, str]:
        listed = self.cli("list", "--format", "json", *words).ok().json()["agents"]
        return {each["name"]: each["state"] for each in listed}


Opened = Callable[[pytest.FixtureRequest, Path], AbstractContextManager[Place]]

PLACES: dict[str, tuple[Opened, Callable[[], str]]] = {
    "local": (local, lambda: ""),
    "ssh": (ssh, machines.why_not),
    "docker": (docker, engine.why_not),
    "slurm": (slurm, cluster.why_not),
    "modal": (modal, running.why_not),
    "slurm-cgroup": (slurm_cgroup, cluster.why_not),
    "docker-template": (docker_template, engine.why_not),
    "slurm-template": (slurm_template, cluster.why_not),
    "kubernetes": (pod, kubernetes.why_not),
}
"""How to open each, and why this machine cannot have it, which is empty where it can."""
