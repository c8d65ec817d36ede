"""An agent's repository is hostile: none of its programs run when mngr looks at it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.planted import MISSING, Planter, signed


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
