"""The effects of `mngr create`; test_create_wrong_input.py has what it refuses."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mngr.api import CreateRequest, Mngr, State
from mngr.plugins.registry import load_registry
from mngr.settings.layers import Config
from tests.support.cli import Cli, first_line, until
from tests.support.screen import Screen

HOSTILE = {
    "SUBSTITUTION": "$(touch pwned) `touch pwned` ${HOME}",
    "SEMICOLON": "a;b && c | d > e",
    "QUOTES": "it's \"quoted\" '' \\' \\\\",
    "NEWLINES": "one\ntwo\n\n",
    "EMOJI": "🪁 ü 漢字",
    "DASH": "--help",
    "EMPTY": "",
    "BYTES": b"\xff\xfe\x80 raw".decode("utf-8", "surrogateescape"),
    "TMUX_WORDS": "#{pane_id} %1 ~ ;",
}


BASICS = "/usr/bin:/bin"


def environment_in(path: Path) -> dict[str, str]:
    until(path.exists, what=str(path))
    pairs = path.read_bytes().decode("utf-8", "surrogateescape").split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


def test_an_agent_runs_in_a_worktree_on_a_branch_of_its_own(mngr: Cli) -> None:
    done = mngr("create", "foo", "--format", "json", "--", "sleep", "1000").ok()
    agent = mngr.agent("foo")
    assert done.json() == {
        "id": agent["id"],
        "name": "foo",
        "agent_id": agent["id"],
        "agent_name": "foo",
        "host_id": agent["host"]["id"],
        "host_name": agent["host"]["name"],
        "state": "RUNNING",
    }
    assert done.err == ""
    work = Path(agent["work_dir"])
    said = mngr("create", "bar", "--", "sleep", "1000").ok()
    assert said.out == "Created bar; it is RUNNING.\n"
    assert said.err.splitlines() == [
        "branch  mngr/bar",
        f"path    {mngr.work_dir('bar')}",
        "next    mngr connect bar",
    ]
    assert mngr("destroy", "bar", "-q").ok().out.startswith("agent-")
    assert mngr.git("branch", "--show-current", cwd=work) == "mngr/foo"
    assert mngr.git("rev-parse", "HEAD", cwd=work) == mngr.git("rev-parse", "HEAD")
    assert work.parent == mngr.home / "worktrees"
    assert mngr.tmux("list-sessions", "-F", "#S").split() == [agent["id"]]
    assert mngr.git("status", "--short") == ""


def test_how_a_fast_command_ends_is_not_a_failure_of_create(mngr: Cli) -> None:
    for code, state in ((0, "DONE"), (3, "FAILED")):
        name = f"end-{code}"
        done = mngr("create", name, "--", "sh", "-c", f"exit {code}").ok()
        assert done.out.startswith(f"Created {name}; it is ")
        until(lambda name=name, state=state: mngr.state(name) == state)  # type: ignore[misc]
        assert mngr.agent(name)["exit_code"] == code


def left(cli: Cli) -> tuple[str, list[str], list[str], str]:
    """Return the agents, the work directories, the trash, and the branches."""
    trash = [path.name for path in (cli.home / "trash").glob("*")]
    works = [path.name for path in (cli.home / "worktrees").glob("*")]
    return cli("list", "--ids").ok().out, works, trash, cli.git("branch", "--list", "mngr/*")


@pytest.mark.parametrize("program", ["no-such-program", "/no/such/program", "/etc/passwd", "exit"])
def test_a_missing_program_is_refused_before_anything_is_made(mngr: Cli, program: str) -> None:
    failed = mngr("create", "foo", "--format", "json", "--", program, "x")
    failed.fails(
        1, f"command not found: {program}", str(mngr.provider).replace("local", "localhost")
    )
    assert [*failed.json()] == ["errors"]
    assert left(mngr) == ("", [], [], "")
    mngr("create", "foo", "--foreground", "--", program).fails(127, "command not found")
    mngr.create("foo")


def test_a_missing_agent_program_comes_with_its_install_line(mngr: Cli) -> None:
    for name, package in (("codex", "@openai/codex"), ("opencode", "opencode-ai")):
        failed = mngr("create", "foo", name, env={"PATH": BASICS})
        failed.fails(
            1, f"{name} is not installed on", f"install it with `npm install --global {package}`"
        )
    assert left(mngr) == ("", [], [], "")


def test_a_program_is_looked_for_where_and_as_the_agent_would(mngr: Cli) -> None:
    tools = mngr.base / "tools"
    tools.mkdir()
    (tools / "mytool").write_text("#!/bin/sh\nexec sleep 1000\n")
    mngr("create", "foo", "--", "mytool").fails(1, "command not found: mytool")
    (tools / "mytool").chmod(0o755)
    path = f"PATH={tools}:{mngr.env['PATH']}"
    mngr("create", "foo", "--env", path, "--", "mytool").ok()
    mngr("create", "rel", "--env", f"PATH=bin:{mngr.env['PATH']}", "--", "nope").fails(
        1, "rel could not be launched: command not found: nope"
    )
    mngr.write("bin/nope", "#!/bin/sh\nexec sleep 1000\n").chmod(0o755)
    mngr.commit("a program")
    mngr.create("rel", "--env", f"PATH=bin:{mngr.env['PATH']}", "--", "nope")
    mngr.create("own", "--", "./bin/nope")
    bring = "cp bin/nope bin/brought"
    mngr.create("late", "--provision-command", bring, "--", "bin/brought")


def test_a_program_missing_from_the_work_directory_leaves_nothing_that_holds_the_name(
    mngr: Cli,
) -> None:
    failed = mngr("create", "foo", "--format", "json", "--", "./nope")
    failed.fails(1, "foo could not be launched: command not found: ./nope")
    agents, works, _, branches = left(mngr)
    assert (agents, works, branches, [*failed.json()]) == ("", [], "", ["errors"])
    assert mngr.tmux("list-sessions") == ""
    mngr.create("foo")
    assert mngr.agent("foo")["initial_branch"] == "mngr/foo"


@pytest.mark.dear
def test_in_a_subdirectory_the_agent_starts_there(mngr: Cli) -> None:
    sub = mngr.write("pkg/deep er/x", "x").parent
    mngr.commit("a package")
    (mngr.repo / "fresh").mkdir()
    script = ["sh", "-c", "pwd > here; exec sleep 1000"]
    where = ("create", "foo", "-w", "side=pwd > side; sleep 1000", "--", *script)
    mngr(*where, cwd=sub).ok()
    work = mngr.work_dir("foo")
    for name in ("here", "side"):
        file = work / "pkg" / "deep er" / name
        until(lambda file=file: file.exists() and file.read_text())  # type: ignore[misc]
        assert file.read_text().strip() == str(file.parent)
    assert mngr("exec", "foo", "pwd").ok().out.strip() == str(work)
    assert mngr("exec", "foo", 'echo "$MNGR_AGENT_WORK_DIR"').ok().out.strip() == str(work)
    for words in (["--branch", "HEAD~1:old"], ["--transfer", "mirror", "--branch", "HEAD~1:older"]):
        name = f"old-{len(words)}"
        done = mngr("create", name, *words, "--", "sleep", "1000", cwd=sub).ok()
        told = f"Note: pkg/deep er is not in the work directory: {name} starts at its top"
        assert told in done.err.splitlines()
    assert (
        "fresh is not in the work directory"
        in mngr("create", "new", "--", "sleep", "1000", cwd=mngr.repo / "fresh").ok().err
    )
    mngr("clone", "foo", "twin").ok()
    until((mngr.work_dir("twin") / "pkg/deep er/here").exists, what="a clone starts there too")
    mngr("stop", "foo").ok()
    (work / "pkg/deep er/here").unlink()
    mngr("start", "foo").ok()
    until((work / "pkg/deep er/here").exists, what="the same place after a start")


def test_the_environment_is_what_was_promised_and_nothing_else(mngr: Cli) -> None:
    mngr.env |= {"AWS_SECRET": "x", "SSH_AUTH_SOCK": "/tmp/x", "PASSED": "p", "LC_TIME": "C"}
    mngr.env |= {"TMUX": "/tmp/x,1,0"}
    file = mngr.base / "vars"
    file.write_bytes(
        b"# a comment\n\nexport A=1\nB='two words'  # why\n"
        b'C="say \\"hi\\""\n D = x y # z\nE=\xff\n'
    )
    flags = [word for key, value in HOSTILE.items() for word in ("--env", f"{key}={value}")]
    flags += ["--env-file", str(file), "--pass-env", "PASSED", "--env", "A=over"]
    flags += ["-w", "side=env -0 > side.env; sleep 1000"]
    mngr.create("foo", *flags, "--", "sh", "-c", "env -0 > .own && mv .own own.env; exec cat")
    agent, work = mngr.agent("foo"), mngr.work_dir("foo")
    until((work / "side.env").exists)
    found = environment_in(work / "own.env")
    assert {key: found[key] for key in HOSTILE} == HOSTILE
    given = {"A": "over", "B": "two words", "C": 'say "hi"', "D": "x y", "PASSED": "p"}
    assert {key: found[key] for key in given} == given
    assert os.fsencode(found["E"]) == b"\xff"
    own = {
        "MNGR_AGENT_NAME": "foo",
        "MNGR_AGENT_ID": agent["id"],
        "MNGR_AGENT_STATE_DIR": str(mngr.state_dir("foo")),
        "MNGR_AGENT_WORK_DIR": str(work),
        "MNGR_HOST_DIR": str(mngr.home),
        "MNGR_GIT_BASE": mngr.git("rev-parse", "HEAD"),
    }
    assert {key: found[key] for key in own} == own
    basics = {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TERM", "TZ", "TMPDIR", "PWD"}
    basics |= {"COLORTERM"}
    allowed = basics | own.keys() | given.keys() | HOSTILE.keys() | {"E"}
    extra = {key for key in found if key not in allowed and not key.startswith("LC_")}
    assert extra <= {"SHLVL", "_"}  # if sh is bash
    assert found["HOME"] == str(mngr.user_home)
    assert not (work / "pwned").exists()
    until(lambda: environment_in(work / "side.env").get("A") == "over")
    side = environment_in(work / "side.env")
    assert {key: side[key] for key in HOSTILE} == HOSTILE
    assert "AWS_SECRET" not in side
    assert (mngr.state_dir("foo") / "env").stat().st_mode & 0o77 == 0


def test_a_clean_tree_has_no_changes_to_carry_to_another_base(local: Cli) -> None:
    first = local.git("rev-parse", "HEAD")
    local.git("checkout", "-q", "-b", "other")
    local.write("more", "more\n")
    local.commit("second")
    local.create("foo", "--no-ensure-clean", "--branch", "main:mngr/*")
    assert local.git("rev-parse", "HEAD", cwd=local.work_dir("foo")) == first
    local.write("notes", "mine\n")
    refused = local("create", "bar", "--no-ensure-clean", "--branch", "main:mngr/*", "--", "cat")
    refused.fails(2, "uncommitted changes require the current commit", "remove BASE")


def test_creating_takes_four_processes(local: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that read the repository in parallel, one for the worktree, and one for the launch."""
    started: list[str] = []
    for key, value in local.env.items():
        monkeypatch.setenv(key, value)
    config = Config.load(str(local.home), str(local.repo), local.env, [])
    mine = Mngr(config, load_registry(config))

    def watch(event: str, args: tuple[object, ...]) -> None:
        if event == "os.posix_spawn":
            started.append(str(args[0]))

    sys.addaudithook(watch)
    request = CreateRequest(address="foo", args=("sleep", "1000"), source=str(local.repo))
    made = mine.create(request)
    assert started == ["git", "git", "sh", "sh"]
    assert made.agent.state is State.RUNNING


def test_a_sparse_checkout_is_as_sparse_for_the_agent(local: Cli) -> None:
    for folder in ("wanted", "other"):
        (local.repo / folder).mkdir()
        (local.repo / folder / "file").write_text("text\n")
    local.git("add", "-A")
    local.git("commit", "-qm", "folders")
    local.git("sparse-checkout", "set", "wanted")
    local.create("foo")
    work = local.work_dir("foo")
    assert (work / "wanted" / "file").exists() and not (work / "other").exists()


def test_arguments_reach_the_program_byte_for_byte(mngr: Cli) -> None:
    words = [*HOSTILE.values(), "-", "--", "*", "~", "!!"]
    mngr.create("foo", "--", "sh", "-c", 'printf "%s\\0" "$@" > .out; mv .out out', "sh", *words)
    until((mngr.work_dir("foo") / "out").exists)
    found = (mngr.work_dir("foo") / "out").read_bytes().split(b"\0")[:-1]
    assert found == [os.fsencode(word) for word in words]
    assert mngr.agent("foo")["argv"][4:] == words


def test_nothing_of_the_user_is_touched(local: Cli) -> None:
    for name in (".profile", ".bashrc", ".tmux.conf", ".gitconfig"):
        (local.user_home / name).write_text("exit 1 # would break whatever reads it\n")
    (local.user_home / ".gitconfig").write_text("[user]\nname = me\n")

    def fingerprint() -> dict[str, str]:
        files = [path for path in local.user_home.rglob("*") if path.is_file()]
        return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}

    before, config = fingerprint(), (local.repo / ".git/config").read_bytes()
    sockets = local.base / "sockets"
    sockets.mkdir()
    local.env |= {"TMUX_TMPDIR": str(sockets)}
    local.create("foo")
    local("message", "foo", "-m", "hello").ok()
    assert fingerprint() == before
    assert (local.repo / ".git/config").read_bytes() == config
    assert list(sockets.iterdir()) == []


def test_an_agent_can_be_given_windows_files_and_preparations(mngr: Cli) -> None:
    upload = mngr.base / "tool"
    upload.write_bytes(b"#!/bin/sh\necho from the tool\n")
    upload.chmod(0o755)
    flags = ["--upload-file", f"{upload}:bin/tool", "--provision-command", "bin/tool > made"]
    flags += ["-w", "one=sleep 1000", "-w", "two=sleep 1001", "--label", "k=v=w", "--project", "p"]
    flags += ["--tmux-width", "91", "--tmux-height", "23"]
    mngr.create("foo", *flags)
    agent, work = mngr.agent("foo"), mngr.work_dir("foo")
    assert (work / "made").read_text() == "from the tool\n"
    assert os.access(work / "bin/tool", os.X_OK)
    windows = mngr.tmux("list-windows", "-t", agent["id"], "-F", "#W #{window_width}")
    assert windows.splitlines() == ["agent 91", "one 91", "two 91"]
    assert (agent["labels"], agent["project"]) == ({"project": "p", "k": "v=w"}, "p")
    failing = mngr("create", "bar", "--provision-command", "exit 4", "--", "true")
    failing.fails(1, "provisioning failed", "exit 4")
    assert [each["name"] for each in mngr("list", "--format", "json").json()["agents"]] == ["foo"]


def test_sources_other_than_a_clean_repository(mngr: Cli) -> None:
    plain = mngr.base / "plain dir"
    plain.mkdir()
    (plain / "f").write_text("x")
    mngr.create("copied", "--from", str(plain))
    copied = mngr.work_dir("copied")
    assert (copied / "f").read_text() == "x"
    assert copied != plain
    mngr.create("inplace", "--from", str(plain), "--transfer", "none")
    assert mngr.work_dir("inplace") == plain
    mngr.write("README", "changed\n")
    mngr.write("néw file", "new\n")
    mngr.create("dirty", "--include-dirty")
    assert (mngr.work_dir("dirty") / "README").read_text() == "changed\n"
    assert (mngr.work_dir("dirty") / "néw file").read_text() == "new\n"
    mngr.create("dirtier", "--no-ensure-clean", "--transfer", "worktree")
    assert (mngr.work_dir("dirtier") / "README").read_text() == "changed\n"


def test_uncommitted_files_that_cannot_be_read_fail_the_create(local: Cli) -> None:
    local.write("new", "new\n")
    stub = local.base / "bin" / "tar"
    stub.parent.mkdir()
    stub.write_text(
        '#!/bin/sh\ncase $1 in -cf) cat > /dev/null; echo "tar: new: Cannot open" >&2;'
        ' /bin/tar -cf - -T /dev/null; exit 2 ;; esac\nexec /bin/tar "$@"\n'
    )
    stub.chmod(0o755)
    path = {"PATH": f"{stub.parent}:{local.env['PATH']}"}
    failed = local("create", "foo", "--include-dirty", "--no-connect", "--", "true", env=path)
    failed.fails(1, "uncommitted changes could not be copied", "tar: new: Cannot open")
    assert "No agents" in local("list").out


def test_branches(local: Cli) -> None:
    local.git("branch", "mngr/foo")
    local.git("branch", "base")
    local.commit("second")
    done = local.create("foo")
    assert "Note: the branch mngr/foo already exists; using mngr/foo-2" in done.err
    assert local.agent("foo")["initial_branch"] == "mngr/foo-2"
    local.create("bar", "--branch", "base:work/*")
    bar = local.work_dir("bar")
    assert local.git("branch", "--show-current", cwd=bar) == "work/bar"
    assert local.git("rev-parse", "HEAD", cwd=bar) == local.git("rev-parse", "base")
    local.create("on-base", "--branch", "base")
    assert local.git("branch", "--show-current", cwd=local.work_dir("on-base")) == "base"
    taken = local("create", "baz", "--branch", ":work/bar", "--", "true")
    taken.fails(1, "the branch 'work/bar' already exists")


def test_reuse_starts_what_has_ended_and_leaves_alone_what_runs(mngr: Cli) -> None:
    mngr("create", "foo", "--reuse", "--", "sh", "-c", "echo x >> runs; exec cat").ok()
    runs = mngr.work_dir("foo") / "runs"
    until(lambda: runs.exists() and runs.read_text() == "x\n")
    same = ("--", "sh", "-c", "echo x >> runs; exec cat")
    again = mngr("create", "foo", "--reuse", "-m", "hello", *same).ok()
    assert "Reused foo; it is RUNNING" in again.out
    until(lambda: "hello" in mngr("capture", "foo").out)
    mngr("stop", "foo").ok()
    mngr("create", "foo", "--reuse").ok()
    until(lambda: runs.read_text() == "x\nx\n")


@pytest.mark.dear
def test_reuse_refuses_an_agent_that_is_not_what_was_asked_for(mngr: Cli) -> None:
    other = mngr.base / "other"
    other.mkdir()
    mngr.create("foo", "--branch", ":mine", "--", "sleep", "1000")
    before = mngr("event", "foo").ok().out
    for words, told in {
        ("--", "something", "else"): "its command is `sleep 1000`",
        ("mechanic",): "its type is command",
        ("--transfer", "none"): "its transfer is git-worktree",
        ("--branch", ":theirs"): "its branch is mine",
        ("--from", str(other)): f"its source is {mngr.repo}",
    }.items():
        for dry in ([], ["--dry-run"]):
            refused = mngr("create", "foo", "--reuse", "-m", "x", *dry, *words)
            refused.fails(1, "foo already exists and differs in", told)
    same = ("--transfer", "worktree", "--branch", ":mine", "--from", str(mngr.repo))
    mngr("create", "foo", "--reuse", *same, "--", "sleep", "1000").ok()
    mngr("create", "foo", "--reuse", cwd=other).ok()
    assert mngr("event", "foo").ok().out == before


def test_the_first_message_is_delivered_after_the_start(mngr: Cli) -> None:
    reader = ["sh", "-c", "stty -echo; head -n 2 > .got; mv .got got; exec sleep 1000"]
    said = mngr("create", "foo", "-m", "one\ntwo", "--", *reader).ok()
    assert "Message " in said.err
    got = mngr.work_dir("foo") / "got"
    until(got.exists)
    assert got.read_text() == "one\ntwo\n"
    mngr("create", "bar", "--message-file", "-", "--", *reader, input="1\n2\n").ok()
    until((mngr.work_dir("bar") / "got").exists)
    late = mngr("create", "baz", "-m", "x", "--", "no-such-program")
    late.fails(1, "command not found")


def test_templates_stack_below_the_options_and_above_the_settings(local: Cli) -> None:
    local.controller_home.mkdir()
    (local.controller_home / "settings.toml").write_text(
        """
        [commands.create]
        project = "settings"
        [create_templates.base]
        project = "base"
        label = ["a=1", "b=1"]
        env = {X = "base"}
        [create_templates.top]
        label = {b = "2"}
        timeout = "1h"
        [create_templates.wrong]
        proiect = "x"
        [create_templates.loop]
        template = ["base"]
        """
    )
    local.create("none")
    assert local.agent("none")["project"] == "settings"
    local.create("both", "-t", "base", "-t", "top", "--label", "c=3", "--env", "X=flag")
    both = local.agent("both")
    assert both["project"] == "base"
    assert both["labels"] == {"project": "base", "a": "1", "b": "2", "c": "3"}
    assert "export X='flag'" in (local.state_dir("both") / "env").read_text()
    local.create("over", "-t", "base", "--project", "flag")
    assert local.agent("over")["project"] == "flag"
    local("create", "-t", "bas", "--", "true").fails(2, "unknown template 'bas'", "'base'")
    wrong = local("create", "-t", "wrong", "--", "true")
    wrong.fails(2, "create_templates.wrong", "'proiect'", "'project'")
    local("create", "-t", "loop", "--", "true").fails(2, "cannot name templates")


def test_types_can_be_derived_from_others_in_the_settings(local: Cli) -> None:
    local.controller_home.mkdir()
    (local.controller_home / "settings.toml").write_text(
        """
        [agent_types.printer]
        parent_type = "command"
        command = ["printf", "%s|"]
        cli_args = ["a b"]
        env = {FROM = "type", TOO = "type"}
        [agent_types.child]
        parent_type = "printer"
        cli_args = "c 'd e'"
        env = {TOO = "child"}
        [agent_types.round]
        parent_type = "about"
        [agent_types.about]
        parent_type = "round"
        [agent_types.orphan]
        parent_type = "comand"
        """
    )
    local("create", "foo", "child", "--env", "FROM=flag", "--no-connect", "--", "last").ok()
    assert local.agent("foo")["argv"] == ["printf", "%s|", "a b", "c", "d e", "last"]
    until(lambda: "a b|c|d e|last|" in local("capture", "foo").out)
    env = (local.state_dir("foo") / "env").read_text()
    assert "export FROM='flag'" in env
    assert "export TOO='child'" in env
    local("create", "--type", "printer", "--", "x").ok()
    local("create", "bar", "printr").fails(2, "unknown agent type 'printr'", "'printer'")
    local("create", "bar", "round").fails(2, "derived from itself")
    local("create", "bar", "orphan").fails(2, "'comand' (parent of 'orphan')", "'command'")
    local("create", "bar", "printer", "--type", "child").fails(2, "conflicts with --type")
    settings = {"MNGR__COMMANDS__CREATE__TYPE": "child"}
    chosen = local("create", "bar", "printer", "--dry-run", "--format", "json", env=settings).ok()
    assert chosen.json()["argv"] == ["printf", "%s|", "a b"]


def test_a_connect_command_runs_without_a_terminal_and_learns_what_to_do(mngr: Cli) -> None:
    seen = mngr.base / "seen"
    command = f'printf "%s\\n" "$MNGR_AGENT_NAME" "$MNGR_CONNECT_ARGV" > {seen}'
    mngr.env["MNGR__COMMANDS__CREATE__CONNECT_COMMAND"] = command
    mngr("create", "foo", "--", "cat").ok()
    name, argv = seen.read_text().splitlines()
    assert name == "foo"
    assert f"attach-session -t '={mngr.agent('foo')['id']}'" in argv
    seen.unlink()
    mngr("create", "bar", "--no-connect", "--", "cat").ok()
    assert not seen.exists()
    failed = mngr("create", "baz", "--connect-command", "exit 9", "--", "cat")
    failed.fails(1, "the connect command", "exit code 9")
    assert mngr.state("baz") == "RUNNING"


def test_foreground_passes_on_output_as_it_comes_and_the_exit_code(mngr: Cli) -> None:
    script = "printf out; printf err >&2; sleep 0.2; printf '\\377\\n'; exit 7"
    done = mngr("create", "foo", "--foreground", "--", "sh", "-c", script)
    assert (done.code, done.err) == (7, "err")
    assert os.fsencode(done.out) == b"out\xff\n"
    big = mngr("create", "--foreground", "--", "head", "-c", "3000000", "/dev/zero")
    assert (big.code, len(big.out)) == (0, 3_000_000)
    missing = mngr("create", "--foreground", "--", "no-such-program")
    missing.fails(127, "command not found: no-such-program")
    mngr("create", "--foreground", "--format", "json", "--", "true").fails(2, "--format")


def test_ctrl_c_stops_a_foreground_agent_and_keeps_its_work(mngr: Cli) -> None:
    words = ["sh", "-c", "echo work > file; echo ready; sleep 1000"]
    running = mngr.start("create", "foo", "--foreground", "--", *words)
    assert first_line(running) == b"ready\n"
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 130
    running.communicate()
    assert mngr.state("foo") == "STOPPED"
    assert (mngr.work_dir("foo") / "file").read_text() == "work\n"


def test_twenty_creates_at_once_in_one_repository_all_succeed(local: Cli) -> None:
    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda n: local("create", f"a{n}", "--", "cat"), range(20)))
    assert [result.err for result in found if result.code] == []
    agents = local("list", "--format", "json").json()["agents"]
    assert {agent["state"] for agent in agents} == {"RUNNING"}
    assert {agent["initial_branch"] for agent in agents} == {f"mngr/a{n}" for n in range(20)}
    assert len({agent["work_dir"] for agent in agents}) == 20


def test_a_dry_run_says_what_would_be_and_changes_nothing(mngr: Cli) -> None:
    mngr.create("foo")
    said = mngr("create", "bar", "--dry-run", "--", "make", "a b").ok()
    assert "Would create bar" in said.out
    assert "mngr/bar" in said.out
    assert "make 'a b'" in said.out
    row = mngr("create", "bar", "--dry-run", "--format", "json", "--", "true").ok().json()
    assert (row["agent_name"], row["branch"], row["argv"]) == ("bar", "mngr/bar", ["true"])
    mngr("create", "foo", "--dry-run", "--", "true").fails(1, "'foo' is taken")
    assert "Would reuse foo" in mngr("create", "foo", "--dry-run", "--reuse").ok().out
    assert "mngr/bar" not in mngr.git("branch", "--list", "mngr/*")
    assert len(mngr("list", "--format", "json").json()["agents"]) == 1


def test_time_limits_and_recordings(local: Cli) -> None:
    local.create("foo", "--timeout", "1s", "--record", "--", "sh", "-c", "echo hello; sleep 1000")
    until(lambda: local.state("foo") == "FAILED")
    agent = local.agent("foo")
    assert (agent["state_reason"], agent["exit_code"]) == ("timed out after 1 s", 124)
    header, *events = (local.state_dir("foo") / "record.cast").read_text().splitlines()
    assert json.loads(header)["version"] == 2
    assert "hello" in "".join(json.loads(event)[2] for event in events)


def test_a_first_message_to_a_program_that_has_ended_is_not_said_to_be_sent(local: Cli) -> None:
    done = local("create", "foo", "--no-connect", "-m", "hello", "--", "true")
    done.fails(1, "foo is DONE, but its message was not delivered", "`mngr capture foo`")
    assert done.out == "" and local.state("foo") == "DONE"


def test_on_a_terminal_it_attaches_and_the_message_may_be_written_meanwhile(local: Cli) -> None:
    editor = local.base / "editor"
    editor.write_text('#!/bin/sh\nprintf "from the editor\\n" > "$1"\n')
    editor.chmod(0o755)
    with Screen(local, {"EDITOR": f"{editor} "}) as screen:
        screen.mngr("create", "foo", "--edit-message", "--", "cat")
        screen.shows("[foo]", "from the editor\nfrom the editor")
        screen.keys("C-b", "d")
        screen.shows("[detached")
        screen.mngr("create", "bar", "--no-connect", "--", "cat")
        screen.shows("Created bar; it is RUNNING", "next    mngr connect bar")
        screen.mngr("create", "quick", "--", "no-such-program")
        screen.shows("command not found: no-such-program")
        screen.mngr("create", "foo", "--edit-message", "--", "cat")
        screen.shows("your message was not sent:\nfrom the editor", "the name 'foo' is taken")
        editor.write_text("#!/bin/sh\nexit 3\n")
        screen.mngr("create", "cancelled", "--edit-message", "--", "cat")
        screen.shows("exit code 3")
    local("create", "--edit-message", "--", "cat").fails(2, "requires a terminal")
