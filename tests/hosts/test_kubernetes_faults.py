"""A cluster fails in the middle of something: nothing is lost, doubled, collected or forgotten."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from tests.hosts.test_faults import (
    full_disk,
    late,
    message,
    paused,
    pull,
    result,
    wrong_clock,
)
from tests.hosts.test_leases import AFTER, BEFORE, CUT, audited
from tests.support.cli import KILL_AT, Cli, until
from tests.support.lab.kubernetes import Pods
from tests.support.places import on_pods
from tests.support.sites import Site, late_client, shrunk

pytestmark = pytest.mark.soak

TICK = "while :; do date +%s%N >> ticks; sleep 0.2; done"


@pytest.fixture
def cluster(pods: Pods, tmp_path: Path) -> Iterator[Cli]:
    with on_pods(pods, tmp_path) as cli:
        yield cli


@pytest.fixture
def site(cluster: Cli, pods: Pods) -> Site:
    """A pod that the test may cut off, as test_faults does with hosts of other engines."""
    cluster("host", "create", "box", "--provider", "kubernetes", timeout=120).ok()
    (container,) = pods.containers()

    def inside(script: str) -> str:
        return pods.docker.told("exec", "-u", "root", container, "sh", "-c", script)

    def mounting(script: str) -> str:
        """As `inside`, with the rights of the machine."""
        pid = pods.docker.told("inspect", "-f", "{{.State.Pid}}", container)
        words = ("nsenter", "--target", pid, "--mount", "--", "sh", "-c", script)
        done = subprocess.run([*pods.entering("--pid", "--mount"), *words], capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def unused() -> Any:
        raise AssertionError("not for pods")

    made = Site(
        cluster, "box", "kubernetes", inside, lambda: pods.freeze("apiserver"),
        lambda: pods.down("apiserver"), lambda: pods.up("apiserver"), "/usr/local/bin", unused,
        lambda: shrunk(made, mounting), late_client(cluster, "kubernetes"),
    )  # fmt: skip
    return made


@pytest.mark.parametrize("fault", ["cut", "refuse"])
@pytest.mark.parametrize("under", [pull, message])
def test_a_cluster_that_is_gone_in_the_middle(
    site: Site, under: Callable[[Site, str], None], fault: str
) -> None:
    under(site, fault)


@pytest.mark.parametrize("seconds", [7, 30])
def test_a_cluster_that_answers_late(site: Site, seconds: int) -> None:
    late(site, seconds, seconds // 2)


def test_a_full_disk_in_a_pod_is_told_and_costs_nothing(site: Site) -> None:
    full_disk(site)


@pytest.mark.parametrize("off", ["+2", "-2"])
def test_the_clock_of_a_pod_is_two_hours_off(site: Site, off: str) -> None:
    wrong_clock(site, off)


def states(mngr: Cli) -> dict[str, str]:
    listed = mngr("list", "--format", "json").ok().json()["agents"]
    return {each["name"]: each["state"] for each in listed}


@pytest.mark.parametrize("fault", ["down", "freeze"])
@pytest.mark.parametrize("step", ["host_noted", "host_made", "host_kept", "files", "launched"])
def test_a_cluster_that_is_gone_under_create(
    cluster: Cli, pods: Pods, step: str, fault: str, tmp_path: Path
) -> None:
    cluster.env["MNGR__HOSTS__TIMEOUT"] = "6s"
    gate = tmp_path / "gate"
    words = ("create", "foo@.kubernetes", "--no-connect", "--", "sleep", "1000")
    running = paused(cluster, step, gate, *words)
    getattr(pods, fault)("apiserver")
    gate.touch()
    done = result(running, 600)
    if step == "launched":  # all that create reports was read in the same visit
        assert done.code == 0 and "Created foo; it is RUNNING." in done.out, done
    else:
        assert done.code in (1, 5), done
        assert len(done.err.strip().splitlines()) == 1, done.err
        assert fault == "freeze" or "refused" in done.err, done.err
    assert cluster("host", "audit").fails(1, "kubernetes").out.count("foo") == 0
    pods.up("apiserver")
    # A request that got no answer may still be carried out, for a minute.
    until(lambda: cluster("host", "audit", "--end").code == 0, 120, "the end of the host")
    before = states(cluster)
    assert before in ({}, {"foo": "LOST"}, {"foo": "RUNNING"})
    if before != {"foo": "RUNNING"}:
        # The host of its name is used, where it was made to the end.
        where = "foo@foo" if pods.names(cluster) else "foo@.kubernetes"
        cluster("create", where, *words[2:], timeout=120).ok()
    assert states(cluster) == {"foo": "RUNNING"}
    cluster("gc").ok()
    assert len(pods.names(cluster)) == 1 and audited(cluster)["foo"]["problem"] == ""
    assert cluster("exec", "foo", "cat README; git status --short").ok().out == "hello\n"


def test_a_cluster_that_does_not_answer_is_named_and_nothing_is_collected(
    cluster: Cli, pods: Pods
) -> None:
    cluster.env["MNGR__HOSTS__TIMEOUT"] = "6s"
    cluster.create("near")
    cluster.create("far@.kubernetes", "--", "sh", "-c", TICK)
    assert states(cluster) == {"near": "RUNNING", "far": "RUNNING"}
    for fault in (pods.down, pods.freeze):
        fault("apiserver")
        began = time.monotonic()
        listed = cluster("list", "--format", "json")
        assert time.monotonic() - began < 20
        found = {each["name"]: each["state"] for each in listed.json()["agents"]}
        assert found == {"near": "RUNNING", "far": "UNREACHABLE"}
        assert "far" in listed.out + listed.err
        cluster("exec", "far", "true").fails(5, "far")
        cluster("gc", "-S", "trash.keep=0s")
        cluster("host", "audit", "--end").fails(1, "kubernetes")
        pods.up("apiserver")
        assert states(cluster) == {"near": "RUNNING", "far": "RUNNING"}
    assert len(pods.names(cluster)) == 1


def test_a_command_that_loses_its_cluster_is_not_taken_for_done(cluster: Cli, pods: Pods) -> None:
    cluster.create("foo@.kubernetes")
    running = cluster.start("exec", "foo", "echo begun; touch begun; sleep 20; echo done")
    until(lambda: cluster("exec", "foo", "test -e begun").code == 0, 30, "the command")
    pods.kill("apiserver")
    done = result(running)
    assert done.code == 5 and "done" not in done.out, done
    pods.up("apiserver")
    assert cluster("exec", "foo", "exit 7").code == 7


def test_a_kubelet_that_is_restarted_ends_no_agent(cluster: Cli, pods: Pods) -> None:
    cluster.create("foo@.kubernetes", "--", "sh", "-c", TICK)
    before = cluster.agent("foo")
    pods.down("kubelet")
    until(lambda: cluster("exec", "foo", "true").code == 5, 30, "the kubelet's end")
    assert states(cluster) == {"foo": "UNREACHABLE"}
    pods.up("kubelet")
    until(lambda: states(cluster) == {"foo": "RUNNING"}, 60, "the kubelet's return")
    assert cluster.agent("foo")["id"] == before["id"]
    ticks = [int(each) / 1e9 for each in cluster("exec", "foo", "cat ticks").ok().out.split()]
    assert max(b - a for a, b in pairwise(ticks)) < 5, "it was held up"


def test_a_pod_deleted_under_its_agent(cluster: Cli, pods: Pods) -> None:
    cluster.create("foo@.kubernetes")
    assert states(cluster) == {"foo": "RUNNING"}
    pods.told("delete", *pods.names(cluster), "--wait=true")
    agent = cluster.agent("foo")
    assert agent["state"] == "STOPPED" and "it is gone from kubernetes" in agent["state_reason"]
    cluster("start", "foo").fails(5, "it is gone from kubernetes")
    assert audited(cluster)["foo"]["problem"] == "no longer exists at the provider"
    cluster("host", "audit", "--end").ok()
    assert audited(cluster) == {}


# Kills the process that requests the pod before the request is sent, and sends it itself.
WRAPPER = """#!/bin/sh
case "$KILL_ASKER $* " in
  yes*" create "*) cat > "$0.input"; kill -KILL $PPID; exec {kubectl} "$@" < "$0.input" ;;
esac
exec {kubectl} "$@"
"""


def test_every_pod_is_accounted_for_wherever_mngr_was_killed(
    cluster: Cli, pods: Pods, tmp_path: Path
) -> None:
    wrapper = tmp_path / "bin" / "kubectl"
    wrapper.parent.mkdir()
    wrapper.write_text(WRAPPER.format(kubectl=which("kubectl")))
    wrapper.chmod(0o755)
    cluster.env["PATH"] = f"{wrapper.parent}:{cluster.env['PATH']}"
    for step in (*BEFORE, *CUT, *AFTER):
        env = {"KILL_ASKER": "yes"} if step == "making" else {KILL_AT: step}
        words = (f"{step.replace('_', '-')}@.kubernetes", "--no-connect", "--", "sleep", "1000")
        done = cluster("create", *words, env=env, timeout=120)
        assert done.code == -signal.SIGKILL, (step, done.err)
    until(lambda: len(pods.names(cluster)) == len(CUT) + len(AFTER), 30, "the pod asked for last")

    found = audited(cluster)
    running = {each["handle"].partition("/")[0] for each in found.values() if each["running"]}
    assert running == {name.removeprefix("pod/") for name in pods.names(cluster)}
    assert _problems(found) == {
        **dict.fromkeys(BEFORE, "never created: its creation was interrupted"),
        **dict.fromkeys(CUT, "its creation was interrupted"),
        **dict.fromkeys(AFTER, ""),
    }
    cluster("host", "audit", "--end", timeout=180).ok()
    assert _problems(audited(cluster)) == dict.fromkeys(AFTER, "")
    assert len(pods.names(cluster)) == len(AFTER)
    # What was made is used on: the same create again, on the host that is there.
    cluster("create", "files@files", "--no-connect", "--", "sleep", "1000").ok()
    assert cluster.state("files") == "RUNNING"
    # One after the other, some seconds each.
    hosts = [step.replace("_", "-") for step in AFTER]
    cluster("host", "destroy", "--force", *hosts, timeout=400).ok()


def _problems(found: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name.replace("-", "_"): each["problem"] for name, each in found.items()}
