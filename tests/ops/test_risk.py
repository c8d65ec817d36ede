"""What counts as work in a plain copy: every change, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mngr.hosts.base import Host
from mngr.hosts.local import LocalHost
from mngr.model.records import AgentRecord, agent_dir
from mngr.ops.work.risk import Risk, at_risk, mark_copied
from tests.support.fox import record


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return LocalHost(str(tmp_path / "home"))


@pytest.fixture
def work(tmp_path: Path, host: Host) -> Path:
    """A copy right after it was made."""
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    for name in ("sub/file", "sub/other", "old"):
        (folder / name).write_text("one")
    mark(host).parent.mkdir(parents=True)
    mark_copied(host, agent(folder))
    return folder


def agent(work: Path) -> AgentRecord:
    return record("command", 0.0, work_dir=str(work), transfer="rsync")


def mark(host: Host) -> Path:
    return Path(agent_dir(host.home, "agent-1"), "copied")


def risk(host: Host, work: Path) -> Risk:
    return at_risk(host, agent(work))


def test_looking_and_moving_the_whole_changes_nothing(host: Host, work: Path) -> None:
    subprocess.run(["grep", "-r", "one", "."], cwd=work, check=True, capture_output=True)
    assert not risk(host, work)
    work.rename(work.parent / "trash").rename(work)
    assert not risk(host, work)


def test_the_mark_is_written_through_no_link(host: Host, work: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    mark(host).unlink()
    mark(host).symlink_to(precious)
    mark_copied(host, agent(work))
    assert precious.read_text() == "mine" and not mark(host).is_symlink()


@pytest.mark.parametrize(
    ("script", "named"),
    [
        ("printf two > sub/file", "sub/file"),
        ("printf two > sub/file; touch -r old sub/file", "sub/file"),
        ("cp -p old sub/file", "sub/file"),
        ("touch new", "new"),
        ("touch 'sub/odd name'", "sub/odd name"),
        ("mv old moved", "moved"),
        ("ln -s old link", "link"),
        ("mkdir empty", "empty"),
        ("rm sub/file", "sub"),
        ("chmod +x old", "old"),
    ],
)
def test_any_change_is_work(host: Host, work: Path, script: str, named: str) -> None:
    subprocess.run(["sh", "-c", script], cwd=work, check=True)
    assert risk(host, work).files == (named,)


def test_without_the_mark_all_files_count(host: Host, work: Path) -> None:
    mark(host).unlink()
    assert str(risk(host, work)) == "3 files that exist nowhere else"


def test_where_find_knows_no_times_of_change_there_is_no_mark(
    host: Host, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = tmp_path / "bin" / "find"
    stub.parent.mkdir()
    stub.write_text('#!/bin/sh\ncase "$*" in *-cnewer*) exit 1 ;; esac\nexec /usr/bin/find "$@"\n')
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stub.parent}:/usr/bin:/bin")
    assert str(risk(host, work)) == "3 files that exist nowhere else"
    mark_copied(host, agent(work))
    assert not mark(host).exists()
