"""Snapshots: all work is saved, the agent is not disturbed, and nothing is lost."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mngr.api import Mngr
from mngr.ops.keep import rewind
from mngr.plugins.registry import load_registry
from mngr.settings.layers import Config
from tests.support.cli import Cli
from tests.support.properties import examples

pytestmark = pytest.mark.dear

Tree = dict[str, tuple[str, bytes]]


def tree(folder: Path) -> Tree:
    """Every file but git's own: kind and content."""
    found: Tree = {}
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


def busy(cli: Cli, name: str = "foo", *args: str) -> Path:
    """An agent with committed, staged, changed, deleted, untracked and ignored files."""
    cli.write("gone", "soon\n")
    cli.write(".gitignore", "*.o\n/build/\n")
    cli.commit("more")
    cli.create(name, *args)
    work = cli.work_dir(name)
    (work / "committed").write_text("1")
    cli.commit("its own", cwd=work)
    (work / "staged").write_text("2")
    cli.git("add", "staged", cwd=work)
    (work / "README").write_text("changed\n")
    (work / "gone").unlink()
    (work / "un\ntracked $(x) é").write_text("3")
    (work / "run").write_text("#!/bin/sh\n")
    (work / "run").chmod(0o755)
    (work / "link").symlink_to("nowhere")
    (work / "a.o").write_text("object")
    (work / "build").mkdir()
    (work / "build/out").write_text("4")
    return work


def traces(work: Path) -> dict[str, tuple[int, int, int]]:
    """What a disturbance would change: inode, size and time of every file, the index included."""
    index = Path(
        subprocess.run(
            ["git", "rev-parse", "--path-format=absolute", "--git-path", "index"],
            cwd=work,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    )
    paths = [index, *(path for path in work.rglob("*") if ".git" not in path.parts)]
    facts = {str(path): path.lstat() for path in paths}
    return {name: (fact.st_ino, fact.st_size, fact.st_mtime_ns) for name, fact in facts.items()}


def test_taking_one_disturbs_nothing_and_says_what_it_leaves_out(mngr: Cli) -> None:
    work = busy(mngr)
    before = traces(work)
    status = mngr.git("--no-optional-locks", "status", "--porcelain", cwd=work)
    head = mngr.git("rev-parse", "HEAD", cwd=work)
    done = mngr("snapshot", "create", "foo", "--name", "early").ok()
    assert "without 2 ignored paths: a.o, build/" in done.out
    assert traces(work) == before
    assert mngr.git("--no-optional-locks", "status", "--porcelain", cwd=work) == status
    assert mngr.git("rev-parse", "HEAD", cwd=work) == head
    (row,) = mngr("snapshot", "list", "foo", "--format", "json").ok().json()["snapshots"]
    assert row["name"] == "early" and row["parent"] == head and row["branch"] == "mngr/foo"
    files = mngr.git("ls-tree", "-r", "--name-only", "-z", row["commit"], cwd=work).split("\0")
    held = {".gitignore", "README", "committed", "link", "run", "staged", "un\ntracked $(x) é", ""}
    assert set(files) == held
    assert mngr.git("show", f"{row['commit']}:README", cwd=work) == "changed"
    assert list(mngr.state_dir("foo").glob(".index*")) == []


def test_restoring_brings_back_every_file_and_keeps_what_would_be_lost(mngr: Cli) -> None:
    work = busy(mngr)
    then = tree(work)
    mngr("snapshot", "create", "foo").ok()
    (work / "README").write_text("later\n")
    (work / "run").unlink()
    (work / "link").unlink()
    (work / "link").mkdir()
    (work / "link/deeper").write_text("x")
    mngr.commit("later work", cwd=work)
    (work / "gone").write_text("back again")
    now, tip = tree(work), mngr.git("rev-parse", "HEAD", cwd=work)
    done = mngr("snapshot", "restore", "foo", "1").ok()
    assert "The current state was saved as foo/2." in done.err
    assert tree(work) == then
    assert mngr.git("rev-parse", "HEAD", cwd=work) == tip
    assert mngr.git("branch", "--show-current", cwd=work) == "mngr/foo"
    again = mngr("snapshot", "restore", "foo", "2").ok()
    assert "kept" not in again.err, "its state is snapshot 1 already"
    assert tree(work) == now
    assert "No file differs" in mngr("snapshot", "restore", "foo", "2").ok().out


def test_a_file_ignored_only_today_is_kept_before_it_is_overwritten(local: Cli) -> None:
    local.create("foo")
    work = local.work_dir("foo")
    (work / "a*b").write_text("then")
    local("snapshot", "create", "foo").ok()
    (work / "a*b").write_text("precious")
    (work / ".gitignore").write_text("a*\n")
    local("snapshot", "restore", "foo", "1").ok()
    assert (work / "a*b").read_text() == "then" and not (work / ".gitignore").exists()
    local("snapshot", "restore", "foo", "2").ok()
    assert (work / "a*b").read_text() == "precious"


def test_a_change_in_the_same_moment_as_the_index_is_seen(local: Cli) -> None:
    """git doubts an entry that is no older than the index; a copy must not look younger."""
    local.git("config", "core.trustctime", "false")
    local.create("foo")
    work = local.work_dir("foo")
    index = Path(local.git("rev-parse", "--path-format=absolute", "--git-path", "index", cwd=work))
    (work / "README").write_text("aaaaa\n")
    moment = (work / "README").stat().st_mtime_ns - 100 * 10**9
    os.utime(work / "README", ns=(moment, moment))
    local.git("add", "README", cwd=work)
    (work / "README").write_text("bbbbb\n")
    for path in (work / "README", index):
        os.utime(path, ns=(moment, moment))
    local("snapshot", "create", "foo").ok()
    (row,) = local("snapshot", "list", "--format", "json").ok().json()["snapshots"]
    assert local.git("show", f"{row['commit']}:README") == "bbbbb"


def test_stopped_agents_copies_and_agents_in_place_have_snapshots_too(mngr: Cli) -> None:
    for name, transfer in (("copied", "rsync"), ("placed", "none"), ("tree", "git-worktree")):
        mngr.create(name, "--transfer", transfer)
        mngr("stop", name).ok()
        work = mngr.work_dir(name)
        (work / "x").write_text(name)
        mngr("snapshot", "create", name).ok()
        (work / "x").write_text("other")
        mngr("snapshot", "restore", name, "1").ok()
        assert (work / "x").read_text() == name
        (work / "x").unlink()


def test_what_git_cannot_hold_is_an_error_and_never_half_a_snapshot(mngr: Cli) -> None:
    mngr.create("foo")
    work = mngr.work_dir("foo")
    (work / "kept").write_text("x")
    inner = work / "dir" / "inner"
    inner.mkdir(parents=True)
    mngr.git("init", "-q", cwd=inner)
    (inner / "file").write_text("y")
    mngr("snapshot", "create", "foo").fails(
        1, "dir/inner is a separate git repository", ".gitignore"
    )
    mngr.commit("inside", cwd=inner)
    mngr("snapshot", "create", "foo").fails(1, "dir/inner is a separate git repository")
    mngr("snapshot", "create", "foo", "--dry-run").fails(1, "dir/inner")
    assert mngr("snapshot", "list").ok().out == "No snapshots found\n"
    (work / ".gitignore").write_text("inner\n")
    assert "1 ignored path: dir/." in mngr("snapshot", "create", "foo").ok().out
    assert list(mngr.state_dir("foo").glob(".index*")) == []


def test_a_submodule_is_kept_as_its_commit_if_nothing_more_is_in_it(local: Cli) -> None:
    other = local.base / "other"
    other.mkdir()
    local.git("init", "-q", cwd=other)
    (other / "lib").write_text("1")
    local.commit("lib", cwd=other)
    allow = ("-c", "protocol.file.allow=always")
    local.git(*allow, "submodule", "add", "-q", str(other), "sub")
    local.commit("with a submodule")
    local.create("foo")
    work = local.work_dir("foo")
    local("snapshot", "create", "foo").ok()
    local.git(*allow, "submodule", "update", "--init", "-q", cwd=work)
    local("snapshot", "create", "foo").ok()
    (work / "sub" / "lib").write_text("2")
    local("snapshot", "create", "foo").fails(1, "submodule sub has uncommitted changes")


def test_a_directory_without_git_is_refused_with_the_reason(mngr: Cli) -> None:
    plain = mngr.base / "plain"
    plain.mkdir()
    mngr.create("foo", "--from", str(plain))
    mngr("snapshot", "create", "foo").fails(1, "has no git repository of its own")
    assert mngr("snapshot", "list", "foo").ok().out == "No snapshots found\n"
    inside = mngr.repo / "inside"
    inside.mkdir()
    mngr.create("part", "--from", str(inside), "--transfer", "none")
    mngr("snapshot", "create", "part").fails(1, "git repository of its own")


def test_an_agent_can_start_from_a_snapshot(mngr: Cli) -> None:
    work = busy(mngr)
    then, head = tree(work), mngr.git("rev-parse", "HEAD", cwd=work)
    mngr("snapshot", "create", "foo", "--name", "then").ok()
    (work / "README").write_text("later\n")
    mngr.commit("later", cwd=work)
    for number, source in enumerate(("foo/then", "foo/1")):
        mngr.create(f"bar{number}", "--from", source)
        made = mngr.work_dir(f"bar{number}")
        assert tree(made) == {k: v for k, v in then.items() if k not in ("a.o", "build/out")}
        assert mngr.git("rev-parse", "HEAD", cwd=made) == head
    mngr("create", "--from", "foo/thne", "--", "true").fails(4, "did you mean 'then'?")


def test_many_at_once_get_numbers_of_their_own(local: Cli) -> None:
    local.create("foo")
    with ThreadPoolExecutor(8) as pool:
        done = list(
            pool.map(lambda n: local("snapshot", "create", "foo", "--name", f"n{n}"), "abcdefgh")
        )
    assert [each.code for each in done] == [0] * 8
    rows = local("snapshot", "list", "foo", "--format", "json").ok().json()["snapshots"]
    assert sorted(row["number"] for row in rows) == list(range(1, 9))
    assert {row["name"] for row in rows} == {f"n{n}" for n in "abcdefgh"}


def test_listing_limits_and_formats(mngr: Cli) -> None:
    mngr.create("foo")
    mngr.create("bar")
    for name in ("foo", "bar", "foo"):
        mngr("snapshot", "create", name).ok()
    assert (
        mngr("snap", "list", "--limit", "1", "--format", "{agent}/{number}").ok().out == "foo/2\n"
    )
    assert len(mngr("snapshot", "list", "--format", "jsonl").ok().out.splitlines()) == 3
    assert mngr("snapshot", "list", "bar").ok().out.splitlines()[0].startswith("AGENT  NUMBER")
    several = mngr("snapshot", "create", "foo", "nosuch")
    assert several.code == 3 and "nosuch" in several.err
    assert mngr("snapshot", "create", "-", input="bar\n").ok().out.startswith("Snapshot bar/2")


def test_destroying_forgets_what_is_named_and_nothing_else(mngr: Cli) -> None:
    mngr.create("foo")
    for name in ("a", "b", "c"):
        mngr("snapshot", "create", "foo", "--name", name).ok()
    assert "Would destroy foo/a" in mngr("snapshot", "destroy", "foo", "1", "--dry-run").ok().out
    mngr("snapshot", "destroy", "foo", "a", "2").ok()
    left = mngr("snapshot", "list", "--format", "{name}").ok().out
    assert left == "c\n"
    some = mngr("snapshot", "destroy", "foo", "c", "zzz")
    assert some.code == 3 and "no snapshot 'zzz'" in some.err
    mngr("snapshot", "create", "foo").ok()
    mngr("snapshot", "destroy", "foo", "--all-snapshots").ok()
    assert mngr("snapshot", "list").ok().out == "No snapshots found\n"
    assert mngr.git("for-each-ref", "refs/mngr") == ""


def test_wrong_words_are_refused(local: Cli) -> None:
    local.create("foo")
    local("snapshot", "create", "foo", "--name", "early").ok()
    for words, code, told in [
        (["make", "foo"], 2, "unknown value 'make'"),
        (["create"], 2, "no agent given"),
        (["create", "fop"], 4, "did you mean 'foo'?"),
        (["create", "foo", "--name", "a b"], 2, "is not a snapshot name"),
        (["create", "foo", "--name", "7"], 2, "not a number"),
        (["create", "foo", "--name", "early"], 1, "already has a snapshot 'early'"),
        (["create", "foo", "--limit", "1"], 2, "--limit is an option of"),
        (["list", "--limit", "0"], 2, "above 0"),
        (["restore"], 2, "no agent given"),
        (["restore", "foo"], 2, "name the snapshot"),
        (["restore", "foo", "earli"], 4, "did you mean 'early'?"),
        (["restore", "foo", "9"], 4, "no snapshot '9'"),
        (["restore", "foo", "1", "2"], 2, "unexpected '2'"),
        (["destroy", "foo"], 2, "--all-snapshots"),
        (["destroy", "foo", "1", "--all-snapshots"], 2, "--all-snapshots"),
    ]:
        local("snapshot", *words).fails(code, told)
    assert len(local("snapshot", "list", "--format", "json").ok().json()["snapshots"]) == 1


def test_what_the_agent_writes_into_a_ref_of_ours_does_not_break_the_list(local: Cli) -> None:
    local.create("foo")
    agent = local.agent("foo")["id"]
    blob = local.git("hash-object", "-w", "README")
    local.git("update-ref", f"refs/mngr/snapshots/{agent}/5", blob)
    local.git("update-ref", f"refs/mngr/snapshots/{agent}/odd", "HEAD")
    local("snapshot", "create", "foo").ok()
    rows = local("snapshot", "list", "--format", "json").ok().json()["snapshots"]
    assert [row["agent"] for row in rows] == ["foo"]


NAMES = ("a", "b b", "c'c", "d\nd", "-e", "é", "dir/f", "dir/g", "$(h)", "*", ":(top)x", "dir")
files = st.dictionaries(
    st.sampled_from(NAMES),
    st.tuples(st.sampled_from(["file", "executable", "link"]), st.binary(max_size=30)),
    max_size=6,
)


def write(folder: Path, wanted: dict[str, tuple[str, bytes]]) -> None:
    """Make the folder hold exactly these; if two names conflict, the first one wins."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if ".git" not in path.relative_to(folder).parts:
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, (kind, content) in wanted.items():
        path = folder / name
        if (
            path.exists()
            or path.is_symlink()
            or (path.parent.exists() and not path.parent.is_dir())
        ):
            continue
        if path.parent.is_symlink():
            continue
        path.parent.mkdir(exist_ok=True)
        if kind == "link":
            path.symlink_to(os.fsdecode(content.replace(b"\0", b"") or b"x"))
        else:
            path.write_bytes(content)
            path.chmod(0o755 if kind == "executable" else 0o644)


@settings(examples(10), suppress_health_check=list(HealthCheck))
@given(files, files, files, st.booleans())
def test_any_tree_comes_back_exactly_and_so_does_the_one_it_replaced(
    first: Tree, second: Tree, third: Tree, commits: bool
) -> None:
    """Through the API, so that an example does not cost five interpreters."""
    with tempfile.TemporaryDirectory() as folder:
        cli = Cli(Path(folder) / "w")
        before = dict(os.environ)
        try:
            cli.create("foo", "--", "true")
            os.environ.clear()
            os.environ.update(cli.env)
            config = Config.load(str(cli.controller_home), str(cli.repo), cli.env, [])
            api = Mngr(config, load_registry(config))
            work = Path(api.get("foo").record.work_dir)
            write(work, first)
            if commits:
                cli.commit("one", cwd=work)
            write(work, second)
            then = tree(work)
            api.snapshot("foo", "then")
            write(work, third)
            now = tree(work)
            done = api.restore_snapshot("foo", "then")
            assert tree(work) == then
            if done.saved is not None:
                rewind.restore(api.get("foo"), done.saved)
                assert tree(work) == now
            else:
                head = cli.git("rev-parse", "HEAD^{tree}", cwd=work)
                assert done.files == 0 or head, "only what HEAD or a snapshot holds is not saved"
        finally:
            os.environ.clear()
            os.environ.update(before)
            cli.close()
