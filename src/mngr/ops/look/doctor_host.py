"""Check the programs, the home and the clock of a host, and return how to install what it lacks."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator

from mngr.errors import MngrError, UsageError
from mngr.hosts import tmux
from mngr.hosts.base import Host, is_here
from mngr.model.struct import Json, Struct
from mngr.ops import types
from mngr.ops.look.install import INSTALL, installing
from mngr.ops.world import World

NEEDED = {"git": (2, 30), "tmux": tmux.MINIMUM, "tar": (0, 0), "find": (0, 0), "awk": (0, 0)}
# Without ps, only commands that timed out keep running.
OPTIONAL = ("ps",)
OPTIONAL_HERE = ("ps", "rsync", "asciinema")
PACKAGES = {"awk": "gawk", "find": "findutils", "ps": "procps"}
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
    git | rsync | asciinema) "$each" --version 2>&1 | { IFS= read -r line; echo "$each $line"; } ;;
    tmux) echo "$each $(tmux -V 2>&1)" ;;
    # BusyBox's cannot read names from a file, or looks for them in the folder given by -C.
    tar) case $(tar --version 2>&1) in *[Bb]usy[Bb]ox*) ;; *) echo "tar installed" ;; esac ;;
    *) echo "$each installed" ;;
  esac
done
# Through cat, because the shell's own printf reports a full disk as an I/O error.
write() { mkdir -p -m 700 "$home" && printf '%4096s' x | cat > "$home/.probe.$$"; }
if why=$(write 2>&1); then echo "free $(df -Pk "$home" | awk 'NR == 2 { print $4 }')"
else echo "why ${why##*: }"; fi
rm -f "$home/.probe.$$"
if [ -d /run/systemd/system ] && [ "$(id -u)" -ne 0 ]; then
  [ -e "/var/lib/systemd/linger/$(id -un)" ] || echo "logout kills"
fi
"""


class Finding(Struct):
    """One check: ok, absent, warning or problem."""

    check: str
    status: str
    detail: str
    remedy: str = ""
    fix: Callable[[], None] | None = None

    def to_json(self) -> dict[str, Json]:
        return {
            "check": self.check,
            "status": self.status,
            "detail": self.detail,
            "remedy": self.remedy,
            "fixable": self.fix is not None,
        }


def examine(host: Host) -> list[Finding]:
    """Check the programs, the home and the clock of a host in one call."""
    began = time.time()
    wanted = [*NEEDED, *(OPTIONAL_HERE if is_here(host) else OPTIONAL)]
    try:
        home = host.home
        words = ["sh", "-c", LOOK, "mngr", home, *wanted]
        done = host.run(words, timeout=host.patience + 15)
    except MngrError as error:
        return [Finding(check="host", status="problem", detail=error.message, remedy=error.hint)]
    took = time.time() - began
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    said = dict(line.partition(" ")[::2] for line in lines)
    answer = Finding(check="host", status="ok", detail=f"{host.ref.name} answered in {took:.1f} s")
    return [
        *([] if is_here(host) else [answer]),
        *(_program(host, said, name) for name in wanted),
        _home(home, said),
        *_clock(said, began + took),
        *_logout(host, said),
    ]


def _program(host: Host, said: dict[str, str], name: str) -> Finding:
    minimum = NEEDED.get(name, (0, 0))
    version = re.search(r"(\d+)\.(\d+)", said.get(name, ""))
    old = version is not None and (int(version[1]), int(version[2])) < minimum
    if name in said and not old:
        return Finding(check=name, status="ok", detail=said[name])
    package = PACKAGES.get(name, name)
    wanted = f"{name} {minimum[0]}.{minimum[1]} or newer" if minimum > (0, 0) else package
    by_hand = f"install {wanted}{'' if is_here(host) else f' on {host.ref.name}'}"
    return Finding(
        check=name, status="problem" if name in NEEDED else "warning",
        detail=said[name] if old else f"{name} is not installed",
        remedy=by_hand if old else _how(host, said, package) or by_hand,
        fix=installing(said.get("tool", ""), package) if is_here(host) and not old else None,
    )  # fmt: skip


def _how(host: Host, said: dict[str, str], package: str) -> str:
    """Return the command that installs a package; "" if the package manager is unknown."""
    tool = said.get("tool", "")
    if tool not in INSTALL:
        return ""
    root = said.get("user", "").endswith(" 0") or tool == "brew"
    by_root = "" if root else "sudo " if "sudo" in said else "su -c "
    line = f"{INSTALL[tool]} {package}"
    line = f"{by_root}'{line}'" if by_root == "su -c " else f"{by_root}{line}"
    return f'ssh -t {host.ref.name} "{line}"' if host.ref.provider == "ssh" else line


def _home(home: str, said: dict[str, str]) -> Finding:
    if "free" not in said:
        return Finding(
            check="home", status="problem", detail=f"cannot write {home}: {said.get('why', '')}",
            remedy="make it writable, free some space, or set MNGR_HOST_DIR",
        )  # fmt: skip
    free = int(said["free"]) / (1 << 20) if said["free"].isdigit() else None
    low = free is not None and free < 1
    left = "unknown space" if free is None else f"{free:.1f} GiB"
    return Finding(
        check="home", status="warning" if low else "ok", detail=f"{home}, {left} free",
        remedy="free some space" if low else "",
    )  # fmt: skip


def _clock(said: dict[str, str], here: float) -> Iterator[Finding]:
    now = said.get("now", "")
    off = float(now) - here if now.isdigit() else 0.0
    if abs(off) > OFF:
        ahead = "ahead of" if off > 0 else "behind"
        yield Finding(
            check="clock", status="warning", detail=f"{abs(off):.0f} s {ahead} this machine's",
            remedy="set its clock, for instance with `timedatectl set-ntp true`",
        )  # fmt: skip


def _logout(host: Host, said: dict[str, str]) -> Iterator[Finding]:
    """Report whether systemd ends all processes of a user at logout, including tmux."""
    if "logout" in said and (not is_here(host) or os.environ.get("SSH_CONNECTION")):
        there = f"ssh {host.ref.name} " if host.ref.provider == "ssh" else ""
        yield Finding(
            check="logout", status="warning",
            detail="agents may end when you log out: lingering is off",
            remedy=f"{there}loginctl enable-linger",
        )  # fmt: skip


def programs(world: World, host: Host) -> Iterator[tuple[str, bool, Finding]]:
    """Yield each type, whether its program is installed, and that as a finding."""
    kinds = types.with_program(world)
    there = types.installed(host, [kind.program for _, kind in kinds]) if kinds else ()
    for name, kind in kinds:
        found = kind.program in there
        yield name, found, Finding(
            check=f"agent {name}", status="ok" if found else "absent",
            detail=f"{kind.program} is {'' if found else 'not '}installed",
            remedy="" if found else kind.install,
        )  # fmt: skip


def of(world: World, name: str) -> list[Finding]:
    """Check the host that an address names, even if it was never used."""
    from mngr.model.address import parse_address

    address = parse_address(f"@{name.removeprefix('@')}")
    if address.path is not None:
        raise UsageError(f"{name!r} is not a host", "see `mngr host list`")
    host = world.host(address.host, address.provider)
    found = examine(host)
    answered = all(each.check != "host" or each.status == "ok" for each in found)
    return [*found, *(each for _, _, each in programs(world, host) if answered)]
