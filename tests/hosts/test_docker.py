"""Containers as hosts, on a real engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli, until
from tests.support.lab import engine as lab
from tests.support.lab.engine import Engine
from tests.support.places import ended, on_engine, without_hosts
from tests.support.screen import Screen

DOCKERFILE = "FROM mngr-lab:base\nCOPY greeting /greeting\n"


@pytest.fixture
def docker(engine: Engine, tmp_path: Path) -> Iterator[Cli]:
    with on_engine(engine, tmp_path) as cli:
        yield cli


def hosts(mngr: Cli) -> dict[str, dict[str, Any]]:
    found = mngr("host", "list", "--format", "json").ok().json()["hosts"]
    return {each["name"]: each for each in found if each["provider_name"] == "docker"}


def inspected(engine: Engine, mngr: Cli) -> dict[str, Any]:
    (name,) = engine.containers(mngr)
    found: dict[str, Any] = json.loads(engine.told("inspect", name))[0]
    return found


def test_a_container_is_made_as_asked(docker: Cli, engine: Engine, tmp_path: Path) -> None:
    context, volume = tmp_path / "context", tmp_path / "shared folder"
    context.mkdir()
    volume.mkdir()
    (context / "greeting").write_text("hello\n")
    (context / "Other").write_text(DOCKERFILE)
    (volume / "note").write_text("from here\n")
    docker(
        *("host", "create", "box", "--provider", "docker"),
        *("-b", f"file={context}/Other", "-b", f"context={context}"),
        *("-b", "memory=256m", "-b", "cpus=0.5", "-b", "network=none", "--host-label", "team=w b"),
        *("-b", f"volume={volume}:/volume:ro", "-s", "--env=SPICE=salt and pepper"),
        env={"MNGR_PREFIX": "team-"},
    ).ok()
    assert inspected(engine, docker)["Name"].startswith("/team-box-")
    assert inspected(engine, docker)["Config"]["Labels"]["team"] == "w b"
    docker.create("foo@box")
    words = "cat /greeting /volume/note; echo $SPICE; hostname; id -un; ls /sys/class/net"
    told = engine.told("exec", *engine.containers(docker), "sh", "-c", words).splitlines()
    assert told == ["hello", "from here", "salt and pepper", "box", "dev", "lo"]
    limits = inspected(engine, docker)["HostConfig"]
    assert (limits["Memory"], limits["NanoCpus"]) == (256 << 20, 500_000_000)
    assert docker("exec", "foo", "cat /greeting").ok().out == "hello\n"


def test_what_cannot_be_made_leaves_nothing(docker: Cli, engine: Engine, tmp_path: Path) -> None:
    def create(*words: str, code: int = 1) -> str:
        return docker("host", "create", "box", "--provider", "docker", *words).fails(code).err

    assert "docker takes image" in create("-b", "colour=red", code=2)
    assert "/nonexistent" in create("-b", "context=/nonexistent")
    assert "no-such-flag" in create("-s", "--no-such-flag", "-b", "image=mngr-lab:base")
    # Created by `docker run` and left behind, because it could not be started.
    create("-s", "--workdir=relative", "-b", "image=mngr-lab:base")
    (tmp_path / "Dockerfile").write_text("FROM mngr-lab:root\nRUN rm /usr/bin/tmux\n")
    assert "tmux is not installed on host box" in create("-b", f"context={tmp_path}")
    assert "cannot create directory" in create("-s", "--user=12345", "-b", "image=mngr-lab:root")
    docker("host", "create", "../box", "--provider", "docker").fails(2, "../box")
    docker("host", "create", "box", "--provider", "ssh").fails(2, "ssh", "cannot create hosts")
    # A host that was made for an agent ends with it, also where the agent could not be made.
    words = ("create", "foo@.docker", "--no-connect", "--provision-command", "false", "--", "true")
    docker(*words).fails(1, "provisioning failed")
    docker("create", "foo@.docker", "--dry-run", "--", "true").ok()
    assert engine.containers(docker) == [] and hosts(docker) == {}


def test_a_stopped_host_and_its_agents_come_back(docker: Cli, engine: Engine) -> None:
    docker.create("foo@.docker")
    docker.create("done@foo", "--", "true")
    until(lambda: docker.state("done") == "DONE", what="a short agent")
    assert docker("host", "stop", "foo").ok().out == "Stopped host foo.\n"
    assert engine.containers(docker, every=False) == []
    agent = docker.agent("foo")
    assert (agent["state"], agent["host"]["state"]) == ("STOPPED", "STOPPED")
    assert agent["state_reason"].startswith("host foo is stopped: exited (0)")
    assert docker.state("done") == "DONE"
    assert hosts(docker)["foo"]["state"] == "STOPPED"
    docker("exec", "foo", "true").fails(5, "host foo is stopped", "mngr host start foo")
    assert docker("host", "start", "foo").ok().out == "Started host foo with foo.\n"
    assert (docker.state("foo"), docker.state("done")) == ("RUNNING", "DONE")
    assert "Stopped host foo." in docker("stop", "foo", "--stop-host").ok().out
    assert hosts(docker)["foo"]["state"] == "STOPPED"
    docker("start", "foo").ok()
    # Ended outside mngr, without notice to its agents.
    engine.told("kill", *engine.containers(docker))
    assert "exited (137)" in docker.agent("foo")["state_reason"]
    docker("start", "foo").ok()
    assert docker.state("foo") == "RUNNING"
    engine.told("rm", "-f", *engine.containers(docker))
    assert "gone from docker" in docker.agent("foo")["state_reason"]
    for words in (("exec", "foo", "true"), ("start", "foo"), ("message", "foo", "-m", "hi")):
        docker(*words).fails(5, "gone from docker", "mngr host destroy foo")
    for verb in ("start", "stop", "snapshot"):
        docker("host", verb, "foo").fails(4, "gone from docker", "mngr host destroy foo")
    docker("host", "destroy", "foo", "--force").ok()
    assert "No agents" in docker("list").ok().out


def test_a_late_command_is_ended_where_ps_is_missing(docker: Cli, engine: Engine) -> None:
    docker.create("foo@.docker")
    (container,) = engine.containers(docker)
    engine.told("exec", "-u", "root", container, "rm", "/usr/bin/ps")
    docker("exec", "foo", "--timeout", "2s", "sleep 4321").fails(124)
    until(lambda: "sleep 4321" not in engine.told("top", container), 30, "its end")
    assert docker.state("foo") == "RUNNING"


def test_a_terminal_whose_host_ends_is_usable_again(docker: Cli, engine: Engine) -> None:
    docker.create("foo@.docker", "--", "sh", "-c", "echo I am foo; exec cat")
    with Screen(docker) as screen:
        screen.mngr("connect", "foo")
        screen.shows("I am foo", "[foo]")
        engine.told("kill", *engine.containers(docker))
        screen.shows("mngr: host foo is stopped: exited (137)", "mngr host start foo")
        assert screen.tmux("display", "-p", "#{alternate_on}") == "0\n"


def test_a_paused_host_goes_on(docker: Cli, engine: Engine) -> None:
    docker.create("foo@.docker")
    (container,) = engine.containers(docker)
    pid = docker.agent("foo")["pid"]
    engine.told("pause", container)
    docker("exec", "foo", "true").fails(5, "(paused)", "mngr host start foo")
    docker("host", "start", "foo").ok()
    assert docker.agent("foo")["pid"] == pid


def test_a_host_that_cannot_start_says_why(docker: Cli, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    bind = f"type=bind,src={tmp_path}/shared,dst=/volume"
    docker.create("foo@.docker", "-s", f"--mount={bind}")
    docker("host", "stop", "foo").ok()
    (tmp_path / "shared").rmdir()
    docker("host", "start", "foo").fails(1, "docker: ", "bind source path does not exist")


@pytest.mark.soak
def test_a_host_is_kept_as_an_image(docker: Cli, engine: Engine) -> None:
    docker.create("foo@.docker")
    docker("exec", "foo", "echo kept > kept.txt").ok()
    words = docker("host", "snapshot", "foo").ok().out.rstrip(".\n").split()
    docker("host", "destroy", "foo").fails(1, "has agents: foo", "--force")
    told = docker("host", "destroy", "foo", "--force").ok().out
    assert "saved as the image mngr-kept:foo-" in told
    for image in (words[-1], told.rstrip(".\n").split()[-1]):
        docker("host", "create", "foo", "--provider", "docker", "-b", f"image={image}").ok()
        docker("start", "foo").ok()
        assert docker("exec", "foo", "cat kept.txt").ok().out == "kept\n"
        docker("host", "destroy", "foo", "--force").ok()


def test_the_agents_of_an_image_are_not_those_of_its_host(docker: Cli) -> None:
    """Copies have the same ids: each command acts on the named one, or on both."""
    docker.create("foo@.docker")
    image = docker("host", "snapshot", "foo").ok().out.rstrip(".\n").split()[-1]
    docker("host", "create", "twin", "--provider", "docker", "-b", f"image={image}").ok()
    both = ("foo@foo", "foo@twin")
    assert states(docker) == {("foo", "RUNNING"), ("twin", "LOST")}
    docker("exec", "foo", "true").fails(4, "ambiguous", "name its host")
    docker("clone", "foo").fails(4, "ambiguous")
    docker("start", *both).ok()
    assert states(docker) == {("foo", "RUNNING"), ("twin", "RUNNING")}
    assert docker("exec", *both, "hostname").ok().out == "foo: foo\nfoo: twin\n"
    assert docker("wait", *both, "--state", "RUNNING").ok().out == "foo RUNNING\nfoo RUNNING\n"
    docker("stop", "foo@twin").ok()
    assert states(docker) == {("foo", "RUNNING"), ("twin", "STOPPED")}
    docker("stop", *both).ok()
    docker("migrate", "foo@twin", "localhost").ok()
    assert states(docker) == {("foo", "STOPPED"), ("localhost", "RUNNING")}


def states(mngr: Cli) -> set[tuple[str, str]]:
    """Return the host and state of each agent, as a person sees them."""
    words = [line.split() for line in mngr("list", "--no-changes").ok().out.splitlines()]
    return {(line[2], line[1]) for line in words[1:]}


def test_work_on_a_volume_that_ends_with_the_host_is_not_lost(docker: Cli, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM mngr-lab:base\nVOLUME /srv\n")
    build = ("-b", f"context={tmp_path}", "-s", "--volume=named:/volume")
    docker.create("foo@.docker", *build)
    for verb in (("snapshot",), ("destroy", "--force")):
        docker("host", *verb, "foo").fails(1, "volume", "(/srv)", "destroy them before the host")
    assert docker.state("foo") == "RUNNING"
    docker("destroy", "foo").ok()
    docker("host", "destroy", "foo").ok()


def test_a_host_ends_itself(docker: Cli, engine: Engine) -> None:
    """Its age counts from its first start; what is only looked at is idle."""
    docker.create("old@.docker", "--max-age", "1h", "--idle-timeout", "1h")
    assert hosts(docker)["old"]["time_left"].startswith("59m")
    (container,) = engine.containers(docker)
    engine.told(
        "exec", container, "sh", "-c", "for each in ~/.mngr/.began.*; do echo 1 > $each; done"
    )
    engine.told("restart", container)
    until(lambda: docker.state("old") == "STOPPED", 60, "the end of the old host")
    assert "reached its --max-age" in docker.agent("old")["state_reason"]
    docker("host", "create", "quiet", "--provider", "docker", "--idle-timeout", "10s").ok()
    until(lambda: hosts(docker)["quiet"]["state"] == "STOPPED", 60, "the end of the quiet host")
    assert hosts(docker)["quiet"]["reason"] == "idle for its --idle-timeout"
    assert docker("host", "audit").ok().out.count("false") >= 2


def test_a_host_whose_home_is_full_does_not_end_itself(docker: Cli, engine: Engine) -> None:
    room = "--tmpfs=/srv/dev/.mngr:uid=1000,nr_inodes=400"
    docker.create("foo@.docker", "--idle-timeout", "2m", "-s", room)
    (container,) = engine.containers(docker)
    fill = "cd ~/.mngr && for each in $(seq 400); do touch last && echo > $each || exit 0; done"
    engine.told("exec", container, "sh", "-c", f"{{ {fill}; }} 2> /dev/null")
    looked = "find ~/.mngr -maxdepth 1 -name '.seen.*' -newer ~/.mngr/last"
    until(
        lambda: len(engine.told("exec", container, "sh", "-c", looked).split()) == 2,
        what="the host's next two looks",
    )
    assert docker.state("foo") == "RUNNING"


def test_containers_outlive_their_engine(tmp_path: Path) -> None:
    if reason := lab.why_not():
        pytest.skip(reason)
    (tmp_path / "session").mkdir()
    with lab.engine(tmp_path / "session") as mine, on_engine(mine, tmp_path / "world") as docker:
        docker.create("foo@.docker")
        pid = docker.agent("foo")["pid"]
        mine.down()
        agent = docker.agent("foo")
        assert agent["state"] == "UNREACHABLE" and "last known RUNNING" in agent["state_reason"]
        docker("exec", "foo", "true").fails(5, "host foo did not answer")
        docker("host", "create", "bar", "--provider", "docker").fails(1, "docker")
        assert "docker" in docker("host", "audit").fails(1).err
        usable = docker("provider", "list", "--format", "json").ok().json()["providers"]
        assert {each["name"]: each["usable"] for each in usable}["docker"] is False
        mine.up()
        assert (docker.agent("foo")["pid"], docker.state("foo")) == (pid, "RUNNING")
        # The machine restarts: everything ends, and the engine starts its containers again.
        mine.down()
        mine.crash()
        mine.up()
        until(lambda: docker.state("foo") == "LOST", 60, "the container's return")
        docker("start", "foo").ok()
        assert docker.state("foo") == "RUNNING"
        without_hosts(docker)
    ended(docker)
