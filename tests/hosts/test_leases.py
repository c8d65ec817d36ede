"""Every host that mngr created is found again, wherever mngr was killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from tests.hosts.test_faults import paused, result
from tests.support.cli import KILL_AT, Cli, until
from tests.support.lab import cluster as lab_cluster
from tests.support.lab import engine as lab_engine
from tests.support.lab.cluster import Cluster
from tests.support.lab.engine import Engine
from tests.support.places import (
    BOXES,
    describe,
    on_cluster,
    on_engine,
    on_slurm_templates,
    without_hosts,
)

BEFORE = ("host_noted",)
CUT = ("making", "host_made")
AFTER = (
    *("host_kept", "host_greeted", "claimed", "recorded", "mirror_made", "mirror_updated"),
    *("cloned", "work_dir", "files", "launched"),
)
RESTART = ("host_agents_stopped", "host_started")
HOST_STEPS = {*BEFORE, *CUT, *AFTER, *RESTART} - {"making"}

# Ends the mngr that asked for a host before the engine has heard of it, and asks on its own once
# $ASK_AFTER exists. `late` is an engine that works on a request after its sender has ended.
WRAPPER = r"""#!/bin/sh
asked() {
  case "$0 $1" in */docker\ run | */sbatch*) ;; *) false ;; esac
}
kill_asker() {
  pid=$PPID
  until case $(cat /proc/$pid/comm) in mngr*) true ;; *) false ;; esac; do
    pid=$(cut -d" " -f4 /proc/$pid/stat)
    [ "$pid" -gt 1 ] || exit 1
  done
  kill -KILL "$pid"
}
if [ "$KILL_ASKER" ] && asked "$@"; then
  cat > "$0.input"  # while there is somebody to write it
  exec < "$0.input"
  kill_asker
  [ "$KILL_ASKER" = yes ] || exec python3 -c 'import os, subprocess, sys
with open(os.devnull, "w") as nowhere:
    subprocess.Popen(sys.argv[1:], start_new_session=True, stdout=nowhere, stderr=nowhere,
        env={**os.environ, "KILL_ASKER": ""})' "$0" "$@"
fi
tries=0
until ! asked "$@" || [ ! "$ASK_AFTER" ] || [ -e "$ASK_AFTER" ] || [ $tries -gt 999 ]; do
  tries=$((tries + 1)); sleep 0.05
done
exec PROGRAM "$@"
"""


@pytest.fixture
def docker(engine: Engine, tmp_path: Path) -> Iterator[Cli]:
    with on_engine(engine, tmp_path) as cli:
        yield cli


@dataclass
class Maker:
    """A provider that no other test uses, and the number of its running hosts, as it reports it."""

    cli: Cli
    provider: str
    running: Callable[[], int]


MAKERS = ("docker", "boxes", "slurm", "nodes")


@pytest.fixture(params=MAKERS)
def maker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Maker]:
    name, contexts = request.param, ExitStack()
    reason = lab_engine.why_not() if name in ("docker", "boxes") else lab_cluster.why_not()
    if reason:
        pytest.skip(reason)
    with contexts:
        if name in ("docker", "boxes"):
            engine: Engine = request.getfixturevalue("own_engine")
            cli = contexts.enter_context(on_engine(engine, tmp_path))
            describe(cli, "boxes", BOXES)
            yield Maker(cli, name, lambda: len(engine.told("ps", "-q").split()))
        else:
            cluster: Cluster = request.getfixturevalue("own_cluster")
            on = on_slurm_templates if name == "nodes" else on_cluster
            cli = contexts.enter_context(on(cluster, tmp_path))
            yield Maker(cli, name, lambda: len(cluster.ask("squeue", "-h").splitlines()))


def audited(mngr: Cli, *words: str) -> dict[str, dict[str, Any]]:
    found = mngr("host", "audit", "--format", "json", *words)
    assert found.code in (0, 1), found.err
    return {each["name"]: each for each in found.json()["hosts"] if each["ours"]}


def killed(maker: Maker, step: str) -> None:
    """Begin to create an agent on a new host, and kill mngr at that step."""
    name = f"{step.replace('_', '-')}@.{maker.provider}"
    env = {"KILL_ASKER": "yes"} if step == "making" else {KILL_AT: step}
    done = maker.cli("create", name, "--no-connect", "--", "sleep", "1000", env=env, timeout=200)
    assert done.code == -9, (step, done.err)


def wrap(maker: Maker, folder: Path) -> None:
    """Put the wrapper in front of the program that asks for a host."""
    asking = "docker" if maker.provider in ("docker", "boxes") else "sbatch"
    wrapper = folder / asking
    folder.mkdir()
    wrapper.write_text(WRAPPER.replace("PROGRAM", str(which(asking))))
    wrapper.chmod(0o755)
    maker.cli.env["PATH"] = f"{folder}:{maker.cli.env['PATH']}"


@pytest.mark.soak
def test_every_host_is_accounted_for_wherever_mngr_was_killed(maker: Maker, tmp_path: Path) -> None:
    mngr = maker.cli
    wrap(maker, tmp_path / "wrapper")
    for step in (*BEFORE, *CUT, *AFTER):
        killed(maker, step)

    made = len(CUT) + len(AFTER)
    until(lambda: maker.running() == made, 60, f"{made} hosts")
    found = audited(mngr)
    assert {name.replace("-", "_") for name in found} == {*BEFORE, *CUT, *AFTER}
    assert len({each["handle"] for each in found.values() if each["running"]}) == made
    problems = {name.replace("-", "_"): each["problem"] for name, each in found.items()}
    assert problems == {
        **dict.fromkeys(BEFORE, "never created: its creation was interrupted"),
        **dict.fromkeys(CUT, "its creation was interrupted"),
        **dict.fromkeys(AFTER, ""),
    }

    mngr("host", "audit", "--end", timeout=200).ok()
    assert {name.replace("-", "_") for name in audited(mngr)} == set(AFTER)
    assert maker.running() == len(AFTER)
    # What was made is used on: the same create again, on the host that is there.
    mngr("create", "files@files", "--no-connect", "--", "sleep", "1000").ok()
    # Jobs that the templates make share a home, so each of their hosts lists every agent.
    listed = mngr("list", "--format", "json").ok().json()["agents"]
    assert {each["state"] for each in listed if each["name"] == "files"} == {"RUNNING"}
    without_hosts(mngr)
    assert maker.running() == 0


def test_a_host_whose_making_was_cut_short_can_be_destroyed(maker: Maker) -> None:
    """Recorded and created, or recorded and never created: mngr asks the engine, and ends it."""
    mngr = maker.cli
    create = ("host", "create", "--provider", maker.provider)
    for step in ("host_made", "host_noted"):
        name = step.replace("_", "-")
        assert mngr(*create, name, env={KILL_AT: step}, timeout=200).code == -9
    assert maker.running() == 1
    listed = mngr("host", "list", "--format", "json").ok().json()["hosts"]
    cut = {each["name"]: each["state"] for each in listed if each["name"].startswith("host-")}
    assert cut == {"host-made": "CREATING", "host-noted": "CREATING"}
    mngr(*create, "host-noted").fails(1, "'host-noted' already exists", "see `mngr host list`")
    if maker.provider == "docker":
        mngr("host", "stop", "host-made").fails(
            1, "creation was interrupted", "mngr host destroy host-made"
        )
    mngr("host", "destroy", "--force", "host-made", "host-noted", timeout=200).ok()
    assert maker.running() == 0 and audited(mngr, "--provider", maker.provider) == {}


@pytest.mark.parametrize(
    ("maker", "asker"),
    [*((each, "yes") for each in MAKERS), ("docker", "late"), ("slurm", "late")],
    indirect=["maker"],
)
def test_a_host_that_is_still_being_made_is_not_forgotten(
    maker: Maker, asker: str, tmp_path: Path
) -> None:
    """mngr was killed, and what it asked for comes later: no command loses sight of it."""
    mngr, gate = maker.cli, tmp_path / "gate"
    wrap(maker, tmp_path / "wrapper")
    create = ("host", "create", "box", "--provider", maker.provider)
    env = {"KILL_ASKER": asker, "ASK_AFTER": str(gate)}
    assert mngr(*create, env=env, timeout=200).code == -9
    told = {"yes": "being created", "late": "not confirmed yet: the provider may still create it"}[
        asker
    ]
    until(lambda: audited(mngr)["box"]["problem"] == told, 30, told)
    mngr("host", "destroy", "box").fails(1, "box", told)
    mngr("host", "audit", "--end").fails(1, "box", told)
    gate.touch()
    until(maker.running, 60, "the host")
    listed = mngr("host", "list", "--format", "json").ok().json()["hosts"]
    assert [each["state"] for each in listed if each["name"] == "box"] == ["CREATING"]
    until(lambda: audited(mngr)["box"]["problem"] == "its creation was interrupted", 30, "the end")
    mngr("host", "destroy", "box", timeout=200).ok()
    assert maker.running() == 0 and audited(mngr, "--provider", maker.provider) == {}


def test_a_host_that_another_command_is_making_is_left_alone(docker: Cli, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    words = ("host", "create", "box", "--provider", "docker")
    running = paused(docker, "host_made", gate, *words)
    assert audited(docker)["box"]["problem"] == "being created"
    docker("host", "audit", "--end").fails(1, "being created")
    docker("host", "destroy", "box").fails(1, "being created")
    gate.touch()
    result(running).ok()
    assert audited(docker)["box"]["problem"] == ""


def test_a_host_that_was_stopped_or_started_half_way_has_its_agents_again(docker: Cli) -> None:
    docker("create", "foo@.docker", "--no-connect", "--", "sleep", "1000").ok()
    for verb, step in zip(("stop", "start"), RESTART, strict=True):
        assert docker("host", verb, "foo", env={KILL_AT: step}).code == -9
        docker("host", verb, "foo").ok()
    assert docker.state("foo") == "RUNNING"


def test_another_home_s_hosts_are_left_alone(docker: Cli, engine: Engine, tmp_path: Path) -> None:
    docker("host", "create", "box", "--provider", "docker").ok()
    with on_engine(engine, tmp_path / "other") as other:
        other("host", "create", "box", "--provider", "docker").ok()
        assert "created by another home" in other("host", "audit", "--end").ok().out
        other("host", "create", "box", "--provider", "docker").fails(1, "'box' already exists")
    assert [each["problem"] for each in audited(docker).values()] == [""]
    # Its note is lost: the host still says that it is ours.
    (docker.controller_home / "hosts" / "docker" / "box.json").unlink()
    assert audited(docker, "--provider", "docker")["box"]["problem"].endswith(
        "its record is missing"
    )
    docker("host", "audit", "--provider", "docker", "--end").ok()
    assert engine.containers(docker) == []


def test_an_engine_that_cannot_be_used_leaves_no_note(local: Cli) -> None:
    local.env["DOCKER_HOST"] = "unix:///nonexistent/docker.sock"
    made = local("create", "foo@.docker", "--no-connect", "--", "true")
    made.fails(1, "docker: Cannot connect", "See `mngr provider list`")
    assert "audit" not in made.err
    listed = local("host", "list", "--format", "json").ok().json()["hosts"]
    assert [each["provider_name"] for each in listed] == ["local"]
