"""A host fails in the middle of something: nothing is lost, doubled or collected.

The same on every provider. One case each in every run; all of them in `make soak`.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from shutil import which

import pytest

from tests.support.cli import PAUSE_AT, Cli, Result, until
from tests.support.sites import Site, only

CREATE = ("claimed", "mirror_made", "mirror_updated", "cloned", "work_dir", "files", "launched")
ECHO = 'while IFS= read -r line; do echo "$line" >> heard.txt; done'
QUICK = ("-S", "hosts.timeout=5s")


def paused(mngr: Cli, step: str, gate: Path, *words: str) -> subprocess.Popen[bytes]:
    running = mngr.start(*words, env=mngr.environment({PAUSE_AT: f"{step}:{gate}"}))
    until(Path(f"{gate}.there").exists, 60, what=f"{words[0]} reaches {step}")
    return running


def result(running: subprocess.Popen[bytes], timeout: float = 200) -> Result:
    out, err = running.communicate(timeout=timeout)
    return Result([], running.returncode, out.decode(), err.decode())


def create(site: Site, step: str, gate: Path, fault: str) -> None:
    words = ("create", site.at("foo"), "--no-connect", "--", "sh", "-c", ECHO)
    running = paused(site.cli, step, gate, *words)
    getattr(site, fault)()
    gate.touch()
    done = result(running)
    if step == "launched":  # all that create reports was read in the visit before
        done.ok()
    else:
        done.fails(5, site.host)
    site.heal()
    # A node of Slurm may refuse for a moment longer: then nothing is known of its agents yet.
    until(lambda: not site("list", "--format", "json").json()["errors"], what="every answer")
    before = site.states()
    assert before in ({}, {"foo": "LOST"}, {"foo": "RUNNING"})
    if before != {"foo": "RUNNING"}:
        assert done.code, "it was said to run"
        site(*words).ok()
    assert site.states() == {"foo": "RUNNING"}
    site("gc").ok()
    assert len(site.folders("worktrees")) == len(site.folders("agents")) == 1
    assert site("exec", "foo", "cat README; git status --short").ok().out == "hello\n"


@only("docker")
def test_a_host_that_dies_under_create(site: Site, tmp_path: Path) -> None:
    create(site, "files", tmp_path / "gate", "refuse")


@pytest.mark.soak
@pytest.mark.parametrize("fault", ["cut", "refuse"])
@pytest.mark.parametrize("step", CREATE)
def test_any_fault_at_any_step_of_create(site: Site, step: str, fault: str, tmp_path: Path) -> None:
    create(site, step, tmp_path / "gate", fault)


# What the host's tar is, and waits for in the middle of a large file.
SLOW_TAR = """#!/bin/sh
case "$*" in
  *./large)
    /usr/bin/tar "$@" | {{ head -c 1000000; : > {home}/there; until [ -e {home}/go ]; do
      sleep 0.1; done; cat; }} ;;
  *) exec /usr/bin/tar "$@" ;;
esac
"""


def pull(site: Site, fault: str) -> None:
    site.cli.create(site.at("foo"))
    site("exec", "foo", "truncate -s 3M large; echo end >> large").ok()
    site.program("tar", SLOW_TAR.format(home=site.home))
    try:
        running = site.cli.start("pull", *QUICK, "foo", "large", "copy")
        until(lambda: site.inside(f"ls {site.home}/there 2>/dev/null || :"), what="the transfer")
        getattr(site, fault)()
        result(running).fails(5, site.host)
        assert not (site.cli.repo / "copy").exists()
    finally:
        site.heal()
        site.inside(f"touch {site.home}/go")
    site("pull", "foo", "large", "copy").ok()
    assert (site.cli.repo / "copy").stat().st_size == (3 << 20) + 4
    site.program("tar", "")


@only("ssh")
def test_a_host_that_dies_under_pull(site: Site) -> None:
    pull(site, "refuse")


@pytest.mark.soak
def test_a_host_that_is_cut_off_under_pull(site: Site) -> None:
    pull(site, "cut")


# What the host's tmux is, and waits for once it has been asked to paste.
SLOW_TMUX = """#!/bin/sh
case "$*" in
  *paste-buffer*) : > {home}/there; until [ -e {home}/go ]; do sleep 0.1; done ;;
esac
exec /usr/bin/tmux "$@"
"""


def message(site: Site, fault: str) -> None:
    """Check that a message in progress is typed completely with its Enter, or not at all."""
    site.cli.create(site.at("foo"), "--", "sh", "-c", ECHO)
    site.program("tmux", SLOW_TMUX.format(home=site.home))
    try:
        running = site.cli.start("message", "foo", "-m", "once")
        until(lambda: site.inside(f"ls {site.home}/there 2>/dev/null || :"), what="tmux")
        getattr(site, fault)()
        result(running).fails(5, "whether foo got the message is not known", "mngr capture foo")
    finally:
        site.heal()
        site.inside(f"touch {site.home}/go")
        site.program("tmux", "")
    site("message", "foo", "-m", "twice").ok()
    until(lambda: "twice\n" in heard(site), what="the second message")
    assert heard(site) in ("twice\n", "once\ntwice\n")


def heard(site: Site) -> str:
    return site("exec", "foo", "cat heard.txt 2>/dev/null; :").ok().out


@only("ssh")
def test_a_host_that_dies_under_a_message(site: Site) -> None:
    message(site, "refuse")


@pytest.mark.soak
def test_a_host_that_is_cut_off_under_a_message(site: Site) -> None:
    message(site, "cut")


@only("docker")
def test_a_silent_engine_delays_nobody_and_costs_nothing(site: Site) -> None:
    site.cli.create("here")
    site.cli.create(site.at("foo"))
    site.states()
    site.cut()
    began = time.monotonic()
    told = site("list", "--format", "json", *QUICK).ok()
    assert time.monotonic() - began < 20
    listed = {each["name"]: each for each in told.json()["agents"]}
    assert {n: each["state"] for n, each in listed.items()} == {
        "here": "RUNNING",
        "foo": "UNREACHABLE",
    }
    assert "last known RUNNING" in listed["foo"]["state_reason"]
    assert site.host in str(told.json()["errors"])
    site("gc", *QUICK, "-S", "trash.keep=0s").ok()
    site.heal()
    assert site.states() == {"here": "RUNNING", "foo": "RUNNING"}


@only("ssh")
def test_a_full_disk_is_told_and_costs_nothing(site: Site) -> None:
    full_disk(site)


def full_disk(site: Site) -> None:
    name = site.smaller().host
    try:
        site.cli.create(f"foo@{name}", "--", "sh", "-c", ECHO)
        site("exec", "foo", 'echo mine > own.txt; cat /dev/zero > "$MNGR_HOST_DIR/fill"')
        site("create", f"bar@{name}", "--no-connect", "--", "sleep", "100").fails(1, f"host {name}")
        assert site.states() == {"foo": "RUNNING"}
        site("exec", "foo", 'rm "$MNGR_HOST_DIR/fill"').ok()
        assert site("exec", "foo", "cat own.txt").ok().out == "mine\n"
        site.cli.create(f"bar@{name}")
        assert site.states() == {"foo": "RUNNING", "bar": "RUNNING"}
        site("message", "foo", "-m", "hello").ok()
        until(lambda: heard(site) == "hello\n", what="the message")
        site("destroy", "foo", "bar", "--force").ok()
    finally:
        site.inside(f"umount -l {site.home} 2>/dev/null; :")


WRONG_CLOCK = """#!/bin/sh
exec /bin/date -d '{off} hours' "$@"
"""
# The server of tmux is asked the time as well.
WRONG_TMUX = """#!/bin/sh
for word in "$@"; do
  shift
  [ "$word" != %s ] || word=$(/bin/date -d '{off} hours' +%s)
  set -- "$@" "$word"
done
exec /usr/bin/tmux "$@"
"""


def wrong_clock(site: Site, off: str) -> None:
    site.program("date", WRONG_CLOCK.format(off=off))
    site.program("tmux", WRONG_TMUX.format(off=off))
    try:
        site.cli.create(site.at("foo"), "--", "sh", "-c", ECHO)
        agent = site.cli.agent("foo")
        assert agent["state"] == "RUNNING" and 0 <= agent["runtime_seconds"] < 600
        site("message", "foo", "-m", "hello").ok()
        until(lambda: heard(site) == "hello\n", what="the message")
        site("stop", "foo").ok()
        site("start", "foo").ok()
        assert site.states() == {"foo": "RUNNING"}
        site("destroy", "foo", "--force").ok()
        site("gc", "-S", "trash.keep=1h").ok()
        site("restore", "foo").ok()
        assert heard(site) == "hello\n"
        found = site("doctor", "--host", site.host, "--format", "json").json()["checks"]
        assert [each["status"] for each in found if each["check"] == "clock"] == ["warning"]
    finally:
        site.program("date", "")
        site.program("tmux", "")


@only("ssh")
@pytest.mark.parametrize("off", ["+2", "-2"])
def test_a_clock_that_is_two_hours_off(site: Site, off: str) -> None:
    wrong_clock(site, off)


def late(site: Site, seconds: int, patience: int) -> None:
    site.cli.create("here")
    site.cli.create(site.at("foo"), "--", "sh", "-c", ECHO)
    site.states()
    site.delay(seconds)
    began = time.monotonic()
    told = site("list", "-S", f"hosts.timeout={patience}s").ok()
    assert time.monotonic() - began < seconds
    assert f"{site.host} did not answer within {patience} s" in told.err
    assert site.states("-S", f"hosts.timeout={patience}s")["here"] == "RUNNING"
    site("gc", "-S", f"hosts.timeout={patience}s", "-S", "trash.keep=0s").ok()
    slowly = site("exec", "-S", f"hosts.timeout={seconds * 3}s", "foo", "echo slowly", timeout=300)
    assert slowly.ok().out == "slowly\n"
    site.delay(0)
    assert site.states() == {"here": "RUNNING", "foo": "RUNNING"}


ENGINES = pytest.mark.parametrize(
    "site", ["docker", "slurm", "docker-template", "slurm-template"], indirect=True
)


@pytest.mark.soak
@pytest.mark.parametrize("seconds", [7, 30])
def test_a_host_that_answers_late(site: Site, seconds: int) -> None:
    late(site, seconds, seconds // 2)


@pytest.mark.soak
@ENGINES
def test_an_engine_that_is_gone_while_a_host_is_made(site: Site, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    words = ("host", "create", "new", "--provider", site.provider)
    running = paused(site.cli, "host_noted", gate, *words)
    site.refuse()
    gate.touch()
    assert result(running).fails(1).out == ""
    site("host", "audit").fails(1, site.provider)
    site.heal()
    told = site("host", "audit", "--provider", site.provider, "--format", "json")
    problems = {each["name"]: each["problem"] for each in told.json()["hosts"]}
    assert problems == {"box": "", "new": "never created: its creation was interrupted"}
    site("host", "audit", "--end").ok()
    site(*words).ok()


# Without these capabilities, root obeys the modes of files: a socket without permissions is
# refused.
PLAIN = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--")


@pytest.mark.parametrize("site", ["docker"], indirect=True)
def test_a_user_who_may_not_talk_to_the_engine(site: Site) -> None:
    site.cli.create(site.at("foo"))
    site.states()
    socket = Path(site.cli.env["DOCKER_HOST"].removeprefix("unix://"))
    socket.chmod(0)
    site.cli.within = PLAIN
    try:
        create = ("host", "create", "new", "--provider", "docker")
        site(*create).fails(1, "docker", "permission denied")
        assert site.states() == {"foo": "UNREACHABLE"}
        told = site("provider", "list", "--format", "json").ok().json()["providers"]
        standing = {each["name"]: each for each in told}["docker"]
        assert not standing["usable"] and "permission denied" in standing["reason"]
        site("gc", "-S", "trash.keep=0s").ok()
        site("host", "audit", "--end").fails(1, "permission denied")
    finally:
        socket.chmod(0o660)
        site.cli.within = ()
    assert site.states() == {"foo": "RUNNING"}
    site("host", "audit", "--end").ok()
    site(*create).ok()


# Slurm's controller decides by who asks; everything else is asked as before.
NOBODY = """#!/bin/sh
exec setpriv --reuid=65534 --regid=65534 --clear-groups {sbatch} "$@"
"""


@pytest.mark.soak
@pytest.mark.parametrize("site", ["slurm"], indirect=True)
def test_a_user_who_may_not_have_an_allocation(site: Site) -> None:
    site.program("sbatch", NOBODY.format(sbatch=which("sbatch")))
    create = ("host", "create", "new", "--provider", "slurm")
    site(*create, "-b", "partition=closed").fails(1, "slurm", "not permitted")
    site("host", "audit").ok()
    site.program("sbatch", "")
    site(*create, "-b", "partition=closed").ok()
