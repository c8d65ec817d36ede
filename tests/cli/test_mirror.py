"""git-mirror: clones that borrow from one mirror per repository and host."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli

pytestmark = pytest.mark.dear

MIRROR = ("--transfer", "git-mirror")
KINDS = ("local", "bare", "apart")


def cli_on(kind: str, base: Path) -> Cli:
    cli = Cli(base, provider="local" if kind == "local" else "bare")
    if kind == "apart":
        cli.env["MNGR__PLUGINS__MODULES"] = '["tests.support.apart"]'
    return cli


@pytest.fixture(params=KINDS)
def mngr(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cli]:
    cli = cli_on(request.param, tmp_path)
    yield cli
    cli.close()
    assert not cli.processes()


def mirrors(mngr: Cli) -> list[Path]:
    return sorted((mngr.home / "mirrors").glob("*.git"))


def test_a_clone_stands_on_its_branch_and_knows_only_the_mirror(mngr: Cli) -> None:
    mngr.git("tag", "-a", "v1", "-m", "one")
    mngr.create("foo", *MIRROR)
    work = mngr.work_dir("foo")
    (mirror,) = mirrors(mngr)
    assert mirror.name.startswith("repo-")
    assert (work / "README").read_text() == "hello\n"
    assert mngr.git("branch", "--show-current", cwd=work) == "mngr/foo"
    assert mngr.git("remote", "-v", cwd=work).splitlines()[0].split()[1] == str(mirror)
    assert mngr.git("describe", cwd=work) == "v1", "tags come along"
    assert mngr.git("status", "--porcelain", cwd=work) == ""
    head = mngr.git("rev-parse", "HEAD")
    pin = f"refs/mngr/base/{mngr.agent('foo')['id']}"
    assert mngr.git("rev-parse", pin, cwd=mirror) == head
    assert mngr.git("branch", "--list", "mngr/*") == "", "nothing is added to the source"
    objects = [path for path in (work / ".git/objects").rglob("*") if path.is_file()]
    assert [path.name for path in objects] == ["alternates"], "all objects are borrowed"


def test_commits_that_a_bare_source_has_are_not_at_risk(mngr: Cli) -> None:
    bare = mngr.base / "bare.git"
    mngr.git("clone", "-q", "--bare", str(mngr.repo), str(bare))
    mngr.create("foo", *MIRROR, "--from", str(bare))
    made = mngr.commit("only here", cwd=mngr.work_dir("foo"))
    mngr("destroy", "foo").fails(1, "only here", "--force")
    mngr("pull", "foo").ok()
    assert mngr.git("rev-parse", "mngr/foo", cwd=bare) == made
    mngr("destroy", "foo").ok()


def test_a_clone_may_be_on_the_branch_that_is_checked_out_here(mngr: Cli) -> None:
    mngr.create("foo", *MIRROR, "--branch", "main")
    work = mngr.work_dir("foo")
    assert mngr.git("branch", "--show-current", cwd=work) == "main"
    assert mngr.git("rev-parse", "HEAD", cwd=work) == mngr.git("rev-parse", "HEAD")


def test_twenty_at_once_cost_one_upload_and_a_new_commit_another(mngr: Cli) -> None:
    batch = "".join(f'{{"name":"a{n}","args":["sleep","1000"]}}\n' for n in range(20))
    trace = mngr.base / "trace"
    mngr(
        *("create", "--batch", "-", *MIRROR, "--max-parallel", "20"),
        input=batch,
        env={"GIT_TRACE": str(trace)},
        timeout=120,
    ).ok()
    assert len(mirrors(mngr)) == 1
    assert pushes(trace) == 1
    head = mngr.git("rev-parse", "HEAD")
    for n in range(20):
        assert mngr.git("rev-parse", "HEAD", cwd=mngr.home / work_of(mngr, f"a{n}")) == head
    mngr.commit("second")
    mngr("create", "later", "--no-connect", *MIRROR, "--", "true", env={"GIT_TRACE": str(trace)})
    assert pushes(trace) == 2


def work_of(mngr: Cli, name: str) -> Path:
    (found,) = (mngr.home / "worktrees").glob(f"{name}-????????")
    return found


def pushes(trace: Path) -> int:
    return sum("built-in: git push" in line for line in trace.read_text().splitlines())


def test_rewriting_and_pruning_the_mirror_breaks_no_borrower(mngr: Cli) -> None:
    mngr.write("big", "x" * 5000)
    mngr.commit("to be rewritten")
    batch = "".join(f'{{"name":"a{n}","args":["sleep","1000"]}}\n' for n in range(20))
    mngr("create", "--batch", "-", *MIRROR, input=batch, timeout=120).ok()
    (mirror,) = mirrors(mngr)
    mngr.git("reset", "-q", "--hard", "HEAD~")
    mngr.commit("rewritten")
    mngr.git("push", "-q", "--mirror", "--force", str(mirror))
    mngr.git("gc", "--prune=now", cwd=mirror)
    for program in ("prune", "repack"):  # even what refuses to
        words = {"prune": ["--expire=now"], "repack": ["-a", "-d"]}[program]
        subprocess.run(["git", program, *words], cwd=mirror, env=mngr.env, capture_output=True)
    for n in range(20):
        work = work_of(mngr, f"a{n}")
        mngr.git("fsck", "--connectivity-only", cwd=work)
        assert mngr.git("log", "-1", "--format=%s", cwd=work) == "to be rewritten"
        (work / "mine").write_text(str(n))
        mngr.commit("mine", cwd=work)
        mngr.git("gc", "--prune=now", "-q", cwd=work)
    mngr("pull", "a7").ok()
    assert mngr.git("show", "mngr/a7:mine") == "7"


def test_uncommitted_work_is_carried_with_its_index(mngr: Cli) -> None:
    for name in ("staged", "both", "gone", "unstaged", "dir/x", "kind"):
        mngr.write(name, f"{name}\n")
    mngr.commit("base")
    mngr.create("refused", "--dry-run", *MIRROR)
    mngr.write("staged", "1\n")
    mngr.write("both", "1\n")
    mngr.write("added", b"\0\xff")
    mngr.git("add", "staged", "both", "added")
    mngr.write("both", "2\r\n")
    mngr.write("unstaged", "2\n").chmod(0o755)
    (mngr.repo / "gone").unlink()
    mngr.git("rm", "-qr", "dir")
    (mngr.repo / "dir").symlink_to("nowhere")
    (mngr.repo / "kind").unlink()
    mngr.write("kind/inside", "now a directory\n")
    mngr.write("-odd name\n", "untracked\n")
    mngr("create", "no", "--no-connect", *MIRROR, "--", "true").fails(1, "uncommitted changes")
    mngr.create("foo", *MIRROR, "--include-dirty")
    work = mngr.work_dir("foo")
    assert status(mngr, work) == status(mngr, mngr.repo)
    assert mngr.git("diff", "--cached", "--binary", cwd=work) == mngr.git(
        "diff", "--cached", "--binary"
    )
    assert (work / "both").read_bytes() == b"2\r\n"
    assert os.readlink(work / "dir") == "nowhere"
    assert os.access(work / "unstaged", os.X_OK)


def status(mngr: Cli, where: Path) -> str:
    return mngr.git("status", "--porcelain", "-z", "--untracked-files=all", cwd=where)


def test_exclude_identity_and_hooks_are_as_in_the_source(mngr: Cli) -> None:
    (mngr.repo / ".git/info/exclude").write_text("*.log\n")
    mngr.git("config", "core.autocrlf", "input")
    for hook in ("pre-push", "post-checkout", "reference-transaction"):
        path = mngr.repo / ".git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\nexit 1\n")
        path.chmod(0o755)
    mngr.create("foo", *MIRROR)
    work = mngr.work_dir("foo")
    (work / "x.log").write_text("")
    assert status(mngr, work) == ""
    assert mngr.git("config", "--local", "core.autocrlf", cwd=work) == "input"
    assert mngr.git("config", "--local", "user.email", cwd=work) == "tester@example.com"


def with_submodules(mngr: Cli) -> None:
    """One that is checked out, and one that is not."""
    for name in ("lib", "other"):
        mngr.git("init", "-q", str(mngr.base / name), cwd=mngr.base)
        (mngr.base / name / "f").write_text(name)
        mngr.commit(name, cwd=mngr.base / name)
        allow = ["-c", "protocol.file.allow=always"]
        mngr.git(*allow, "submodule", "add", "-q", str(mngr.base / name), f"sub/{name}")
    mngr.commit("submodules")
    mngr.git("submodule", "deinit", "-q", "-f", "sub/other")


def test_submodules_come_along_and_what_is_missing_is_told(mngr: Cli) -> None:
    with_submodules(mngr)
    made = mngr.create("foo", *MIRROR)
    assert "sub/other is not initialised" in made.err
    work = mngr.work_dir("foo")
    assert (work / "sub/lib/f").read_text() == "lib"
    assert status(mngr, work) == ""
    listed = mngr.git("submodule", "status", cwd=work).splitlines()
    assert [line.lstrip()[0] == "-" for line in listed] == [False, True]
    assert "Would destroy" in mngr("destroy", "foo", "--dry-run").ok().out
    (work / "sub/lib/f").write_text("changed")
    mngr.commit("deep inside", cwd=work / "sub/lib")
    mngr("destroy", "foo").fails(1, "(1 modified file: sub/lib)", "deep inside")
    mngr.commit("outside", cwd=work)
    mngr("pull", "foo").ok()
    mngr("destroy", "foo", "--headless").fails(1, "sub/lib", "deep inside")


def test_submodules_come_along_into_a_worktree_and_through_the_trash(local: Cli) -> None:
    with_submodules(local)
    assert "sub/other is not initialised" in local.create("foo").err
    work = local.work_dir("foo")
    for _ in range(2):
        assert (work / "sub/lib/f").read_text() == "lib"
        assert status(local, work) == ""
        local("destroy", "foo").ok()
        local("restore", "foo").ok()
    local("destroy", "foo").ok()
    local("restore", "--purge", "foo", "--force").ok()
    assert not list((local.home / "trash").iterdir())


def test_changes_in_a_submodule_that_are_not_copied_are_named(mngr: Cli) -> None:
    with_submodules(mngr)
    note = "Note: the changes in the submodule sub/lib were not copied"
    (mngr.repo / "sub/lib/f").write_text("changed")
    mngr("create", "foo", "--no-connect", "--", "true").fails(1, "sub/lib", "--include-dirty")
    for name, mode in (("foo", "worktree"), ("bar", "mirror")):
        if mode == "mirror" or mngr.provider == "local":
            made = mngr.create(name, "--include-dirty", "--transfer", mode)
            assert note in made.err, made.err
    assert "Note: the changes" not in mngr("clone", "bar", "clean", "--no-connect").ok().err
    (mngr.work_dir("bar") / "sub/lib/f").write_text("changed")
    mngr.commit("inside", cwd=mngr.work_dir("bar") / "sub/lib")
    mngr("clone", "bar", "--no-connect").fails(1, "submodule sub/lib were not copied", "commit")
    assert note in mngr.create("baz", "--from", "bar").err


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_work_in_a_submodule_is_at_risk_and_never_lost_in_a_migration(
    tmp_path: Path, transfer: str
) -> None:
    cli = Cli(tmp_path, provider="bare")
    cli.env["MNGR__COMMANDS__CREATE__PROVIDER"] = "local"
    try:
        with_submodules(cli)
        cli.create("foo", "--transfer", transfer)
        work = cli.work_dir("foo")
        (work / "sub/lib/f").write_text("changed")
        cli.commit("deep inside", cwd=work / "sub/lib")
        cli.commit("outside", cwd=work)
        cli("migrate", "foo", "bare").fails(1, "does not copy", "sub/lib", "deep inside", "push")
        assert cli.state("foo") == "RUNNING"
        cli("pull", "foo").ok()
        cli("destroy", "foo").fails(1, "commits on no other branch", "sub/lib", "deep inside")
        cli.git("fetch", "-q", str(work / "sub/lib"), "HEAD:kept", cwd=cli.repo / "sub/lib")
        cli("migrate", "foo", "bare").ok()
        assert (cli.work_dir("foo") / "sub/lib/f").read_text() == "changed"
    finally:
        cli.close()
        cli.home = cli.controller_home
        cli.close()


def test_commits_on_another_branch_of_a_clone_are_not_lost_in_a_migration(tmp_path: Path) -> None:
    cli = Cli(tmp_path, provider="bare")
    cli.env["MNGR__COMMANDS__CREATE__PROVIDER"] = "local"
    try:
        cli.create("foo", *MIRROR)
        work = cli.work_dir("foo")
        cli.git("switch", "-q", "-c", "apart", cwd=work)
        cli.commit("elsewhere", cwd=work)
        cli.git("switch", "-q", "-", cwd=work)
        cli("migrate", "foo", "bare").fails(1, "does not copy", "elsewhere")
        cli.git("fetch", "-q", str(work), "apart:apart")
        cli("migrate", "foo", "bare").ok()
    finally:
        cli.close()
        cli.home = cli.controller_home
        cli.close()


def test_a_snapshot_is_not_work_at_risk(mngr: Cli) -> None:
    mngr.create("foo", *MIRROR)
    work = mngr.work_dir("foo")
    (work / "new").write_text("1")
    mngr("snapshot", "create", "foo").ok()
    mngr.commit("its own", cwd=work)
    mngr("pull", "foo").ok()
    mngr("destroy", "foo").ok()


def test_lfs_pointers_stay_pointers_and_nothing_fails(mngr: Cli) -> None:
    mngr.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    mngr.write("a.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    os.utime(mngr.repo / "a.bin", (1, 1))  # so that git need not read it again to know it
    mngr.commit("pointer")
    lfs = {
        "GIT_CONFIG_COUNT": "6",
        "GIT_CONFIG_KEY_3": "filter.lfs.smudge",
        "GIT_CONFIG_VALUE_3": "no-such-git-lfs smudge",
        "GIT_CONFIG_KEY_4": "filter.lfs.process",
        "GIT_CONFIG_VALUE_4": "no-such-git-lfs filter-process",
        "GIT_CONFIG_KEY_5": "filter.lfs.required",
        "GIT_CONFIG_VALUE_5": "true",
    }
    mngr("create", "foo", "--no-connect", *MIRROR, "--", "true", env=lfs).ok()
    assert (mngr.work_dir("foo") / "a.bin").read_text().startswith("version https://git-lfs")


def test_only_what_nobody_else_has_is_at_risk_and_destroy_can_be_undone(mngr: Cli) -> None:
    mngr.create("foo", *MIRROR)
    work = mngr.work_dir("foo")
    (work / "f").write_text("1")
    mngr.commit("precious", cwd=work)
    mngr("destroy", "foo", "--headless").fails(1, "precious")
    mngr("pull", "foo").ok()
    mngr("destroy", "foo", "--headless").ok()
    assert not work.exists()
    mngr("restore", "foo").ok()
    (work / "untracked").write_text("")
    mngr("destroy", "foo", "--headless").fails(1, "untracked")
    assert mngr.git("log", "-1", "--format=%s", cwd=work) == "precious"
    mngr("destroy", "foo", "--force").ok()
    (mirror,) = mirrors(mngr)
    assert "refs/mngr/base/" in mngr.git("for-each-ref", cwd=mirror)
    mngr("restore", "--purge", "--force", "foo").ok()
    assert "refs/mngr/base/" not in mngr.git("for-each-ref", cwd=mirror)


def explicit(mngr: Cli) -> None:
    """Let git use a bare repository, or a git directory, only if it is named as such."""
    mngr.env |= {
        "GIT_CONFIG_COUNT": "4",
        "GIT_CONFIG_KEY_3": "safe.bareRepository",
        "GIT_CONFIG_VALUE_3": "explicit",
    }


def test_a_purge_removes_the_refs_where_git_refuses_unnamed_bare_repositories(mngr: Cli) -> None:
    explicit(mngr)
    mngr.create("foo", *MIRROR)
    (mngr.work_dir("foo") / "f").write_text("1")
    mngr.commit("theirs", cwd=mngr.work_dir("foo"))
    mngr.create("bar", "--from", "foo", *MIRROR)
    assert mngr.git("for-each-ref", "refs/mngr/fetched") != ""
    mngr("destroy", "foo", "--force").ok()
    mngr("restore", "--purge", "foo", "--force").ok()
    assert mngr.git("for-each-ref", "refs/mngr/fetched") == ""


def test_commits_are_counted_in_a_bare_source_that_has_to_be_named(mngr: Cli) -> None:
    explicit(mngr)
    source = mngr.base / "source.git"
    mngr.git("clone", "-q", "--bare", str(mngr.repo), str(source))
    mngr.create("foo", "--from", str(source))
    mngr.commit("newer")
    mngr.git("push", "-q", str(source), "main")
    (row,) = mngr("list", "--fields", "behind", "--format", "json").ok().json()["agents"]
    assert row["behind"] == 1


def test_an_existing_branch_and_a_chosen_one(mngr: Cli) -> None:
    mngr.git("branch", "mngr/foo")
    mngr.git("branch", "topic")
    assert "using mngr/foo-2" in mngr.create("foo", *MIRROR).err
    mngr.create("bar", *MIRROR, "--branch", "topic")
    assert mngr.git("branch", "--show-current", cwd=mngr.work_dir("bar")) == "topic"
    mngr("create", "no", "--no-connect", *MIRROR, "--branch", ":topic", "--", "true").fails(
        1, "'topic' already exists"
    )
    mngr("create", "no", *MIRROR, "--branch", "nope:x", "--", "true").fails(2, "nope")


def test_a_url_gives_a_clone_at_its_default_branch(mngr: Cli) -> None:
    bare = mngr.base / "origin.git"
    mngr.git("clone", "-q", "--bare", str(mngr.repo), str(bare))
    for number, source in enumerate((f"file://{bare}", str(bare))):
        mngr.create(f"a{number}", "--from", source)
        work = mngr.work_dir(f"a{number}")
        assert mngr.git("rev-parse", "HEAD", cwd=work) == mngr.git("rev-parse", "HEAD")
        (work / "new").write_text(str(number))
        tip = mngr.commit("new", cwd=work)
        mngr("pull", f"a{number}").ok()
        where = bare if number else mngr.repo
        assert mngr.git("rev-parse", f"mngr/a{number}", cwd=where) == tip
    assert mngr.agent("a0")["project"] == "origin"
    mngr("pull", "a0", cwd=mngr.base).fails(2, "in a clone of it")
    later = mngr.commit("later")
    mngr.git("push", "-q", str(bare), "main")
    mngr.create("b", "--from", f"file://{bare}")
    assert mngr.git("rev-parse", "HEAD", cwd=mngr.work_dir("b")) == later
    mngr("create", "no", "--from", f"file://{mngr.base}/none.git", "--", "true").fails(
        1, "none.git"
    )
    mngr("create", "no", "--from", "ext::sh -c touch% x", "--", "true").fails(1, "not allowed")


def test_the_password_of_a_url_is_written_nowhere(mngr: Cli) -> None:
    mngr.git("clone", "-q", "--bare", str(mngr.repo), str(mngr.base / "origin.git"))
    mngr.env |= {
        "GIT_CONFIG_COUNT": "4",
        "GIT_CONFIG_KEY_3": f"url.file://{mngr.base}/.insteadOf",
        "GIT_CONFIG_VALUE_3": "https://me:hunter2@nowhere.invalid/",
    }
    url = "https://me:hunter2@nowhere.invalid"
    mngr.create("foo", "--from", f"{url}/origin.git")
    done = mngr("create", "bar", "--from", f"{url}/none.git", "--", "true").fails(1, "none.git")
    assert "hunter2" not in done.err
    mngr.git("commit", "-q", "--allow-empty", "-m", "new", cwd=mngr.work_dir("foo"))
    mngr("pull", "foo").ok()
    files = [path for path in mngr.base.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in files if b"hunter2" in path.read_bytes()]


def test_another_agent_is_a_source_with_its_uncommitted_work(mngr: Cli) -> None:
    for name, mode in (("tree", ()), ("clone", MIRROR)):
        mngr.create(name, *mode)
        work = mngr.work_dir(name)
        (work / "f").write_text("committed")
        mngr.commit("by the first", cwd=work)
        (work / "f").write_text("changed")
        (work / "staged").write_text("staged")
        mngr.git("add", "staged", cwd=work)
        for second, mode2 in ((f"{name}2", ()), (f"{name}3", MIRROR)):
            mngr.create(second, "--from", name, *mode2)
            copy = mngr.work_dir(second)
            assert mngr.git("rev-parse", "HEAD", cwd=copy) == mngr.git(
                "rev-parse", "HEAD", cwd=work
            )
            assert status(mngr, copy) == status(mngr, work) != ""
            assert mngr.agent(second)["initial_branch"] == f"mngr/{second}"
            mngr.commit("second", cwd=copy)
            mngr("pull", second).ok()
            assert mngr.git("show", f"mngr/{second}:f") == "changed"
    mngr("create", "no", "--from", "nosuch", "--", "true").fails(2, "nosuch", "not a directory")


def test_a_snapshot_is_a_source_too(mngr: Cli) -> None:
    mngr.create("first", *MIRROR)
    work = mngr.work_dir("first")
    (work / "README").write_text("changed")
    (work / "new").write_text("new")
    mngr("snapshot", "create", "first", "--name", "early").ok()
    (work / "new").unlink()
    mngr.create("second", "--from", "first/early", *MIRROR)
    copy = mngr.work_dir("second")
    assert (copy / "new").read_text() == "new" and (copy / "README").read_text() == "changed"
    assert mngr.git("rev-parse", "HEAD", cwd=copy) == mngr.git("rev-parse", "HEAD")
    assert status(mngr, copy) == " M README\0?? new\0".strip()


def test_a_plain_directory_is_copied_there(mngr: Cli) -> None:
    folder = mngr.base / "plain dir"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/x").write_text("x")
    (folder / "sub/x").chmod(0o755)
    (folder / "link").symlink_to("sub/x")
    (folder / "empty").mkdir()
    mngr("create", "foo", "--no-connect", "--from", str(folder), "--", "true").ok()
    work = mngr.work_dir("foo")
    assert os.access(work / "sub/x", os.X_OK) and os.readlink(work / "link") == "sub/x"
    assert (work / "empty").is_dir()
    mngr("create", "bar", "--no-connect", "--from", "foo", "--", "true").ok()
    assert (mngr.work_dir("bar") / "sub/x").read_text() == "x"


def test_a_host_with_another_disk_gets_a_clone_by_default(tmp_path: Path) -> None:
    cli = cli_on("apart", tmp_path)
    try:
        cli.create("foo")
        assert (cli.work_dir("foo") / ".git").is_dir()
        cli("create", "no", "--transfer", "worktree", "--", "true").fails(2, "git-mirror")
        cli("create", "no", "--transfer", "none", "--", "true").fails(2, "not on bare")
    finally:
        cli.close()


def test_a_large_copy_says_how_far_it_is_on_a_terminal_only(tmp_path: Path) -> None:
    for kind in ("local", "apart"):
        cli = cli_on(kind, tmp_path / kind)
        folder = tmp_path / kind / "plain"
        folder.mkdir()
        for n in range(300):
            (folder / f"{n}").write_text("")
        words = ["--no-connect", "--from", str(folder), "--", "true"]
        try:
            assert "copied" not in cli("create", "quiet", *words).ok().err
            leader, follower = pty.openpty()
            made = cli.start("create", "seen", *words, stdout=subprocess.DEVNULL, stderr=follower)
            os.close(follower)
            shown = b""
            while piece := read(leader):
                shown += piece
            os.close(leader)
            assert made.wait(30) == 0
            assert b" files copied" in shown and b"next    mngr " in shown
            assert len(list(cli.work_dir("seen").iterdir())) == 300
        finally:
            cli.close()


def read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the other end is closed
        return b""


def test_a_copy_of_a_linked_worktree_is_refused(local: Cli) -> None:
    local.create("foo")
    local("create", "no", "--from", "foo", "--transfer", "rsync", "--", "true").fails(
        2, "would share its HEAD"
    )


def test_other_hashes_and_shallow_sources_work(local: Cli) -> None:
    other = local.base / "sha256"
    local.git("init", "-q", "--object-format=sha256", str(other))
    (other / "f").write_text("f")
    local.commit("one", cwd=other)
    shallow = local.base / "shallow"
    local.commit("two")
    local.git("clone", "-q", "--depth=1", f"file://{local.repo}", str(shallow))
    for name, source in (("a", other), ("b", shallow)):
        local.create(name, *MIRROR, "--from", str(source))
        work = local.work_dir(name)
        (work / "new").write_text("new")
        tip = local.commit("new", cwd=work)
        local("pull", name).ok()
        assert local.git("rev-parse", f"mngr/{name}", cwd=source) == tip
