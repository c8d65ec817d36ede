"""Work directories made from real repositories."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mngr.errors import MngrError, Refused, Taken, UsageError
from mngr.git import repository as git
from mngr.git.repository import Repo
from mngr.hosts.local import LocalHost
from mngr.model.events import new_id
from mngr.ops.lifecycle.request import CreateRequest
from mngr.ops.work import risk, sources, workdir
from tests.support.fox import record
from tests.support.properties import examples

NAMES = ("a", "b b", "c'c", "d\nd", "-e", "é", "dir/f", "dir/g", "$(h)")
IDENTITY = ["-c", "user.name=t", "-c", "user.email=t@example.com"]


def run_git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", *IDENTITY, *args], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode()


def tree(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Every file but git's own: kind with executable bit, and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.split("/", maxsplit=1)[0] == ".git":
            continue
        if path.is_symlink():
            found[name] = ("link", os.fsencode(os.readlink(path)))
        elif path.is_file():
            executable = bool(path.stat().st_mode & stat.S_IXUSR)
            found[name] = ("executable" if executable else "file", path.read_bytes())
    return found


def write(folder: Path, name: str, kind: str, content: bytes) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    if path.is_symlink() or path.exists():
        path.unlink()
    if kind == "link":
        path.symlink_to(os.fsdecode(content.replace(b"\0", b"") or b"x"))
    else:
        path.write_bytes(content)
        path.chmod(0o755 if kind == "executable" else 0o644)


files = st.dictionaries(
    st.sampled_from(NAMES),
    st.tuples(st.sampled_from(["file", "executable", "link"]), st.binary(max_size=30)),
    max_size=6,
)


@settings(examples(10), suppress_health_check=list(HealthCheck))
@given(files, files, st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(NAMES)))
def test_include_dirty_makes_the_new_tree_equal_to_the_old_one(
    committed: dict[str, tuple[str, bytes]],
    changed: dict[str, tuple[str, bytes]],
    deleted: set[str],
    staged: set[str],
) -> None:
    base = Path(tempfile.mkdtemp())
    repo = base / "repo"
    repo.mkdir()
    run_git(repo, "init", "-q")
    for name, (kind, content) in committed.items():
        write(repo, name, kind, content)
    run_git(repo, "add", "-A")
    run_git(repo, "commit", "-q", "--allow-empty", "-m", "x")
    for name, (kind, content) in changed.items():
        write(repo, name, kind, content)
    for name in staged & changed.keys():
        run_git(repo, "add", "--", name)
    for name in deleted & committed.keys():
        (repo / name).unlink(missing_ok=True)
    made = make(base, include_dirty=True)
    assert tree(Path(made.work_dir)) == tree(repo)
    shutil.rmtree(base)


def make(
    base: Path,
    *,
    name: str = "n",
    branch: str = "",
    transfer: str = "",
    include_dirty: bool = False,
) -> workdir.Plan:
    host = LocalHost(str(base / "home"))
    asked = CreateRequest(transfer=transfer, branch=branch, include_dirty=include_dirty)
    origin = sources.directory(host, str(base / "repo"))
    plan = workdir.plan(host, asked, origin, name, new_id("agent"))
    return workdir.make(host, host.home, plan)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    repo = tmp_path / "repo"
    repo.mkdir()
    run_git(repo, "init", "-q", "-b", "main")
    (repo / "f").write_text("1")
    run_git(repo, "add", "-A")
    run_git(repo, "commit", "-q", "-m", "one")
    return tmp_path


def test_a_worktree_has_its_own_branch_from_the_current_commit_and_is_locked(base: Path) -> None:
    made = make(base)
    assert run_git(Path(made.work_dir), "branch", "--show-current") == "mngr/n\n"
    assert made.base_commit == run_git(base / "repo", "rev-parse", "main").strip()
    assert "locked" in run_git(base / "repo", "worktree", "list", "--porcelain")


def test_a_dirty_tree_is_refused_with_the_files_named(base: Path) -> None:
    (base / "repo" / "odd\nname").write_text("x")
    with pytest.raises(Refused, match="--include-dirty") as caught:
        make(base)
    assert "odd" in str(caught.value)


@pytest.mark.parametrize(
    ("branch", "expected"),
    [("", "mngr/n"), (":", "mngr/n"), (":x/*", "x/n"), (":plain", "plain"), ("main:*-y", "n-y")],
)
def test_the_branch_option_is_base_and_new_with_a_star_for_the_name(
    base: Path, branch: str, expected: str
) -> None:
    assert make(base, branch=branch).branch == expected


def test_an_existing_branch_is_used_itself_when_only_a_base_is_given(base: Path) -> None:
    run_git(base / "repo", "branch", "topic")
    made = make(base, branch="topic")
    assert (made.branch, made.made_branch) == ("topic", False)
    with pytest.raises(Taken, match="checked out in"):
        make(base, name="m", branch="topic")


def test_a_default_branch_that_exists_gets_a_suffix_and_a_spelled_out_one_is_refused(
    base: Path,
) -> None:
    run_git(base / "repo", "branch", "mngr/n")
    assert make(base).branch == "mngr/n-2"
    with pytest.raises(Taken, match="already exists"):
        make(base, name="m", branch=":mngr/n")


def test_a_branch_called_like_the_prefix_is_explained(base: Path) -> None:
    run_git(base / "repo", "branch", "mngr")
    with pytest.raises(Taken, match="--branch :mngr-n"):
        make(base)


@pytest.mark.parametrize(
    "branch", ["nope:x", ":bad..name", "nope", ":a b", ":-x", "--upload-pack=x:y"]
)
def test_a_bad_branch_option_is_a_usage_error(base: Path, branch: str) -> None:
    with pytest.raises(UsageError):
        make(base, branch=branch)


def test_a_copy_keeps_modes_links_and_hidden_files(base: Path) -> None:
    for name, (kind, content) in {
        ".h": ("file", b"1"),
        "x": ("executable", b"2"),
        "l": ("link", b"f"),
    }.items():
        write(base / "repo", name, kind, content)
    made = make(base, transfer="rsync")
    assert tree(Path(made.work_dir)) == tree(base / "repo")
    assert git.changes(Repo(run=LocalHost("/x").run, path=made.work_dir))


def test_copying_a_home_is_refused(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(base / "repo"))
    with pytest.raises(Refused, match="too large to copy"):
        make(base, transfer="rsync")


def test_outside_a_repository_a_worktree_is_refused(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    with pytest.raises(UsageError, match="not in a git repository"):
        make(tmp_path, transfer="worktree")
    assert make(tmp_path).transfer == "rsync"


def test_a_repository_without_commits_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    run_git(tmp_path / "repo", "init", "-q")
    with pytest.raises(UsageError, match="no commits yet; commit first"):
        make(tmp_path)


def test_changes_lists_odd_names_and_both_sides_of_a_rename(base: Path) -> None:
    repo = base / "repo"
    run_git(repo, "mv", "f", "new\nname")
    (repo / "unt racked").write_text("")
    found = {
        change.path: change.code
        for change in git.changes(Repo(run=LocalHost("/x").run, path=str(repo)))
    }
    assert found == {"new\nname": "R ", "f": "D ", "unt racked": "??"}


def test_risk_names_changed_untracked_and_orphaned_work(base: Path) -> None:
    made = make(base)
    work, host = Path(made.work_dir), LocalHost(str(base / "home"))
    of = {"work_dir": made.work_dir, "source": made.source}
    agent = record("command", 0.0, branch=made.branch, made_branch=True, **of)
    assert not risk.at_risk(host, agent)
    (work / "new").write_text("x")
    assert "new" in str(risk.at_risk(host, agent))
    run_git(work, "add", "-A")
    run_git(work, "commit", "-qm", "precious")
    assert not risk.at_risk(host, agent), "its branch keeps it"
    assert "precious" in str(risk.at_risk(host, agent, drop_branch=True))
    run_git(work, "checkout", "-q", "--detach")
    run_git(work, "commit", "-q", "--allow-empty", "-m", "detached")
    assert "detached" in str(risk.at_risk(host, agent))


def test_a_missing_git_is_named(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(base / "nowhere"))
    with pytest.raises(MngrError, match="git is not installed"):
        make(base)
