"""Hosts behind ssh: their keys, their silence, and what a person is told."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mngr.errors import Unreachable
from mngr.hosts.ssh import SshHost
from mngr.model.quoting import quote
from tests.support.cli import until
from tests.support.lab.machines import Machine
from tests.support.places import Boxes, ended, hang_up, reaching
from tests.support.screen import Screen

SIZES = """tmux -S /tmp/mngr-$(id -u)/[0-9a-f]* \
  list-clients -F '#{client_width}x#{client_height}'"""
MODES = "#{alternate_on} #{mouse_any_flag} #{keypad_cursor_flag}"
PROGRAMS = "/usr/local/bin"
QUICK = ("-S", "hosts.timeout=5s")


def test_an_unknown_key_is_refused_with_the_line_to_type(boxes: Boxes) -> None:
    known = boxes.cli.controller_home / "known_hosts"
    known.unlink()
    refused = boxes("create", "foo@box1", "--no-connect", "--", "sleep", "100")
    refused.fails(5, "the key of host box1 is not known yet", "mngr host trust box1")
    hint = boxes("host", "trust", "box1").fails(1, "ED25519", "SHA256:", "--fingerprint").err
    print_ = next(word for word in hint.split() if word.startswith("SHA256:"))
    boxes("host", "trust", "box1", "--fingerprint", "SHA256:x").fails(1, "not SHA256:x")
    assert not known.exists()
    trust = ("host", "trust", "box1", "--fingerprint")
    boxes(*trust, "SHA256:x", "--dry-run").fails(1, "not SHA256:x")
    for options in ((*trust, print_), ("host", "trust", "box1")):
        dry = boxes(*options, "--dry-run").ok().out
        assert dry == f"Host box1 shows the key {print_} (ED25519). It would be trusted.\n"
    assert not known.exists()
    boxes(*trust, print_).ok()
    boxes.cli.create("foo@box1")
    assert boxes.states() == {"foo": "RUNNING"}


def test_a_changed_key_is_refused_in_one_line(boxes: Boxes) -> None:
    known = boxes.cli.controller_home / "known_hosts"
    boxes.cli.create("foo@box1")
    hang_up(boxes.cli)
    theirs = known.read_text().splitlines()
    other = theirs[1].partition(" ")[2]
    known.write_text(f"{boxes.one.address} {other}\n{theirs[1]}\n")
    boxes("exec", "foo@box1", "true").fails(5, "box1")
    assert "a different key" in boxes("list").ok().err
    assert boxes.states() == {"foo": "UNREACHABLE"}
    boxes("host", "trust", "box1", "--force").fails(1, "--replace")
    boxes("host", "trust", "box1", "--force", "--replace").ok()
    assert boxes.states() == {"foo": "RUNNING"}
    assert theirs[1] in known.read_text()


def test_logs_paths_and_input_reach_another_machine(boxes: Boxes) -> None:
    boxes.cli.create("foo@box1", "--", "sh", "-c", "echo begin; read line; echo got $line")
    with boxes.cli.start("logs", "foo", "-f") as follower:
        assert follower.stdout and follower.stdout.readline() == b"begin\n"
        boxes("message", "foo", "-m", "hello").ok()
        out, _ = follower.communicate(timeout=60)
    assert out.endswith(b"got hello\n"), out
    assert boxes("logs", "foo", "-n", "1").ok().out == "got hello\n"
    done = boxes("path", "foo").ok()
    assert "on the host box1" in done.err
    given = boxes.cli("exec", "-i", "foo", "pwd; cat", input="over there\n").ok()
    assert given.out == f"{done.out}over there\n"
    assert "box1 (ssh)" in boxes("show", "foo").ok().out


def test_a_command_tries_a_host_that_cannot_be_reached_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "ssh"
    said = "ssh: connect to host box port 22: Connection timed out"
    ssh.write_text(f"#!/bin/sh\necho >> {tmp_path}/calls\necho {said} >&2\nexit 255\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    host = SshHost("box", str(tmp_path / "home"))
    for _ in range(3):
        with pytest.raises(Unreachable, match="Connection timed out") as caught:
            host.run(["true"], timeout=10)
        assert caught.value.hint == "test it with `ssh box`"
    assert (tmp_path / "calls").read_text() == "\n"


GREETING = "echo Welcome; echo 12345; printf 'a\\tb\\n'; echo Ciao >&2"


def test_a_user_s_settings_of_programs_change_nothing(boxes: Boxes) -> None:
    rc, cli = f"{boxes.one.home}/.bashrc", boxes.cli
    boxes.one.inside("sh", "-c", f"cp {rc} {rc}.kept; echo export TAR_OPTIONS=--verbose >> {rc}")
    try:
        cli.create("foo@box1")
        boxes("push", "foo", "README", "sent").ok()
        assert boxes("exec", "foo", "cat sent").ok().out == "hello\n"
        boxes.one.inside("sh", "-c", f"echo export TMPDIR=/nonexistent >> {rc}")
        boxes("exec", "foo", "echo > $MNGR_AGENT_STATE_DIR/transcript").ok()
        assert boxes.states() == {"foo": "RUNNING"}
        boxes.one.inside("sh", "-c", f"echo export GIT_CONFIG_PARAMETERS=broken >> {rc}")
        cli.commit("new")
        refused = boxes("create", "bar@box1", "--no-connect", "--", "true")
        refused.fails(1, "could not be sent to box1: ")
        assert "and the repository exists" not in refused.err
    finally:
        boxes.one.inside("mv", f"{rc}.kept", rc)


@pytest.fixture
def talkative(boxes: Boxes) -> Iterator[Boxes]:
    """The first machine's login shell greets whoever comes."""
    rc = f"{boxes.one.home}/.bashrc"
    boxes.one.inside("sh", "-c", f"cp {rc} {rc}.kept; printf %s {quote(GREETING)} >> {rc}")
    yield boxes
    boxes.one.inside("mv", f"{rc}.kept", rc)


def test_a_greeting_is_neither_commits_nor_files(talkative: Boxes) -> None:
    cli = talkative.cli
    cli.create("foo@box1")
    talkative("exec", "foo", "echo more > more.txt; git add .; git commit -qm more").ok()
    assert "1 commit" in talkative("pull", "foo").ok().out
    cli.write("new.txt", "new\n")
    talkative("push", "foo", "new.txt", "sent.txt").ok()
    talkative("pull", "foo", "sent.txt", "back.txt").ok()
    assert (cli.repo / "back.txt").read_text() == "new\n"
    cli.git("merge", "-q", "mngr/foo")
    cli.commit("mine")
    assert "1 commit" in talkative("push", "foo").ok().out
    cli.create("copy@box1", "--from", "foo", "--transfer", "copy")
    assert "sent.txt" in talkative("exec", "copy", "ls").ok().out


@contextmanager
def login_shell(machine: Machine, path: str) -> Iterator[None]:
    machine.inside("usermod", "-s", path, machine.user)
    try:
        yield
    finally:
        machine.inside("usermod", "-s", "/bin/bash", machine.user)


def test_agents_live_where_the_login_shell_is_csh(boxes: Boxes) -> None:
    shell = shutil.which("tcsh")
    if not shell:
        pytest.skip("tcsh is not installed")
    boxes.one.copy(shell, "/usr/local/bin/tcsh")
    with login_shell(boxes.one, "/usr/local/bin/tcsh"):
        boxes.cli.create("foo@box1")
        told = boxes(
            "exec", "foo", "printf '%s\n' 'a\\\\b!'; echo x > x; git add x; git commit -qm x"
        )
        assert told.ok().out == "a\\\\b!\n"
        assert "1 commit" in boxes("pull", "foo").ok().out
        hang_up(boxes.cli)
        assert boxes.states() == {"foo": "RUNNING"}


def test_a_login_shell_that_refuses_is_quoted(boxes: Boxes) -> None:
    with login_shell(boxes.one, "/usr/sbin/nologin"):
        refused = boxes("create", "foo@box1", "--no-connect", "--", "sleep", "100")
        refused.fails(5, "host box1", "account is currently not available")


def test_a_silent_host_delays_nobody_for_long(boxes: Boxes) -> None:
    boxes.cli.create("here")
    boxes.cli.create("foo@box1")
    boxes.cli.create("bar@box2")
    boxes.one.cut()
    began = time.monotonic()
    told = boxes("list", "--format", "json", *QUICK).ok()
    assert time.monotonic() - began < 30
    listed = {each["name"]: each for each in told.json()["agents"]}
    assert {name: each["state"] for name, each in listed.items()} == {
        "here": "RUNNING",
        "foo": "UNREACHABLE",
        "bar": "RUNNING",
    }
    assert "last known RUNNING" in listed["foo"]["state_reason"]
    assert "box1" in json.dumps(told.json()["errors"])
    refused = boxes("exec", "foo", *QUICK, "true").fails(5, "box1")
    assert len(refused.err.splitlines()) == 1, refused.err
    boxes("message", "foo", *QUICK, "-m", "x").fails(5, "box1")
    boxes("stop", "foo", *QUICK).fails(5, "box1")
    boxes("gc", *QUICK, "-S", "trash.keep=0s").ok()
    boxes.one.heal()
    assert boxes.states()["foo"] == "RUNNING"


def test_names_are_resolved_as_ssh_does(boxes: Boxes) -> None:
    config = boxes.cli.user_home / "ssh_config"
    text = config.read_text().replace("Host box2\n", "Host box2 two.example.com\n")
    config.write_text(text)
    boxes.cli.create("foo@two.example.com")
    assert boxes.cli.agent("foo")["host"]["name"] == "two.example.com"
    assert boxes("exec", "foo@two.example.com", "whoami").ok().out == "dev2\n"
    boxes("create", "bar@nosuch", "--no-connect", "--", "true").fails(4, "no host 'nosuch'")
    config.write_text(f"{text}  NoSuchOption yes\n")
    broken = boxes("create", "bar@box1", "--no-connect", "--", "true")
    broken.fails(1, str(config), "Bad configuration option: nosuchoption")
    config.write_text(text)


def test_a_refused_login_is_told(boxes: Boxes) -> None:
    config = boxes.cli.user_home / "ssh_config"
    config.write_text(config.read_text().replace("User dev1", "User nobody"))
    refused = boxes("create", "foo@box1", "--no-connect", "--", "true")
    refused.fails(5, "host box1 refused the login", "ssh box1")


def test_a_command_that_is_late_is_ended_over_there(boxes: Boxes) -> None:
    boxes.cli.create("foo@box1")
    began = time.monotonic()
    boxes("exec", "foo", "--timeout", "1s", "echo early; sleep 4321").fails(124)
    assert time.monotonic() - began < 30
    until(lambda: "sleep 4321" not in boxes.one.inside("ps", "-A", "-o", "args="), what="its end")


def test_bytes_and_codes_arrive_as_they_are(boxes: Boxes) -> None:
    boxes.cli.create("foo@box1")
    assert boxes("exec", "foo", "printf 'no newline'; exit 255").code == 255
    assert boxes("exec", "foo", "printf 'no newline'").ok().out == "no newline"
    left = boxes("exec", "foo", "sleep 60 & echo left").ok()
    assert left.out == "left\n"
    sent = boxes("exec", "foo", "seq 300000 | tee all | cksum; cksum < all").ok().out.split()
    data = boxes("exec", "foo", "cat all").ok().out
    assert len(data) == int(sent[1]) == int(sent[3])


def test_a_command_takes_one_visit_and_never_runs_elsewhere(boxes: Boxes, tmp_path: Path) -> None:
    """The host compares what is remembered here with what another laptop has made of it."""
    boxes.one.count_visits()
    boxes.two.count_visits()

    def where(word: str) -> tuple[str, int]:
        before = boxes.one.visits + boxes.two.visits
        told = boxes("exec", word, 'pwd; echo "$MNGR_AGENT_NAME" >&2; exit 7')
        assert told.code == 7 and told.err in ("foo\n", "bar\n"), told
        return told.out.strip(), boxes.one.visits + boxes.two.visits - before

    boxes.cli.create("here")
    boxes.cli.create("foo@box1")
    boxes.cli.create("bar@box2")
    first, agent = boxes("path", "foo").out.strip(), boxes.cli.agent("foo")["id"]
    assert where("foo@box1") == where("foo@box1.ssh") == where(agent) == (first, 1)
    assert where("foo")[0] == first and where("foo")[1] > 1, "bar's host may have a foo as well"

    other = reaching(boxes.lab, tmp_path / "other")
    other("list", "-S", 'providers.ssh.hosts=["box1"]').ok()
    other("rename", "foo@box1", "old").ok()
    other.create("foo@box1")
    second = other("path", "foo@box1").ok().out.strip()
    assert second != first
    assert where("foo@box1")[0] == second and where("foo@box1") == (second, 1)
    other("destroy", "foo@box1", "--force").ok()
    boxes("exec", "foo@box1", "touch ran").fails(4, "no agent 'foo@box1'")
    ended(other)


def test_a_person_is_asked_about_a_new_key(boxes: Boxes) -> None:
    (boxes.cli.controller_home / "known_hosts").unlink()
    with Screen(boxes.cli) as screen:
        screen.mngr("create", "foo@box1", "--no-connect", "--", "sleep", "1000")
        screen.shows("Host box1 shows the key SHA256:", "Trust it? [y/N]")
        screen.type("n")
        screen.shows("the key of host box1 is not trusted")
        screen.type("clear")
        screen.mngr("create", "foo@box1", "--no-connect", "--", "sleep", "1000")
        screen.shows("Trust it? [y/N]")
        screen.type("y")
        until(lambda: boxes.states() == {"foo": "RUNNING"}, what="the agent")


@pytest.mark.parametrize("kind", ["xterm-256color", "no-such-terminal"])
def test_a_terminal_is_handed_over_and_follows_its_size(boxes: Boxes, kind: str) -> None:
    boxes.cli.create("foo@box1", "--", "sh", "-c", "echo I am foo; exec cat")

    def sizes() -> str:
        return boxes("exec", "foo", SIZES).ok().out

    with Screen(boxes.cli, {"TERM": kind}) as screen:
        screen.mngr("connect", "foo")
        screen.shows("I am foo", "[foo]")
        screen.type("größer")
        screen.shows("größer\ngrößer")
        assert sizes() == "150x40\n"
        screen.tmux("resize-window", "-x", "90", "-y", "25")
        until(lambda: sizes() == "90x25\n", what="the new size over there")
        screen.keys("C-b", "d")
        screen.shows("[detached")
    assert boxes.states() == {"foo": "RUNNING"}


def test_a_terminal_whose_connection_is_lost_is_usable_again(boxes: Boxes) -> None:
    boxes.cli.create("foo@box1", "--", "sh", "-c", "echo I am foo; exec cat")
    with Screen(boxes.cli) as screen:
        screen.mngr("connect", "foo")
        screen.shows("I am foo", "[foo]")
        assert screen.tmux("display", "-p", MODES) == "1 1 1\n"
        boxes.one.refuse()
        screen.shows(
            "mngr: the connection to host box1 was lost; the agent keeps running",
            "return with `mngr connect foo`",
        )
        assert screen.tmux("display", "-p", MODES) == "0 0 0\n"
        screen.type("echo $?; stty | grep -c -- '-echo '")
        screen.shows("\n5\n0\n")
        boxes.one.heal()
        screen.mngr("connect", "foo")
        screen.shows("I am foo", "[foo]")


@pytest.mark.parametrize("program", ["git", "tar", "tmux"])
def test_nothing_is_created_where_a_program_is_missing(boxes: Boxes, program: str) -> None:
    boxes.one.inside("mv", f"/usr/bin/{program}", f"/usr/bin/{program}.away")
    try:
        refused = boxes("create", "foo@box1", "--no-connect", "--", "sleep", "9")
        refused.fails(1, f"{program} is not installed on box1", "mngr doctor --host box1")
    finally:
        boxes.one.inside("mv", f"/usr/bin/{program}.away", f"/usr/bin/{program}")
    assert boxes.states() == {}
    assert boxes.one.inside("ls", f"{boxes.one.home}/.mngr") in ("", "names")


def test_doctor_says_what_a_host_lacks(boxes: Boxes) -> None:
    def checks() -> dict[str, dict[str, str]]:
        found = boxes("doctor", "--host", "box1", "--format", "json")
        return {each["check"]: each for each in json.loads(found.out)["checks"]}

    healthy = checks()
    assert {healthy[each]["status"] for each in ("host", "git", "tmux", "home")} == {"ok"}
    boxes.one.inside("mv", "/usr/bin/tmux", "/usr/bin/tmux.away")
    try:
        lacking = checks()["tmux"]
        assert (lacking["status"], lacking["detail"]) == (
            "problem",
            "tmux is not installed",
        )
        assert lacking["remedy"] == "ssh -t box1 \"su -c 'apt-get install -y tmux'\""
        refused = boxes("create", "foo@box1", "--no-connect", "--", "sleep", "9")
        refused.fails(1, "tmux is not installed on box1", "mngr doctor --host box1")
        assert boxes.states() == {}
    finally:
        boxes.one.inside("mv", "/usr/bin/tmux.away", "/usr/bin/tmux")
    busybox = f"echo 'echo tar \\(busybox\\) 1.36.1' > {PROGRAMS}/tar; chmod 755 {PROGRAMS}/tar"
    boxes.one.inside("sh", "-c", busybox)
    try:
        assert checks()["tar"]["status"] == "problem"
    finally:
        boxes.one.inside("rm", f"{PROGRAMS}/tar")
    boxes.one.inside("chmod", "0", boxes.one.home)
    try:
        assert checks()["home"]["status"] == "problem"
    finally:
        boxes.one.inside("chmod", "755", boxes.one.home)
    boxes("doctor", "--host", "nosuch").fails(4, "no host 'nosuch'")


def test_waiting_is_told_of_changes(boxes: Boxes, tmp_path: Path) -> None:
    """One visit per host lasts seconds; the end of an agent is known at once all the same."""
    boxes.cli.create("foo@box1", "--", "sh", "-c", "until [ -e go ]; do sleep 0.1; done")
    boxes.cli.create("bar@box2")
    told = tmp_path / "told"
    with told.open("wb") as file:
        observing = boxes.cli.start("observe", "--format", "jsonl", stdout=file)
    waiting = boxes.cli.start("wait", "foo", "--timeout", "90s")
    try:
        until(lambda: told.read_text().count("agent_discovered") == 2, 60, "both agents")
        boxes("exec", "foo", "touch go").ok()
        assert waiting.wait(60) == 0
        until(lambda: '"new_state":"DONE"' in told.read_text().replace(" ", ""), 60, "its end")
    finally:
        for each in (observing, waiting):
            each.kill()
            each.communicate()


def test_our_paths_mean_nothing_over_there(boxes: Boxes) -> None:
    """A repository at the same path on the host is another repository."""
    repo, theirs = str(boxes.cli.repo), "git -c user.name=x -c user.email=x@x"
    stranger = f"mkdir -p {repo} && cd {repo} && git init -q && {theirs} commit -qm 1 --allow-empty"
    top = "/".join(repo.split("/")[:3])  # /tmp/pytest-of-root, or what --basetemp says
    boxes.one.inside("sh", "-c", f"{stranger} && chown -R {boxes.one.user} {top}")
    boxes.cli.create("foo@box1")
    boxes.cli.commit("two")
    boxes.cli.commit("three")
    boxes("exec", "foo", "touch new").ok()
    row = boxes("list", "--format", "json", "--fields", "name,ahead,behind,dirty").json()["agents"]
    assert row == [{"name": "foo", "ahead": 0, "behind": 2, "dirty": 1}]
    boxes("push", "foo").ok()
    row = boxes("list", "--format", "json", "--fields", "ahead,behind").json()["agents"]
    assert row == [{"ahead": 2, "behind": 0}]
    refused = boxes("create", "bar@box1", "--no-connect", "--record", "--", "true")
    refused.fails(2, "--record")


def test_the_second_agent_sends_only_what_is_new(boxes: Boxes) -> None:
    boxes.cli.write("large", os.urandom(3 << 20))
    boxes.cli.commit("large")
    boxes.cli.create("foo@box1")
    mirrors = f"{boxes.one.home}/.mngr/mirrors"
    before = boxes.one.inside("sh", "-c", f"find {mirrors} -name '*.pack' | wc -l; ls {mirrors}")
    boxes.cli.create("bar@box1")
    boxes.cli.write("small", "small")
    boxes.cli.commit("small")
    boxes.cli.create("baz@box1")
    after = boxes.one.inside("sh", "-c", f"find {mirrors} -name '*.pack' | wc -l; ls {mirrors}")
    assert before == after
    assert len(after.split()) == 2
    used = int(boxes.one.inside("du", "-sk", f"{boxes.one.home}/.mngr/mirrors").split()[0])
    assert used < 4 << 10
    assert boxes("exec", "baz", "cat small; wc -c < large").ok().out == f"small{3 << 20}\n"


def test_work_moves_between_machines(boxes: Boxes) -> None:
    boxes.cli.create("foo@box1")
    work = "echo mine > new.txt; git add -A; git commit -qm new; echo more > extra"
    boxes("exec", "foo", work).ok()
    boxes.cli.create("bar@box2", "--from", "foo", "--include-dirty")
    assert boxes("exec", "bar", "cat new.txt extra; whoami").ok().out == "mine\nmore\ndev2\n"
    boxes("stop", "foo").ok()
    boxes("migrate", "foo", "box2").ok()
    assert boxes.cli.agent("foo")["host"]["name"] == "box2"
    assert boxes("exec", "foo", "cat new.txt extra").ok().out == "mine\nmore\n"
    boxes("stop", "foo").ok()
    boxes("pull", "foo").ok()
    assert boxes.cli.git("show", "mngr/foo:new.txt") == "mine"


@pytest.mark.parametrize("program", ["claude", "codex"])
def test_a_login_is_copied_only_when_asked_for(boxes: Boxes, program: str) -> None:
    login = {"claude": ".claude/.credentials.json", "codex": ".codex/auth.json"}[program]
    content = '{"tokens": {"refresh_token": "s3cret"}, "claudeAiOauth": {"refreshToken": "s3cret"}}'
    path = boxes.cli.user_home / login
    path.parent.mkdir()
    path.write_text(content)
    (path.parent / "config.toml").write_text('[model_providers.x]\nhttp_headers = {A = "s3cret"}\n')
    boxes.cli.env |= {"ANTHROPIC_BASE_URL": "s3cret.example", "OPENAI_API_KEY": "s3cret"}
    script = f"printf '#!/bin/sh\nsleep 1000\n' > {PROGRAMS}/{program}; chmod 755 {PROGRAMS}/*"
    boxes.one.inside("sh", "-c", script)

    def secrets() -> list[str]:
        grep = f"grep -rl s3cret {boxes.one.home}/.mngr || :"
        return boxes.one.inside("sh", "-c", grep).split()

    try:
        told = boxes("create", "foo@box1", program, "--no-connect").ok().err
        assert secrets() == []
        assert ("model_providers.x.http_headers" in told) == (program == "codex")
        boxes("create", "here", "--no-connect", "--", "sleep", "1000").ok()
        boxes("create", "bar@box1", program, "--no-connect", "--pass-login").ok()
        assert any(each.endswith(login.split("/")[1]) for each in secrets())
        boxes("destroy", "bar", "--force").ok()
    finally:
        boxes.one.inside("rm", f"{PROGRAMS}/{program}")


def test_many_calls_at_once_share_a_cold_connection(boxes: Boxes) -> None:
    """sshd takes ten sessions per connection, and ten that have not logged in, by default."""
    boxes.cli.create("first@box1")
    hang_up(boxes.cli)
    names = [f"a{number}" for number in range(16)]
    batch = "".join(f'{{"name": "{name}@box1", "args": ["sleep", "900"]}}\n' for name in names)
    words = ("create", "--batch", "-", "--max-parallel", "16")
    boxes.cli(*words, input=batch, timeout=300).ok()
    hang_up(boxes.cli)
    ran = boxes.cli("exec", *names, "--", "true", timeout=300).ok()
    assert ran.err == ""
    assert set(boxes.states().values()) == {"RUNNING"}


def test_a_machine_is_forgotten_and_its_agents_are_not(boxes: Boxes) -> None:
    boxes.cli.create("foo@box1")
    boxes.one.refuse()
    assert boxes.states() == {"foo": "UNREACHABLE"}
    planned = boxes("host", "forget", "box1", "--dry-run", "--format", "json").ok().json()
    assert [each["name"] for each in planned["hosts"]] == ["box1"]
    boxes("host", "forget", "box1", "nosuch").fails(4, "nosuch")
    assert boxes.states() == {"foo": "UNREACHABLE"}
    boxes("host", "forget", "box1").ok()
    assert boxes.states() == {}
    boxes("host", "forget", "box1").fails(4, "no host 'box1'")
    boxes("host", "forget", "localhost").fails(1, "localhost")
    listed = {"MNGR__PROVIDERS__SSH__HOSTS": '["box1"]'}
    told = boxes.cli("host", "forget", "box1", env=listed).ok().out
    assert told.endswith("remains in the list because providers.ssh.hosts names it.\n")
    boxes.one.heal()
    boxes.cli.create("bar@box1")
    assert boxes.states() == {"foo": "RUNNING", "bar": "RUNNING"}
