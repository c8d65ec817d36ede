"""A disk fills up, a clock is wrong or answers come late in the middle of something.

The host still answers, so most of what is under way succeeds; nothing is lost, doubled or
collected, and `list` keeps its deadline. One case in every run; all of them in `make soak`.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.hosts.test_faults import QUICK, SLOW_TAR, SLOW_TMUX, WRONG_CLOCK, paused, result
from tests.support.cli import until
from tests.support.sites import Site, only

HEAR = 'while IFS= read -r line; do echo "heard: $line"; done'
LATE = 30


@contextmanager
def full(site: Site) -> Iterator[None]:
    fill = f"{site.home}/fill"
    site.inside(f"cat /dev/zero > {fill} 2>/dev/null; ! echo more >> {fill}")
    try:
        yield
    finally:
        site.inside(f"rm -f {fill}")


@contextmanager
def ahead(site: Site) -> Iterator[None]:
    with clock(site, "+2"):
        yield


@contextmanager
def behind(site: Site) -> Iterator[None]:
    with clock(site, "-2"):
        yield


@contextmanager
def clock(site: Site, off: str) -> Iterator[None]:
    site.program("date", WRONG_CLOCK.format(off=off))
    try:
        yield
    finally:
        site.program("date", "")


@contextmanager
def late(site: Site) -> Iterator[None]:
    site.delay(LATE)
    try:
        yield
    finally:
        site.delay(0)


@dataclass
class Trouble:
    happens: Callable[[Site], AbstractContextManager[None]]
    patience: int = 5
    """Seconds that the command under way waits for a host."""
    answers: bool = True
    """Whether the host answers within five seconds."""
    answer: int = 0
    """Seconds until running commands on the host continue."""
    fails: bool = False
    """Whether the command under way gives the host up."""

    @property
    def setting(self) -> tuple[str, str]:
        return ("-S", f"hosts.timeout={self.patience}s")


TROUBLES = {
    "full": Trouble(full),
    "ahead": Trouble(ahead),
    "behind": Trouble(behind),
    "late": Trouble(late, answers=False, fails=True),
    "late-awaited": Trouble(late, patience=90, answers=False, answer=LATE),
}


def prepared(site: Site, trouble: Trouble) -> Site:
    """Return a host with room for little, where that matters, with an agent, and one here."""
    used = site.smaller() if trouble.happens is full else site
    used.cli.create("here")
    used.cli.create(used.at("foo"), "--", "sh", "-c", HEAR)
    assert used.states() == {"here": "RUNNING", "foo": "RUNNING"}
    return used


def looked_at(site: Site, trouble: Trouble) -> None:
    """`list` keeps its deadline and says what is missing; `gc` plans nothing."""
    began = time.monotonic()
    told = site("list", "--format", "json", *QUICK).ok().json()
    assert time.monotonic() - began < 20
    states = {each["name"]: each["state"] for each in told["agents"]}
    state = "RUNNING" if trouble.answers else "UNREACHABLE"
    assert states == {"here": "RUNNING", "foo": state}
    assert (site.host in str(told["errors"])) is not trouble.answers
    planned = site("gc", "--dry-run", "--format", "json", *QUICK, "-S", "trash.keep=0s").ok()
    assert planned.json()["leftovers"] == []


def went_on(
    site: Site, trouble: Trouble, words: tuple[str, ...], program: str, text: str
) -> subprocess.Popen[bytes]:
    """Return a command that ended, whose program on the host met the trouble half-way."""
    site.program(program, text.format(home=site.home))
    running = site.cli.start(*words)
    try:
        until(lambda: site.inside(f"ls {site.home}/there 2>/dev/null || :"), what=program)
        with trouble.happens(site):
            looked_at(site, trouble)
            if not trouble.fails:
                site.inside(f"sleep {trouble.answer}; touch {site.home}/go")
            until(lambda: running.poll() is not None, 300, "the end of the command")
    finally:
        site.inside(f"touch {site.home}/go")
        site.program(program, "")
    return running


def pull(site: Site, trouble: Trouble) -> None:
    site = prepared(site, trouble)
    site("exec", "foo", "truncate -s 3M large; echo end >> large").ok()
    words = ("pull", *trouble.setting, "foo", "large", "copy")
    copy = site.cli.repo / "copy"
    done = result(went_on(site, trouble, words, "tar", SLOW_TAR))
    if trouble.fails:
        done.fails(5, site.host)
        assert not copy.exists()
        done = site(*words)
    done.ok()
    assert copy.read_bytes() == bytes(3 << 20) + b"end\n"
    unharmed(site)


def message(site: Site, trouble: Trouble) -> None:
    site = prepared(site, trouble)
    words = ("message", *trouble.setting, "foo", "-m", "once")
    done = result(went_on(site, trouble, words, "tmux", SLOW_TMUX))
    if trouble.fails:
        done.fails(5, "whether foo got the message is not known", "mngr capture foo")
    else:
        done.ok()
        until(lambda: heard(site) == ["once"], what="the message")
    site("message", "foo", "-m", "twice").ok()
    until(lambda: heard(site)[-1:] == ["twice"], what="the second message")
    # What is under way on a host ends there, with its Enter; Slurm kills it with its client.
    assert heard(site)[:-1] in ([["once"], []] if trouble.fails else [["once"]])
    unharmed(site)


def heard(site: Site) -> list[str]:
    lines = site("capture", "foo").ok().out.splitlines()
    return [each.removeprefix("heard: ") for each in lines if each.startswith("heard: ")]


def unharmed(site: Site) -> None:
    assert site.states() == {"here": "RUNNING", "foo": "RUNNING"}
    assert site("gc", "--dry-run", "--format", "json").ok().json()["leftovers"] == []
    # gc leaves an empty folder for an hour: its agent may be about to be written.
    site.inside(f"rmdir {site.home}/agents/* 2>/dev/null; :")
    assert len(site.folders("worktrees")) == len(site.folders("agents")) == 1
    assert site("exec", "foo", "cat README").ok().out == "hello\n"
    site.inside(f"umount -l {site.home} 2>/dev/null; :")


def create(site: Site, trouble: Trouble, step: str, gate: Path) -> None:
    site = site.smaller() if trouble.happens is full else site
    site.cli.create("here")
    tail = (site.at("foo"), "--no-connect", "--", "sh", "-c", HEAR)
    running = paused(site.cli, step, gate, "create", *trouble.setting, *tail)
    with trouble.happens(site):
        gate.touch()
        done = result(running, 600)
        before = site.states(*QUICK)
        assert before.pop("here") == "RUNNING"
        assert before in ({}, *({"foo": each} for each in ("LOST", "RUNNING", "UNREACHABLE")))
    assert done.code in (0, 1, 5) and "Traceback" not in done.err, done
    assert done.code == 0 or site.host in done.err.strip().splitlines()[-1], done.err
    if site.states().get("foo") != "RUNNING":
        assert done.code, "it was said to run"
        site("create", *tail).ok()
    site("gc").ok()
    unharmed(site)


@pytest.mark.parametrize("under", [pull, message])
@only("ssh")
def test_a_disk_that_fills_up_in_the_middle(
    site: Site, under: Callable[[Site, Trouble], None]
) -> None:
    under(site, TROUBLES["full"])


@pytest.mark.soak
@pytest.mark.parametrize("trouble", [each for each in TROUBLES if each != "full"])
@pytest.mark.parametrize("under", [pull, message])
def test_any_trouble_in_the_middle(
    site: Site, under: Callable[[Site, Trouble], None], trouble: str
) -> None:
    under(site, TROUBLES[trouble])


@pytest.mark.soak
@pytest.mark.parametrize("site", ["ssh"], indirect=True)
@pytest.mark.parametrize("trouble", ["full", "ahead", "behind"])
@pytest.mark.parametrize("step", ["claimed", "work_dir", "files", "launched"])
def test_a_disk_or_a_clock_that_goes_wrong_under_create(
    site: Site, step: str, trouble: str, tmp_path: Path
) -> None:
    create(site, TROUBLES[trouble], step, tmp_path / "gate")
