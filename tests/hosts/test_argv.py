"""The contract of every host's `argv`, on which everything else is based."""

from __future__ import annotations

import hashlib
import os
import select
import subprocess
from contextlib import ExitStack

from mngr.ops.work import transport
from tests.support.cli import until
from tests.support.sites import Site, only

ENGINES = ("ssh", "docker", "slurm")


def ran(site: Site, *words: str, input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    argv, env = site.argv(*words), site.cli.env
    return subprocess.run(argv, input=input, env=env, capture_output=True, timeout=200, check=False)


def opened(site: Site, *words: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(site.argv(*words), stdin=pipe, stdout=pipe, env=site.cli.env)


def heard(running: subprocess.Popen[bytes], count: int) -> bytes:
    """Exactly so many bytes, which must come without more being said."""
    assert running.stdout is not None
    told = b""
    while len(told) < count:
        assert select.select([running.stdout], [], [], 60)[0], f"only {told!r} came"
        told += os.read(running.stdout.fileno(), count - len(told))
    return told


@only(*ENGINES)
def test_a_host_is_reached_by_its_argv(site: Site) -> None:
    """In one test: making a host costs more than all of this."""
    bytes_and_codes(site)
    many_at_once(site)
    servers_and_repositories(site)
    its_death(site)


def bytes_and_codes(site: Site) -> None:
    sent = os.urandom(1 << 20) * 50
    back = ran(site, "cat", input=sent).stdout
    assert hashlib.sha256(back).digest() == hashlib.sha256(sent).digest(), len(back)

    done = ran(
        site, "sh", "-c", 'printf "%s|" "$@"; printf no >&2; exit 3', "x", "a b", "$(id)", "'"
    )
    assert (done.returncode, done.stdout) == (3, b"a b|$(id)|'|")
    assert b"no" in done.stderr  # srun prints its own words around the output

    with opened(site, "sh", "-c", "printf partial; read -r line; printf '<%s>' \"$line\"") as one:
        assert heard(one, 7) == b"partial"
        one.stdin.write(b"go on\n")  # type: ignore[union-attr]
        one.stdin.close()  # type: ignore[union-attr]
        assert heard(one, 7) == b"<go on>"


def many_at_once(site: Site) -> None:
    with ExitStack() as stack:
        every = [
            stack.enter_context(opened(site, "sh", "-c", "echo $0; cat", f"{n:02}"))
            for n in range(20)
        ]
        assert [heard(each, 3) for each in every] == [b"%02d\n" % n for n in range(20)]
        for each in every:
            each.stdin.close()  # type: ignore[union-attr]


def servers_and_repositories(site: Site) -> None:
    ran(site, "mkdir", "-p", site.home)
    socket = f"{site.home}/raw"
    ran(site, "tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-s", "x", "sleep 900")
    until(lambda: ran(site, "tmux", "-S", socket, "has-session", "-t", "=x").returncode == 0)
    assert ran(site, "tmux", "-S", socket, "kill-server").returncode == 0

    bare = f"{site.home}/it's 100% bare"
    assert ran(site, "git", "init", "-q", "--bare", bare).returncode == 0
    url = transport.to_mirror(site.it, bare).url
    ext = ["git", "-c", "protocol.ext.allow=always"]
    words = [
        *site.cli.within,
        *ext,
        "push",
        "-q",
        url.replace("\0", "git-receive-pack"),
        "HEAD:refs/heads/new",
    ]
    subprocess.run(words, cwd=site.cli.repo, env=site.cli.env, check=True, timeout=120)
    told = ran(site, "git", "-C", bare, "rev-parse", "new").stdout.decode().strip()
    assert told == site.cli.git("rev-parse", "HEAD")


def its_death(site: Site) -> None:
    """A host that dies under a command is not taken for a command that failed."""
    site.cli.create(site.at("foo"))
    plain = site("exec", "foo", "printf out; printf err >&2; exit 255")
    assert (plain.code, plain.out, plain.err) == (255, "out", "err")
    running = site.cli.start("exec", "foo", "echo begun; sleep 600", "--stream")
    try:
        assert heard(running, 5) == b"begun"
        site.die()
        out, err = running.communicate(timeout=120)
    finally:
        running.kill()
    assert (running.returncode, out.strip()) == (5, b""), err
    assert f"host {site.host}".encode() in err
