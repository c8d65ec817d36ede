"""Ways to a machine that only ssh's own configuration knows, and a line that died unnoticed."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.cli import until
from tests.support.places import Boxes

FAR = """
Host far
  HostName {address}
  Port 2222
  User {user}
  ProxyJump box1
  IdentityFile {key}
  IdentitiesOnly yes
"""


@contextmanager
def agent(key: Path, passphrase: str) -> Iterator[str]:
    """An ssh-agent that has opened this key; the address of its socket."""
    socket = str(key.parent / "agent")
    running = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
    try:
        until(lambda: os.path.exists(socket), what="the agent")
        ask = key.parent / "ask"
        ask.write_text(f"#!/bin/sh\necho '{passphrase}'\n")
        ask.chmod(0o700)
        env = os.environ | {"SSH_AUTH_SOCK": socket, "SSH_ASKPASS": str(ask)}
        env["SSH_ASKPASS_REQUIRE"] = "force"
        subprocess.run(["ssh-add", "-q", str(key)], env=env, check=True, timeout=20)
        yield socket
    finally:
        running.terminate()
        running.wait()


@pytest.fixture
def far(boxes: Boxes, tmp_path: Path) -> Iterator[Boxes]:
    """The second machine, which only the first may talk to, on another port, with another key."""
    one, two, lab = boxes.one, boxes.two, boxes.lab
    key = tmp_path / "key"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret words", "-f", str(key)]
    subprocess.run(words, check=True)
    public = key.with_suffix(".pub").read_text()
    for each in (one, two):
        route = ["ip", "-n", each.namespace, "route", "replace", "default", "via", each.gateway]
        subprocess.run(route, check=True)
    forward = [*lab.entering(), "sysctl", "-qw", "net.ipv4.ip_forward=1"]
    subprocess.run(forward, check=True)
    other = f"/usr/sbin/sshd -p 2222 -o UsePAM=no -o AuthorizedKeysFile={two.home}/.ssh/other"
    two.inside("sh", "-c", f"printf %s '{public}' > {two.home}/.ssh/other; {other} -E /tmp/sshd")
    pid = two.inside("sh", "-c", "cat /run/sshd.pid")
    two.only_from(one.address)
    config = boxes.cli.user_home / "ssh_config"
    known = boxes.cli.user_home / "jump_keys"  # ssh asks about a jump host's key itself
    known.write_text(lab.known_hosts())
    text = config.read_text().replace("Host box1\n", f"Host box1\n  UserKnownHostsFile {known}\n")
    config.write_text(text + FAR.format(address=two.address, user=two.user, key=key))
    keys = boxes.cli.controller_home / "known_hosts"
    keys.write_text(f"{keys.read_text()}[{two.address}]:2222 {two.host_key()}\n")
    try:
        with agent(key, "secret words") as socket:
            boxes.cli.env["SSH_AUTH_SOCK"] = socket
            yield boxes
    finally:
        two.inside("sh", "-c", f"kill {pid}; rm {two.home}/.ssh/other")


def test_a_jump_host_another_port_and_a_key_in_an_agent(far: Boxes) -> None:
    far.cli.create("foo@far", "--", "sh", "-c", "env > env.txt; exec sleep 1000")
    assert far("exec", "foo", "whoami; hostname").ok().out == "dev2\nbox2\n"
    work = "echo mine > new.txt; git add new.txt; git commit -qm new"
    far("exec", "foo", work).ok()
    far("pull", "foo").ok()
    assert far.cli.git("show", "mngr/foo:new.txt") == "mine"
    # The agent that opened the door stays outside.
    assert "SSH_AUTH_SOCK" not in far("exec", "foo", "cat env.txt; env").ok().out
    # Nothing else leads there.
    far("create", "bar@box2", "--no-connect", "-S", "hosts.timeout=2s", "--", "true").fails(
        5, "box2"
    )
    del far.cli.env["SSH_AUTH_SOCK"]
    far("host", "forget", "far").ok()


NEAR = """
Host near
  User {user}
  HostKeyAlias {address}
  IdentityFile {key}
  RemoteCommand tmux new-session -A
  RequestTTY force
  ProxyCommand ssh -F {config} -o UserKnownHostsFile={known} -W 127.0.0.1:22 box1
"""


def test_a_host_behind_a_command_that_is_meant_for_terminals(boxes: Boxes) -> None:
    one, config = boxes.one, boxes.cli.user_home / "ssh_config"
    config.write_text(
        config.read_text()
        + NEAR.format(
            user=one.user,
            address=one.address,
            key=boxes.lab.folder / "id_ed25519",
            config=config,
            known=boxes.cli.controller_home / "known_hosts",
        )
    )
    boxes.cli.create("foo@near")
    assert boxes("exec", "foo", "hostname").ok().out == "box1\n"
    # Two names of one machine.
    boxes.cli.create("bar@box1")
    boxes("exec", "foo", "true").fails(4, "ambiguous", "mngr host forget near")


def test_a_way_that_ends_before_the_host_is_not_tried_for_long(boxes: Boxes) -> None:
    config = boxes.cli.user_home / "ssh_config"
    config.write_text(config.read_text() + "Host far\n  ProxyCommand sh -c 'sleep 4; exit 1'\n")
    began = time.monotonic()
    boxes("create", "foo@far", "--no-connect", "--", "true").fails(5, "or its jump host", "ssh far")
    assert time.monotonic() - began < 20


def test_a_line_that_died_while_we_slept_is_made_anew(boxes: Boxes) -> None:
    """Only the other side knows that it is gone; the first command finds out, and does not fail."""
    boxes.cli.create("foo@box1")
    boxes.one.forget()
    again = boxes("exec", "foo", "echo again").ok()
    assert (again.out, again.err) == ("again\n", "")
