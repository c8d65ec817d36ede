"""Allocations as hosts, on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.hosts.engines.slurm import seconds
from tests.support.cli import KILL_AT, Cli, until
from tests.support.lab import cluster as lab
from tests.support.lab.cluster import Cluster
from tests.support.places import on_cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if reason := lab.why_not():
        pytest.skip(reason)
    with lab.cluster() as made:
        yield made


@pytest.fixture
def slurm(cluster: Cluster, tmp_path: Path) -> Iterator[Cli]:
    with on_cluster(cluster, tmp_path) as cli:
        yield cli


def hosts(mngr: Cli) -> dict[str, dict[str, Any]]:
    found = mngr("host", "list", "--format", "json").ok().json()["hosts"]
    return {each["name"]: each for each in found if each["provider_name"] == "slurm"}


def test_an_allocation_is_made_as_asked(slurm: Cli, cluster: Cluster) -> None:
    slurm.env["SECRET_TOKEN"] = "hidden"
    slurm(
        *("host", "create", "box", "--provider", "slurm", "-b", "cpus=3", "-b", "memory=100M"),
        *("-b", "time=2:00:00", "-b", "partition=main", "-b", f"nodelist={cluster.nodes[1]}"),
        *("-s", "--nice=7"),
        env={"MNGR_PREFIX": "team-"},
    ).ok()
    assert cluster.ask("squeue", "-h", "-o", "%C %m %l %P %N %y") == (
        f"3 100M 2:00:00 main {cluster.nodes[1]} 7"
    )
    assert hosts(slurm)["box"]["time_left"].startswith("1h 59m")
    slurm.create("foo@box")
    told = slurm("exec", "foo", "env; tty; test -t 1 || echo no terminal").ok().out
    assert "hidden" not in told and told.endswith("not a tty\nno terminal\n")
    slurm("host", "stop", "box").fails(2, "cannot be stopped")
    slurm("host", "create", "bad", "--provider", "slurm", "-b", "partition=none").fails(1, "slurm")
    slurm(
        *("host", "create", "late", "--provider", "slurm", "-s", "--begin=now+1hour"),
        env={"MNGR__PROVIDERS__SLURM__PATIENCE": "1"},
    ).fails(1, "did not start within 1 s", "BeginTime")
    assert list(hosts(slurm)) == ["box"]
    assert cluster.ask("squeue", "-h", "-o", "%j") == "team-box"


def test_a_job_that_can_never_start_is_not_waited_for(slurm: Cli, cluster: Cluster) -> None:
    failed = cluster.ask("sbatch", "--parsable", "-o/dev/null", "--chdir=/", "--wrap", "false")
    until(lambda: cluster.ask("squeue", "-h", "-t", "FAILED", "-j", failed), 30, "its end")
    words = ("host", "create", "box", "--provider", "slurm", "-s", f"--dependency=afterok:{failed}")
    never = "cannot start (DependencyNeverSatisfied)"
    slurm(*words, env={"MNGR__PROVIDERS__SLURM__PATIENCE": "20"}).fails(1, never)
    assert cluster.ask("squeue", "-h") == ""


def test_a_suspended_allocation_says_so(slurm: Cli, cluster: Cluster) -> None:
    slurm.create("foo@.slurm")
    job = cluster.ask("squeue", "-h", "-o", "%i")
    cluster.ask("scontrol", "suspend", job)
    try:
        told = slurm("list", "-S", "hosts.timeout=4s").ok().err
        assert "host foo did not answer within 4 s: its allocation is suspended" in told
        assert slurm("list", "-S", "hosts.timeout=4s", "--format", "{state}").out == "UNREACHABLE\n"
    finally:
        cluster.ask("scontrol", "resume", job)
    assert slurm.state("foo") == "RUNNING"


def test_what_ran_there_ends_with_the_allocation(slurm: Cli, cluster: Cluster) -> None:
    """Also with proctrack/linuxproc, which does not know about what became a daemon."""
    stubborn = "trap '' HUP TERM; while :; do sleep 1; done"
    slurm.create("foo@.slurm", "--", "sh", "-c", stubborn)
    home = slurm.agent("foo")["work_dir"].partition("/worktrees/")[0]
    assert _marked(home)
    cluster.ask("scancel", "--me")
    until(lambda: slurm.state("foo") == "STOPPED", 30, "the end of the allocation")
    agent = slurm.agent("foo")
    assert "its allocation is cancelled (last known" in agent["state_reason"]
    assert agent["host"]["state"] == "STOPPED"
    until(lambda: not _marked(home), 30, "the end of its processes")
    assert hosts(slurm)["foo"]["state"] == "STOPPED"
    slurm("start", "foo").fails(5, "is stopped: its allocation is cancelled")
    slurm("message", "foo", "-m", "hi").fails(5, "is stopped: its", "`mngr host destroy foo`")


def _marked(home: str) -> list[Path]:
    mark = f"MNGR_HOST_DIR={home}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            found += [path] if mark in path.read_bytes().split(b"\0") else []
        except OSError:
            continue
    return found


def test_an_allocation_ends_with_its_lifetime(slurm: Cli) -> None:
    make = ("host", "create", "--provider", "slurm")
    slurm(*make, "old", "--max-age", "10s").ok()
    slurm(*make, "quiet", "--idle-timeout", "10s").ok()

    def states() -> set[str]:
        return {each["state"] for each in hosts(slurm).values()}

    until(lambda: states() == {"STOPPED"}, 60, "their ends")
    assert hosts(slurm)["old"]["reason"] == "reached its --max-age"
    assert hosts(slurm)["quiet"]["reason"] == "idle for its --idle-timeout"


@pytest.mark.soak
def test_a_preempted_allocation_says_so_also_when_slurm_has_forgotten_it(tmp_path: Path) -> None:
    if reason := lab.why_not():
        pytest.skip(reason)
    with lab.cluster(memory=2) as made, on_cluster(made, tmp_path) as mngr:
        whole = ("-b", f"nodelist={made.nodes[0]}", "-b", "cpus=64")
        mngr("host", "create", "box", "--provider", "slurm", *whole).ok()
        mngr.create("foo@box")
        urgent = ("-p", "urgent", "-w", made.nodes[0], "-c64", "-o/dev/null", "--parsable")
        job = made.ask("sbatch", *urgent, "--wrap", "sleep 300")
        until(lambda: mngr.state("foo") == "STOPPED", 60, "the end of the allocation")
        assert "its allocation is preempted" in mngr.agent("foo")["state_reason"]
        until(lambda: not made.ask("squeue", "-h", "-t", "all", "-p", "main"), 60, "forgetting")
        assert "its allocation is preempted" in mngr.agent("foo")["state_reason"]
        assert hosts(mngr)["box"]["state"] == "STOPPED"
        assert hosts(mngr)["box"]["reason"].startswith("its allocation is preempted")
        made.ask("scancel", job)


def test_a_job_of_the_user_with_a_long_comment_is_no_host(slurm: Cli, cluster: Cluster) -> None:
    words = ("--parsable", "--comment=several\nlines", "--chdir=/", "-o/dev/null")
    job = cluster.ask("sbatch", *words, "--wrap", "sleep 300")
    try:
        slurm("host", "create", "box", "--provider", "slurm").ok()
        assert list(hosts(slurm)) == ["box"]
        slurm("host", "destroy", "box").ok()
        assert slurm("host", "audit", "--format", "json").ok().json()["hosts"] == []
    finally:
        cluster.ask("scancel", job)
        until(lambda: not cluster.ask("squeue", "-h", "-n", "wrap"), 60, "the end of the job")


def test_variables_of_a_job_in_which_mngr_runs_change_nothing(slurm: Cli, cluster: Cluster) -> None:
    job = {"LABELIO": "1", "JOB_ID": "99999", "NTASKS": "4", "NNODES": "2", "GPUS": "1"}
    slurm.env |= {f"SLURM_{key}": value for key, value in job.items()} | {"SQUEUE_NAMES": "none"}
    slurm.create("foo@.slurm")
    assert slurm("exec", "foo", "echo here; env | grep -c GPUS").out == "here\n0\n"
    assert hosts(slurm)["foo"]["state"] == "RUNNING"


def test_every_allocation_is_accounted_for(slurm: Cli, cluster: Cluster) -> None:
    for step in ("host_noted", "host_made", "host_kept"):
        name = step.replace("_", "-")
        words = ("host", "create", name, "--provider", "slurm")
        assert slurm(*words, env={KILL_AT: step}).code == -9
    found = slurm("host", "audit", "--format", "json").json()["hosts"]
    assert {each["name"]: each["problem"] for each in found} == {
        "host-noted": "never created: its creation was interrupted",
        "host-made": "its creation was interrupted",
        "host-kept": "",
    }
    slurm("host", "audit", "--end").ok()
    assert cluster.ask("squeue", "-h", "-o", "%j") == "mngr-host-kept"


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_times_are_read_as_slurm_writes_them(days: int, hours: int, mins: int, secs: int) -> None:
    total = ((days * 24 + hours) * 60 + mins) * 60 + secs
    assert seconds(f"{days}-{hours:02}:{mins:02}:{secs:02}") == total
    assert seconds(f"{mins}:{secs:02}") == mins * 60 + secs


@pytest.mark.parametrize("word", ["UNLIMITED", "INVALID", "NOT_SET", "", "-", "1-", "a:b"])
def test_what_is_no_time_is_none(word: str) -> None:
    assert seconds(word) == 0
