"""`mngr create` reports each mistake in one line and leaves nothing behind."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import Cli, Result


def names(cli: Cli) -> list[str]:
    return [agent["name"] for agent in cli("list", "--format", "json").ok().json()["agents"]]


def path_without(cli: Cli, *missing: str) -> str:
    """A PATH with everything on ours but some programs."""
    folder = cli.base / "-".join(("bin-without", *missing))
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(":")):
        for program in os.listdir(place) if os.path.isdir(place) else ():
            link = folder / program
            if program not in missing:
                link.unlink(missing_ok=True)
                link.symlink_to(os.path.join(place, program))
    return str(folder)


NOT_NAMES = [
    "a" * 64, "x" * 100_000, "a b", "$(touch x)", "a;b", "it's", '"', "a\nb", "🪁", "a/b", "..",
    "_a", "a.b",
]  # fmt: skip


def test_what_is_not_a_name_is_refused_with_the_rule(local: Cli) -> None:
    for name in NOT_NAMES:
        refused = local("create", name, "--", "true")
        refused.fails(2, "is not an agent name", "63 letters")
        assert len(refused.err) < 400
    local("create", "-x", "--", "true").fails(2, "unknown option '-x'")
    assert not (local.repo / "x").exists()
    assert not local.controller_home.exists()
    assert local.create("a" * 63).code == 0


WRONG: list[tuple[list[str], list[str]]] = [
    (["--lable", "a=b"], ["unknown option '--lable'", "'--label'"]),
    (["--label", "a"], ["--label", "KEY=VALUE"]),
    (["--label", "a b=c"], ["label key 'a b'"]),
    (["--label", "a=b\nc"], ["'a'", "one printable line"]),
    (["--env", "1A=b"], ["--env", "'1A' is not a variable name"]),
    (["--env", "A-B=b"], ["'A-B' is not a variable name"]),
    (["--env", "=b"], ["KEY=VALUE"]),
    (["--env", "MNGR_AGENT_NAME=x"], ["MNGR_AGENT_NAME", "set by mngr itself"]),
    (["--pass-env", "NOT-A-NAME"], ["'NOT-A-NAME' is not a variable name"]),
    (["--env-file", "/nowhere"], ["--env-file: /nowhere", "No such file"]),
    (["--env-file", "README"], ["README:1", "expected KEY=VALUE"]),
    (["-w", "agent=x"], ["'agent'"]),
    (["-w", "a b=x"], ["'a b' is not a window name"]),
    (["-w", "a="], ["no command"]),
    (["-w", "a"], ["KEY=VALUE"]),
    (["--transfer", "worktre"], ["'worktre'", "'worktree'"]),
    (["--from", "/nowhere"], ["--from", "'/nowhere' is not a directory"]),
    (["--from", "README"], ["'README' is not a directory"]),
    (["--branch", "no-such:x"], ["'no-such' is not a commit"]),
    (["--branch", ":a..b"], ["'a..b' is not a valid branch name"]),
    (["--transfer", "none", "--branch", ":x"], ["--branch requires --transfer git-worktree"]),
    (["--timeout", "soon"], ["--timeout", "bad duration 'soon'"]),
    (["--timeout", "0"], ["--timeout", "more than 0"]),
    (["--tmux-width", "0"], ["--tmux-width", "from 1 to"]),
    (["--tmux-height", "x"], ["--tmux-height", "from 1 to"]),
    (["--max-parallel", "0"], ["--max-parallel", "from 1 to"]),
    (["--upload-file", "x"], ["LOCAL:REMOTE"]),
    (["--upload-file", "/nowhere:x"], ["'/nowhere' is not a file"]),
    (["--provider", "modul"], ["unknown provider", "modul"]),
    (["--project", "a\nb"], ["--project"]),
    (["-m", ""], ["the message is empty"]),
    (["-m", "a\x03b"], ["\\x03", "position 1"]),
    (["-m", "x", "--message-file", "README"], ["cannot be used together"]),
    (["--message-file", "/nowhere"], ["/nowhere", "No such file"]),
    (["--batch", "-", "--foreground"], ["--batch and --foreground"]),
    (["third", "word", "too-many"], ["unexpected argument 'too-many'"]),
    ([""], ["the name is empty"]),
    (["foo:path"], ["takes no path", "--from"]),
    (["foo@.local"], ["cannot create hosts"]),
    (["foo@nowhere"], ["no host 'nowhere'"]),
    (["foo", "--provider", "ssh"], ["provider ssh has no host", "`providers.ssh.hosts`"]),
    (["foo@docker"], ["no host 'docker'", "write @.docker"]),
    (["foo@dev@box"], ["name the user in ~/.ssh/config"]),
]


def test_a_wrong_option_is_named_and_nothing_is_made(local: Cli) -> None:
    for words, told in WRONG:
        refused = local("create", *words, "--", "true")
        assert refused.code in (2, 4), words
        refused.fails(refused.code, *told)
        assert refused.out == ""
    assert names(local) == []
    assert local.git("branch", "--list", "mngr/*") == ""


def test_nothing_to_run_and_unknown_types(local: Cli) -> None:
    local("create", "foo", "command").fails(2, "nothing to run")
    local("create", "foo", "comand", "--", "x").fails(2, "'comand'", "did you mean 'command'?")
    local("create", "foo", "htop").fails(2, "unknown agent type 'htop'", "after `--`")
    assert names(local) == []


def test_a_taken_name_is_refused_and_the_agent_lives_on(mngr: Cli) -> None:
    mngr.create("foo")
    mngr("create", "foo", "--", "true").fails(1, "the name 'foo' is taken", "--reuse")
    assert names(mngr) == ["foo"]
    assert mngr.state("foo") == "RUNNING"


def test_sources_that_would_surprise_are_refused(local: Cli) -> None:
    local.write("README", "changed")
    local.write("new", "x")
    refused = local("create", "foo", "--", "true")
    refused.fails(1, "uncommitted changes", "README", "new", "--include-dirty")
    local.git("checkout", "-q", "README")
    (local.repo / "new").unlink()
    plain = local.base / "plain"
    plain.mkdir()
    in_plain = local("create", "foo", "--transfer", "worktree", "--", "true", cwd=plain)
    in_plain.fails(2, "is not in a git repository", "rsync")
    local.git("init", "-q", cwd=plain)
    local("create", "foo", "--", "true", cwd=plain).fails(2, "has no commits yet")
    local("create", "foo", "--", "true", cwd=local.user_home).fails(1, "too large to copy")
    local.git("branch", "mngr")
    local("create", "foo", "--", "true").fails(1, "a branch called 'mngr'", "--branch :mngr-foo")
    gone = local.base / "gone"
    gone.mkdir()
    script = f'cd {gone} && rmdir {gone} && exec "$@"'
    argv = ["sh", "-c", script, "sh", *local.argv("create", "foo", "--", "true")]
    done = subprocess.run(argv, env=local.env, capture_output=True, text=True, check=False)
    Result(argv, done.returncode, done.stdout, done.stderr).fails(2, "directory was removed")
    assert names(local) == []


def test_missing_programs_are_named_and_nothing_is_left_behind(local: Cli) -> None:
    without_tmux = {"PATH": path_without(local, "tmux")}
    local("create", "foo", "--", "true", env=without_tmux).fails(1, "tmux is not installed")
    assert names(local) == []
    assert "worktrees" not in local.git("worktree", "list")
    assert local.git("branch", "--list", "mngr/*") == ""
    without_git = {"PATH": path_without(local, "git")}
    local("create", "foo", "--", "true", env=without_git).fails(1, "git is not installed")
    assert names(local) == []
    local.create("foo")


def test_a_home_that_cannot_be_written_is_named(local: Cli) -> None:
    below_a_file = {"MNGR_HOST_DIR": str(local.repo / "README" / "home")}
    below = local("create", "foo", "--", "true", env=below_a_file)
    below.fails(1, "README/home", "Not a directory")
    in_proc = {"MNGR_HOST_DIR": "/proc/mngr"}
    local("create", "foo", "--", "true", env=in_proc).fails(1, "/proc/mngr")
    assert local.git("branch", "--list", "mngr/*") == ""


def small_disk(folder: Path) -> bool:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)]
    return subprocess.run(mount, capture_output=True, check=False).returncode == 0


def test_a_full_disk_is_one_line_and_nothing_is_left_running(local: Cli) -> None:
    folder = local.base / "small"
    local.write("big", os.urandom(400_000))
    local.commit("more than fits")
    if small_disk(folder):
        try:
            env = {"MNGR_HOST_DIR": str(folder / "home")}
            failed = local("create", "foo", "--", "sleep", "1000", env=env)
            failed.fails(1, "unable to write file big")
            (folder / "rest").write_bytes(b"x" * 150_000)  # leaves too little for a record
            with pytest.raises(OSError, match="No space left"):
                (folder / "more").write_bytes(b"x" * 200_000)
            full = local("create", "foo", "--", "sleep", "1000", env=env)
            full.fails(1, "No space left on device")
            assert not local.processes()
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)
    else:  # no right to mount: a limit on the size of files has the same effect on writers
        limited = local.start(
            *("create", "foo", "--", "sleep", "1000"),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
        )
        assert limited.wait(60) == 1
        assert limited.stderr is not None
        assert limited.stderr.read().startswith(b"mngr: ")
    shutil.rmtree(folder)
    assert local.git("branch", "--list", "mngr/*") == ""


def test_a_remote_that_git_cannot_read_is_reported_with_the_cause(local: Cli) -> None:
    ssh = {"GIT_SSH_COMMAND": "sh -c 'echo ssh: no host foo >&2; exit 255' ssh"}
    refused = local("create", "bar", "--from", "foo:s1", "--no-connect", "--", "true", env=ssh)
    refused.fails(1, "git cannot read foo:s1: ssh: no host foo", "AGENT/SNAPSHOT")
