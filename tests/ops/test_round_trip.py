"""Random trees go to an agent and come back: every byte, mode and link is the same."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mngr.api import CreateRequest, Mngr
from mngr.hosts import tmux
from mngr.plugins.registry import load_registry
from mngr.settings.layers import Config
from tests.support.properties import examples

ENV = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.com",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.com",
}
NAMES = [
    *("plain", "-dash", "sp ace", "new\nline", "ünï", "q'\"u", "*", "\udcff", "#", "a\\b", "..x"),
    *("d/one", "d/two", "d/deep/er", "kind", "kind/below", "kind/below/that"),
]
"""Some stand in each other's way: a file where the other tree has a directory."""
KINDS = st.sampled_from(["file", "executable", "link"])
ENTRY = st.tuples(KINDS, st.binary(max_size=40) | st.sampled_from([b"", b"a\r\nb\n", b"\0" * 9]))
TREE = st.dictionaries(st.sampled_from(NAMES), ENTRY, max_size=7)
MODES = ("git-worktree", "git-mirror", "rsync", "none")


def run_git(where: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=where, env=ENV, capture_output=True)
    assert done.returncode == 0, f"{words}: {done.stderr!r}"
    return os.fsdecode(done.stdout).strip()


def write(root: Path, name: str, kind: str, content: bytes) -> None:
    path = root / name
    for parent in [*reversed(path.relative_to(root).parents)][1:]:
        if (root / parent).is_symlink() or (root / parent).is_file():
            (root / parent).unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    remove(path)
    if kind == "link":
        path.symlink_to(os.fsdecode(content.replace(b"\0", b"0")) or "nowhere")
    else:
        path.write_bytes(content)
        path.chmod(0o755 if kind == "executable" else 0o644)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.is_symlink() or path.exists():
        path.unlink()


def fill(root: Path, files: dict[str, tuple[str, bytes]]) -> None:
    for name, (kind, content) in files.items():
        write(root, name, kind, content)


def tree(root: Path, *, folders: bool = False) -> dict[str, object]:
    """All but the top's .git; with `folders` also directories and their modes."""
    found: dict[str, object] = {}
    for folder, directories, files in os.walk(root):
        here = Path(folder)
        if here == root:
            directories[:] = [name for name in directories if name != ".git"]
            files = [name for name in files if name != ".git"]
        for name in directories + files:
            path = here / name
            mode = path.lstat().st_mode
            key = str(path.relative_to(root))
            if stat.S_ISLNK(mode):
                found[key] = os.readlink(path)
            elif stat.S_ISREG(mode):
                found[key] = (bool(mode & 0o100), path.read_bytes())
            elif folders:
                found[key] = "directory"
    return found


@pytest.fixture(scope="module")
def api() -> Iterator[Mngr]:
    """One home on this machine, and one more host behind a shell and another disk."""
    base = Path(tempfile.mkdtemp())
    env = {
        "MNGR__PLUGINS__MODULES": '["tests.support.apart"]',
        "MNGR__PROVIDERS__BARE__HOME": str(base / "bare"),
    }
    before = dict(os.environ)
    os.environ.update({key: value for key, value in ENV.items() if key.startswith("GIT_")})
    # What a host that starts from nothing gets of our environment is the configuration.
    os.environ |= {"GIT_CONFIG_COUNT": "0"}
    config = Config.load(str(base / "home"), str(base), env, [])
    yield Mngr(config, load_registry(config))
    for home in ("home", "bare"):
        socket = tmux.socket_path(str(base / home), os.getuid())
        subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True)
        Path(socket).unlink(missing_ok=True)
    os.environ.clear()
    os.environ.update(before)
    shutil.rmtree(base, ignore_errors=True)


def source_of(
    base: Path,
    committed: dict[str, tuple[str, bytes]],
    changed: dict[str, tuple[str, bytes]],
    deleted: set[str],
    staged: set[str],
    nested: bool,
) -> Path:
    repo = base / "repo"
    repo.mkdir()
    run_git(repo, "init", "-q", "-b", "main")
    fill(repo, committed)
    run_git(repo, "add", "-A")
    run_git(repo, "commit", "-q", "--allow-empty", "-m", "base")
    for name in deleted:
        remove(repo / name)
    fill(repo, changed)
    for name in staged:  # what is nowhere, or behind a link, git declines to add
        words = ["git", "add", "-A", "--", f":(literal){name}"]
        subprocess.run(words, cwd=repo, env=ENV, capture_output=True)
    if nested:
        inner = repo / "nested"
        inner.mkdir()
        run_git(inner, "init", "-q")
        (inner / "f").write_text("inner")
        run_git(inner, "add", "-A")
        run_git(inner, "commit", "-q", "-m", "inner")
    return repo


def everything(repo: Path) -> tuple[object, ...]:
    """Return all that a copy must keep: files, staged changes, branch and commit."""
    standing = run_git(repo, "rev-parse", "HEAD", "--symbolic-full-name", "HEAD")
    return tree(repo, folders=True), index(repo), standing


def index(where: Path) -> str:
    return run_git(where, "ls-files", "-s", "-z")


@pytest.mark.dear
@pytest.mark.parametrize("provider", ["local", "bare"])
@pytest.mark.parametrize("mode", MODES)
@settings(
    examples(5),
    suppress_health_check=list(HealthCheck),
    # An example takes half a second: shrinking a failure would take minutes.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
@given(
    committed=TREE,
    changed=TREE,
    theirs=TREE,
    ours=TREE,
    deleted=st.sets(st.sampled_from(NAMES)),
    staged=st.sets(st.sampled_from(NAMES)),
    nested=st.booleans(),
)
def test_create_pull_and_push_keep_every_byte_and_mode(
    api: Mngr,
    mode: str,
    provider: str,
    committed: dict[str, tuple[str, bytes]],
    changed: dict[str, tuple[str, bytes]],
    theirs: dict[str, tuple[str, bytes]],
    ours: dict[str, tuple[str, bytes]],
    deleted: set[str],
    staged: set[str],
    nested: bool,
) -> None:
    if provider == "bare" and mode in ("git-worktree", "none"):
        return  # not on another disk
    base = Path(tempfile.mkdtemp())
    repo = source_of(base, committed, changed, deleted, staged, nested)
    request = CreateRequest(
        args=("true",), source=str(repo), transfer=mode, provider=provider, include_dirty=True
    )
    before = everything(repo)
    agent = api.create(request).agent
    work = Path(agent.record.work_dir)
    assert everything(repo) == before, "create leaves the source alone"
    assert (work == repo) == (mode == "none")
    assert tree(work) == tree(repo), "create carries what is committed and what is not"
    assert index(work) == index(repo), "and what is staged"

    (work / "an empty directory").mkdir()
    api.pull_files(agent, ".", str(base / "copied"))
    files = tree(work, folders=True)
    plain = {name: what for name, what in files.items() if ".git" not in name.split("/")}
    assert tree(base / "copied", folders=True) == plain, "all but git's own files"
    api.push_files(agent, str(base / "copied"), "and/back")
    assert tree(work / "and/back", folders=True) == tree(base / "copied", folders=True)
    shutil.rmtree(work / "and")

    fill(work, theirs)
    if nested:
        shutil.move(work / "nested", base / "aside")
        remove(repo / "nested")
    run_git(work, "add", "-A")
    run_git(work, "commit", "-q", "--allow-empty", "-m", "theirs")
    pulled = api.pull(agent)
    checkout(repo, pulled.branch, base / "seen")
    assert tree(base / "seen") == tree(work), "pull brings it all"

    fill(base / "seen", ours)
    run_git(base / "seen", "add", "-A")
    run_git(base / "seen", "commit", "-q", "--allow-empty", "-m", "ours")
    api.push(agent, rev=run_git(base / "seen", "rev-parse", "HEAD"))
    assert tree(work) == tree(base / "seen"), "push brings it back"
    assert run_git(work, "status", "--porcelain") == ""
    there = everything(work)
    api.destroy(agent)
    assert mode != "none" or everything(work) == there, "in place, nothing goes with the agent"
    shutil.rmtree(base)


def checkout(repo: Path, branch: str, where: Path) -> None:
    run_git(repo, "worktree", "add", "-q", "--detach", str(where), branch)
