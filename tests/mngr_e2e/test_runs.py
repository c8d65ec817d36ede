"""Old runs do not pile up, and no run that is in use is lost."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from mngr_e2e.runs import LOCK, RunFolder, remove_old
from mngr_e2e.settings import SettingsError, load
from tests.mngr_e2e.project import Project


def opened(base: Path, name: str, at: int, keep: int = 0) -> RunFolder:
    run = RunFolder(base, name, keep)
    os.utime(run.folder / LOCK, (at, at))
    return run


def names(base: Path) -> list[str]:
    return sorted(path.name for path in base.iterdir() if path.is_dir() and not path.is_symlink())


def test_the_newest_runs_are_kept_whatever_their_names(tmp_path: Path) -> None:
    for at, name in enumerate(["c", "a", "d", "b"]):
        opened(tmp_path, name, at).close()
    remove_old(tmp_path, 2)
    assert names(tmp_path) == ["b", "d"]
    RunFolder(tmp_path, "new", 2).close()
    assert names(tmp_path) == ["b", "new"]
    assert os.readlink(tmp_path / "latest") == "new"


def test_a_run_in_use_is_kept(tmp_path: Path) -> None:
    old = opened(tmp_path, "old", 1)
    (old.folder / "result.json").write_text("{}")
    for at, name in enumerate(["a", "b"], 2):
        opened(tmp_path, name, at).close()
    remove_old(tmp_path, 1)
    assert names(tmp_path) == ["b", "old"]
    assert (old.folder / "result.json").exists()
    old.close()
    remove_old(tmp_path, 1)
    assert names(tmp_path) == ["b"]


def test_what_is_no_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "build" / "precious").mkdir(parents=True)
    (tmp_path / "20260101T000000Z-abcd").mkdir()  # of a time before there were locks
    (tmp_path / ".old-1234").mkdir()  # whose removal was interrupted
    for at, name in enumerate("abc"):
        opened(tmp_path, name, at + 2_000_000_000).close()
    remove_old(tmp_path, 2)
    assert names(tmp_path) == ["b", "build", "c"]


def test_a_run_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    opened(tmp_path, "again", 1).close()
    opened(tmp_path, "other", 2).close()
    remove_old(tmp_path, 1)
    run = RunFolder(tmp_path, "again", 0)
    assert (run.folder / LOCK).exists()
    run.close()


def test_a_run_that_is_removed_while_it_is_opened_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lock(fd: int, how: int) -> None:
        """Somebody was faster."""
        monkeypatch.undo()
        shutil.rmtree(tmp_path / "again")
        fcntl.flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", lock)
    run = RunFolder(tmp_path, "again", 0)
    remove_old(tmp_path, 0)
    assert names(tmp_path) == ["again"]
    run.close()


def test_all_are_kept_if_the_project_says_so(tmp_path: Path) -> None:
    for at in range(25):
        opened(tmp_path, f"run{at}", at).close()
    RunFolder(tmp_path, "new", 0).close()
    assert len(names(tmp_path)) == 26


@pytest.mark.parametrize("value", ["-1", "true", "'many'", "1.5"])
def test_a_number_of_runs_that_cannot_be_meant_is_refused(tmp_path: Path, value: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.mngr_e2e]\nkeep_runs = {value}\n")
    with pytest.raises(SettingsError, match=r"'keep_runs'.* must look like 20"):
        load(tmp_path)


def test_a_redaction_that_is_no_pattern_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.mngr_e2e]\nredactions = ['(']\n")
    with pytest.raises(SettingsError, match=r"redaction '\('"):
        load(tmp_path)


def test_a_project_says_how_many_runs_it_keeps(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.settings("keep_runs = 1")
    project.test("def test_a(e2e): e2e.run('true')\ndef test_b(e2e): e2e.run('true')\n")
    for name, workers in (("one", "0"), ("two", "2")):
        done = project.pytest("-n", workers, MNGR_E2E_RUN=name)
        assert done.returncode == 0, done.stdout
    assert [run.name for run in project.runs] == ["two"]
    assert len(project.folders) == 2
