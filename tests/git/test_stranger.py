"""An agent's repository is hostile: none of its programs run when mngr looks at it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.planted import MISSING, Planter, signed

pytestmark = pytest.mark.dear


def agent(cli: Cli, name: str, *args: str) -> Path:
    """An agent with commits, one of them signed, a submodule, and uncommitted files."""
    cli.create(name, *args)
    work = cli.work_dir(name)
    (work / "f").write_text("1\n")
    (work / ".gitattributes").write_text("*.txt diff=evil merge=evil\n")
    (work / "a.txt").write_text("a\n")
    cli.commit("its own", cwd=work)
    signed(cli, work)
    allow = ("-c", "protocol.file.allow=always")
    cli.git(*allow, "submodule", "add", "-q", str(cli.base / "inner"), "inner", cwd=work)
    cli.commit("with a submodule", cwd=work)
    (work / "f").write_text("2\n")
    (work / "new.txt").write_text("new\n")
    return work


def submodule(cli: Cli) -> None:
    cli.git("init", "-q", str(cli.base / "inner"), cwd=cli.base)
    (cli.base / "inner" / "s").write_text("s")
    cli.commit("inner", cwd=cli.base / "inner")


def common(cli: Cli, work: Path) -> Path:
    return Path(cli.git("rev-parse", "--path-format=absolute", "--git-common-dir", cwd=work))


def own(cli: Cli, work: Path) -> Path:
    return Path(cli.git("rev-parse", "--absolute-git-dir", cwd=work))


def looks(name: str) -> list[list[str]]:
    """Commands that only look."""
    return [
        ["list", "--fields", "name,ahead,behind,dirty"],
        ["diff", name],
        ["diff", name, "--stat"],
        ["diff", name, "--commits"],
        ["diff", name, "--uncommitted", "--format", "json"],
        ["merge", name, "--dry-run"],
        ["pull", name, "--branch", "x", "--dry-run"],
        ["snapshot", "list", name],
    ]


def acts(name: str, *, merge: bool) -> list[list[str]]:
    """Commands that change something, in an order in which all of them work."""
    return [
        ["snapshot", "create", name, "--name", "one"],
        ["pull", name, "--branch", f"from-{name}"],
        ["pull", name, "f", f"copied-{name}"],
        *([["merge", name]] if merge else []),
        ["push", name, "--rev", f"for-{name}"],
        ["snapshot", "restore", name, "one"],
        ["create", f"{name}-from", "--no-connect", "--from", name, "--", "true"],
        ["create", f"{name}-then", "--no-connect", "--from", f"{name}/one", "--", "true"],
        ["clone", name, f"{name}-clone", "--", "true"],
        ["snapshot", "destroy", name, "one"],
        ["wait", f"{name}-clone", "--timeout", "20s"],
        ["destroy", name, "--force"],
        ["restore", name],
        ["gc", "-S", "trash.keep=0s"],
        ["doctor"],
    ]


def looked(cli: Cli, *names: str) -> list[tuple[object, ...]]:
    """These columns of every agent."""
    rows = cli("list", "--fields", ",".join(names), "--format", "json").ok().json()["agents"]
    return [tuple(row[name] for name in names) for row in rows]


def following(cli: Cli, name: str, work: Path) -> None:
    """A commit of the user's that comes after the agent's, for `push`."""
    cli.git("fetch", "-q", str(work), f"HEAD:for-{name}")
    tree = cli.git("rev-parse", f"for-{name}^{{tree}}")
    after = cli.git("commit-tree", tree, "-p", f"for-{name}", "-m", "after")
    cli.git("update-ref", f"refs/heads/for-{name}", after)


def check(cli: Cli, planter: Planter, commands: list[list[str]]) -> None:
    ran = {}
    planter.ran()
    for words in commands:
        done = cli(*words)
        if found := planter.ran():
            ran[" ".join(words)] = found
        else:
            assert done.code == 0 or words[0] == "doctor", (done.argv, done.out, done.err)
    assert not ran


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_no_program_of_a_repository_runs(mngr: Cli, transfer: str) -> None:
    submodule(mngr)
    planter = Planter(mngr)
    work = agent(mngr, "foo", "--transfer", transfer)
    following(mngr, "foo", work)
    private, shared = own(mngr, work), common(mngr, work)
    inner = own(mngr, work / "inner")
    (work / "inner" / "s").write_text("changed")
    (private / "config.worktree").touch()
    mngr.git("config", "extensions.worktreeConfig", "true", cwd=work)
    planter.config(private / "config.worktree", "own")
    planter.config(inner / "config", "inner")
    planter.hooks(inner / "hooks")
    planter.hooks(shared / "hooks")
    planter.config(shared / "config", "shared")
    # A ref whose object is missing, so that a promisor remote would be asked for it.
    (shared / "refs" / "heads" / "missing").write_text(f"{MISSING}\n")
    check(mngr, planter, looks("foo"))
    if transfer == "git-worktree":
        (shared / "refs" / "heads" / "missing").unlink()  # no fetch can succeed with it
    (work / "inner" / "s").write_text("s")  # uncommitted work in a submodule bars a snapshot
    check(mngr, planter, acts("foo", merge=transfer == "git-mirror"))


def test_no_program_runs_when_an_agent_moves(tmp_path: Path) -> None:
    cli = Cli(tmp_path, provider="bare")
    cli.env["MNGR__COMMANDS__CREATE__PROVIDER"] = "local"
    try:
        submodule(cli)
        planter = Planter(cli)
        private = own(cli, agent(cli, "foo", "--transfer", "git-mirror"))
        planter.config(private / "config", "own")
        planter.hooks(private / "hooks")
        check(cli, planter, [["migrate", "foo", "bare"]])
    finally:
        cli.close()
        cli.home = cli.controller_home
        cli.close()


def test_it_is_planted_well(local: Cli) -> None:
    """What git runs by itself shows that the proof above could fail."""
    submodule(local)
    planter = Planter(local)
    work = agent(local, "foo")
    planter.config(own(local, work / "inner") / "config", "inner")
    planter.hooks(common(local, work) / "hooks")
    planter.config(common(local, work) / "config", "shared")
    planter.ran()
    local.git("status", cwd=work)
    local.git("log", "-3", cwd=work)
    local.git("update-ref", "refs/x", "HEAD", cwd=work)
    ran = " ".join(planter.ran())
    for name in ("shared-core.fsmonitor", "gpg.program", "reference-transaction", "inner-included"):
        assert name in ran


@pytest.mark.parametrize("place", ["info/attributes", ".gitattributes"])
def test_a_filter_of_the_repository_is_refused_by_name(local: Cli, place: str) -> None:
    planter = Planter(local)
    local.create("foo")
    work = local.work_dir("foo")
    shared = common(local, work)
    planter.config(shared / "config", "shared", filters=True)
    attributes = work / place if place == ".gitattributes" else shared / place
    attributes.write_text("*.txt filter=evil\n")
    (work / "a.txt").write_text("a\n")
    for words in (["diff", "foo"], ["snapshot", "create", "foo"], ["clone", "foo", "bar"]):
        local(*words).fails(1, "a.txt", "filter 'evil'", "filter.evil in your global")
    local("push", "foo").ok()  # there is nothing to bring
    local("destroy", "foo", "--headless").fails(1, "a.txt")
    (work / "README").write_text("HELLO\n")  # of the same size, so git has to read it
    attributes.write_text("README filter=evil\n")
    assert looked(local, "ahead", "dirty") == [(0, None)], "only a filter could tell"
    local("destroy", "foo", "--headless").fails(1, "README requires the filter 'evil'")
    local("destroy", "foo", "--force").ok()
    local("restore", "foo").ok()
    assert not planter.ran()


def test_filters_of_the_user_and_of_git_lfs_go_on_working(local: Cli) -> None:
    stub = local.base / "bin" / "git-lfs"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\ncat > /dev/null\necho pointer\n")
    stub.chmod(0o755)
    settings = local.base / "gitconfig"
    settings.write_text('[filter "loud"]\n\tclean = tr a-z A-Z\n')
    local.env |= {
        "PATH": f"{stub.parent}:{local.env['PATH']}",
        "GIT_CONFIG_GLOBAL": str(settings),
    }
    local.git("config", "filter.lfs.clean", "git-lfs clean -- %f")
    local.git("config", "filter.lfs.required", "true")
    # A filter that both define is the user's.
    local.git("config", "filter.loud.clean", "tr a-z x")
    local.create("foo")
    work = local.work_dir("foo")
    (work / ".gitattributes").write_text("*.loud filter=loud\n*.bin filter=lfs\n")
    (work / "a.loud").write_text("quiet\n")
    (work / "a.bin").write_text("content\n")
    (kept,) = local("snapshot", "create", "foo", "--format", "json").ok().json()["agents"]
    commit = kept["commit"]
    assert local.git("show", f"{commit}:a.loud") == "QUIET"
    assert local.git("show", f"{commit}:a.bin") == "pointer"


def test_a_replaced_repository_is_refused_and_the_other_one_left_alone(mngr: Cli) -> None:
    other = mngr.base / "other"
    mngr.git("clone", "-q", str(mngr.repo), str(other), cwd=mngr.base)
    refs = mngr.git("for-each-ref", cwd=other)
    mngr.create("foo")
    mngr.create("bar", "--transfer", "git-mirror")
    mngr.commit("to be pushed")
    for name in ("foo", "bar"):
        dot = mngr.work_dir(name) / ".git"
        dot.rename(dot.with_name("aside"))
        for linked in (False, True):
            if linked:
                dot.symlink_to(other / ".git")
            else:
                dot.write_text(f"gitdir: {other}/.git\n")
            for words in (["diff"], ["snapshot", "create"], ["push"], ["pull"]):
                mngr(*words, name).fails(1, ".git was replaced")
            dot.unlink()
    assert mngr.git("for-each-ref", cwd=other) == refs
    assert looked(mngr, "dirty") == [(None,), (None,)]


def test_looking_writes_no_object_and_leaves_nothing_behind(mngr: Cli) -> None:
    mngr.create("foo")
    work = mngr.work_dir("foo")
    (work / "large").write_bytes(b"x" * (1 << 20))
    before = mngr.git("count-objects", "-v", cwd=work)
    assert "large" in mngr("diff", "foo", "--stat").ok().out
    assert mngr.git("count-objects", "-v", cwd=work) == before
    for home in (mngr.home, mngr.controller_home):
        assert not list(home.glob(".put.*"))


def test_uncommitted_work_in_a_submodule_is_seen(mngr: Cli) -> None:
    submodule(mngr)
    mngr.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", "../inner", "inner")
    mngr.commit("with a submodule")
    for name, transfer in (("foo", "git-worktree"), ("bar", "git-mirror")):
        mngr.create(name, "--transfer", transfer)
        (mngr.work_dir(name) / "inner" / "new").write_text("new")
        mngr("destroy", name, "--headless").fails(1, "inner")
        mngr("snapshot", "create", name).fails(1, "the submodule inner has uncommitted changes")
    assert looked(mngr, "dirty") == [(1,), (1,)]


def test_how_files_are_compared_is_what_the_repository_says(local: Cli) -> None:
    """Line endings, what is ignored, sparse files and the hash are no programs: they count."""
    (local.base / "ignored").write_text("*.skip\n")
    repo = local.base / "modern"
    local.git("init", "-q", "--object-format=sha256", str(repo), cwd=local.base)
    for name in ("f", "left/out", "kept/in"):
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text("line\n")
    local.commit("files", cwd=repo)
    local.git("config", "core.autocrlf", "true", cwd=repo)
    local.git("config", "core.excludesFile", str(local.base / "ignored"), cwd=repo)
    local("create", "foo", "--no-connect", "--from", str(repo), "--", "sleep", "1000").ok()
    work = local.work_dir("foo")
    local.git("sparse-checkout", "set", "kept", cwd=work)
    (work / "f").write_bytes(b"line\r\n")
    (work / "x.skip").write_text("")
    assert not (work / "left").exists()
    assert looked(local, "dirty") == [(0,)]
    assert local("diff", "foo").ok().out == ""


def test_a_pipe_in_the_place_of_a_file_hangs_nothing(local: Cli) -> None:
    local.create("foo")
    index = own(local, local.work_dir("foo")) / "index"
    index.unlink()
    os.mkfifo(index)
    local("diff", "foo", timeout=20).fails(1, "not a regular file")
    local("list", "--fields", "dirty", timeout=20).ok()


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"])
def test_a_pipe_in_a_work_directory_hangs_nothing(local: Cli, name: str) -> None:
    local.create("foo")
    os.mkfifo(local.work_dir("foo") / name)
    local("diff", "foo", timeout=20).fails(1, f"{name} is not a regular file")
    local("list", "--fields", "dirty", timeout=20).ok()
    local("destroy", "foo", "--headless", timeout=20).fails(1, "cannot be checked")
    local("destroy", "foo", "--force", timeout=20).ok()


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_among_the_objects_hangs_nothing(local: Cli, transfer: str, linked: bool) -> None:
    local.create("foo", "--transfer", transfer)
    work = local.work_dir("foo")
    tip = local.commit("more", cwd=work)
    loose = local.git("rev-parse", "--path-format=absolute", "--git-path", "objects", cwd=work)
    path = Path(loose) / tip[:2] / tip[2:]
    path.unlink()
    pipe = local.base / "pipe" if linked else path
    os.mkfifo(pipe)
    if linked:
        path.symlink_to(pipe)
    for words in (["diff", "foo"], ["snapshot", "create", "foo"], ["merge", "foo", "--dry-run"]):
        local(*words, timeout=20).fails(1, f"{path} is not a regular file")
    local("list", "--fields", "dirty", timeout=20).ok()
    local("destroy", "foo", "--headless", timeout=20).fails(1, "cannot be checked")


@pytest.mark.parametrize("name", ["refs/heads/x", "objects/12/" + "3" * 38])
def test_a_pipe_in_a_repository_does_not_hold_up_a_pull(mngr: Cli, name: str) -> None:
    mngr.create("foo", "--transfer", "git-mirror")
    mngr.commit("more", cwd=mngr.work_dir("foo"))
    pipe = mngr.work_dir("foo") / ".git" / name
    pipe.parent.mkdir(exist_ok=True)
    os.mkfifo(pipe)
    mngr("pull", "foo", timeout=30).fails(1)


@pytest.mark.parametrize("name", ["refs", "logs", "objects"])
def test_a_link_in_a_repository_leads_to_no_other_one(mngr: Cli, name: str) -> None:
    mngr.create("foo", "--transfer", "git-mirror")
    part = mngr.work_dir("foo") / ".git" / name
    part.rename(part.with_name("aside"))
    part.symlink_to(mngr.repo / ".git" / name)
    before = mngr.git("for-each-ref")
    mngr("snapshot", "create", "foo").fails(1, f"{name} was replaced")
    assert mngr.git("for-each-ref") == before
