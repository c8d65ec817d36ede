"""Find out what a host lacks, and the command that installs it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from mngr.errors import MngrError, UsageError
from mngr.hosts import tmux
from mngr.hosts.base import Host
from mngr.ops.look.doctor import Finding, programs
from mngr.ops.look.install import INSTALL
from mngr.ops.world import World

NEEDED = {"git": (2, 30), "tmux": tmux.MINIMUM, "tar": (0, 0), "find": (0, 0), "awk": (0, 0)}
UTILITIES = {"find": "findutils", "ps": "procps"}
"""Packages whose name differs from that of the program."""
OFF = 60.0
"""Seconds that the clocks may differ before it is reported."""

# One round trip. Each line is a key and its value.
LOOK = r"""
home=$1; shift
echo "now $(date +%s)"
echo "user $(id -un) $(id -u)"
for tool in apt-get dnf apk pacman zypper brew; do
  if command -v "$tool" > /dev/null; then echo "tool $tool"; break; fi
done
command -v sudo > /dev/null && echo "sudo yes"
for each; do
  command -v "$each" > /dev/null || continue
  case $each in
    git) echo "$each $(git --version 2>&1)" ;;
    tmux) echo "$each $(tmux -V 2>&1)" ;;
    *) echo "$each installed" ;;
  esac
done
if mkdir -p -m 700 "$home" && : > "$home/.probe.$$" && rm -f "$home/.probe.$$"; then
  echo "free $(df -Pk "$home" | awk 'NR == 2 { print $4 }')"
fi 2> /dev/null
if [ -d /run/systemd/system ] && [ "$(id -u)" -ne 0 ]; then
  [ -e "/var/lib/systemd/linger/$(id -un)" ] || echo "logout kills"
fi
"""


def examine(world: World, host: Host) -> list[Finding]:
    began = time.time()
    try:
        home = host.home
        words = ["sh", "-c", LOOK, "mngr", home, *NEEDED, "ps"]
        done = host.run(words, timeout=host.patience + 15)
    except MngrError as error:
        return [Finding(check="host", status="problem", detail=error.message, remedy=error.hint)]
    took = time.time() - began
    said = dict(x.split(" ", 1) for x in done.stdout.decode("utf-8", "replace").splitlines())
    return [
        Finding(check="host", status="ok", detail=f"{host.ref.name} answered in {took:.1f} s"),
        *_programs(host, said),
        *_home(home, said),
        *_clock(said, began + took),
        *_logout(host, said),
        *(finding for _, _, finding in programs(world, host)),
    ]


def _programs(host: Host, said: dict[str, str]) -> Iterator[Finding]:
    for name, minimum in {**NEEDED, "ps": (0, 0)}.items():
        version = re.search(r"(\d+)\.(\d+)", said.get(name, ""))
        old = version is not None and (int(version[1]), int(version[2])) < minimum
        if name in said and not old:
            yield Finding(check=name, status="ok", detail=said[name])
            continue
        # Without ps, only commands that timed out keep running on the host.
        status = "problem" if name in NEEDED else "warning"
        wanted = f", {name} {minimum[0]}.{minimum[1]} or newer" if minimum > (0, 0) else ""
        detail = f"{said.get(name, 'not installed')}{wanted}"
        yield Finding(check=name, status=status, detail=detail, remedy=_how(host, said, name))


def _how(host: Host, said: dict[str, str], name: str) -> str:
    package = UTILITIES.get(name, name)
    tool = said.get("tool", "")
    if tool not in INSTALL:
        return f"install {package} on {host.ref.name}"
    root = said.get("user", "").endswith(" 0") or tool == "brew"
    by_root = "" if root else "sudo " if "sudo" in said else "su -c "
    line = f"{INSTALL[tool]} {package}"
    line = f"{by_root}'{line}'" if by_root == "su -c " else f"{by_root}{line}"
    return f'ssh -t {host.ref.name} "{line}"' if host.ref.provider == "ssh" else line


def _home(home: str, said: dict[str, str]) -> Iterator[Finding]:
    if not said.get("free", "").strip().isdigit():
        remedy = "free some space, or make it writable for that user"
        yield Finding(check="home", status="problem", detail=f"cannot write {home}", remedy=remedy)
        return
    free = int(said["free"]) / (1 << 20)
    low = free < 1
    yield Finding(
        check="home", status="warning" if low else "ok", detail=f"{home}, {free:.1f} GiB free",
        remedy="free some space" if low else "",
    )  # fmt: skip


def _clock(said: dict[str, str], here: float) -> Iterator[Finding]:
    off = float(said.get("now", here)) - here
    if abs(off) > OFF:
        ahead = "ahead of" if off > 0 else "behind"
        yield Finding(
            check="clock", status="warning", detail=f"{abs(off):.0f} s {ahead} this machine's",
            remedy="set its clock, for instance with `timedatectl set-ntp true`",
        )  # fmt: skip


def _logout(host: Host, said: dict[str, str]) -> Iterator[Finding]:
    if "logout" in said:
        yield Finding(
            check="logout", status="warning",
            detail="agents may end when the last connection does: lingering is off",
            remedy=f"ssh {host.ref.name} loginctl enable-linger",
        )  # fmt: skip


def of(world: World, name: str) -> list[Finding]:
    """Check the host that an address names, even if it was never used."""
    from mngr.model.address import parse_address

    address = parse_address(f"@{name.removeprefix('@')}")
    if address.path is not None:
        raise UsageError(f"{name!r} is not a host", "see `mngr host list`")
    return examine(world, world.host(address.host, address.provider))
