"""Sandboxes with bubblewrap: a script that checks its isolation from inside, then runs a command.

The root is empty except for the paths named here, so any other directory is inaccessible.
"""

from __future__ import annotations

import os

from mngr.model.quoting import join, quote
from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

OFFLINE, OPEN = "offline", "open"

SYSTEM = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/sys"),
    *("/nix", "/gnu", "/var/lib/ca-certificates"),
)
WALLS = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    # Without this, root would keep every capability and could undo the mounts.
    *("--die-with-parent", "--cap-drop", "ALL", "--dev", "/dev", "--proc", "/proc"),
)

# Places whose inode number shows whether they are the same inside and outside.
PLACES = "/proc/self/ns/pid /proc/self/ns/net"

# Arguments: a forbidden file, the home, the inode numbers outside, the mode; then the command. If
# SANDBOX_TOLD is set, success is written to file descriptor 9. On failure the exit code is 97.
INSIDE = r"""
leaks() { printf 'mngr: the sandbox is not closed: %s\n' "$1" >&2; exit 97; }
[ ! -e "$1" ] || leaks "$1 is reachable"
[ ! -w /usr ] || leaks '/usr can be written'
[ -w . ] || leaks "the work directory $PWD cannot be written"
now=$(stat -L -c '%n %i' -- @places@ "$2" 2>/dev/null)
case $now in *ns/pid\ *ns/net\ *) ;; *) leaks 'its namespaces cannot be seen' ;; esac
end='
'
set -f; IFS=$end
for line in $now; do
  case $end$3$end in *"$end$line$end"*) ;; *) continue ;; esac
  case $line in
    *ns/net\ *) [ "$4" = open ] || leaks 'the network is reachable' ;;
    *ns/pid\ *) leaks 'other processes are reachable' ;;
    *) leaks "$2 is reachable" ;;
  esac
done
set +f; unset IFS
if [ "$4" = offline ]; then
  while read -r name rest; do
    case $name in
      lo:* | Inter-* | face) ;;
      *) leaks "the network device ${name%%:*} is reachable" ;;
    esac
  done < /proc/net/dev
fi
shift 4
if [ "${SANDBOX_TOLD-}" ]; then echo holds >&9; exec 9>&-; unset SANDBOX_TOLD; fi
[ "$1" != --prove ] || exit 0
exec "$@"
""".replace("@places@", PLACES)

OUTSIDE = r"""
command -v bwrap > /dev/null || {
  echo 'mngr: the sandbox requires bubblewrap; install the package bubblewrap' >&2; exit 97
}
mkdir -p -m 700 @private@ || exit 97
set -- -- sh -c @inside@ mngr @forbidden@ @home@ \
  "$(stat -L -c '%n %i' -- @places@ @home@ 2>/dev/null)" @mode@ "$@"
# A command started below the work directory stays there. bwrap warns about a second --chdir.
start=@work_dir@
case $PWD/ in @work_dir@/*) start=$PWD ;; esac
set -- --chdir "$start" "$@"
# Each exists in every sandbox of the agent, so it can never put a link there.
for each in @kept@; do
  [ -e "$each" ] || [ -h "$each" ] || : > "$each"
  [ -f "$each" ] && [ ! -h "$each" ] || { echo "mngr: $each was replaced" >&2; exit 97; }
  set -- --ro-bind "$each" "$each" "$@"
done
@resolver@@hide@exec bwrap @words@ "$@"
""".replace("@places@", PLACES)

# List what only root may read in /etc, which takes about 5 ms.
SECRETS = r"""[ "$(id -u)" != 0 ] || find /etc ! -perm -004 -prune -print 2>/dev/null"""
HIDE = rf"""while IFS= read -r each; do
  if [ -d "$each" ]; then set -- --tmpfs "$each" "$@"
  elif [ -e "$each" ]; then set -- --ro-bind /dev/null "$each" "$@"; fi
done <<END
$({SECRETS})
END
"""
RESOLVER = r"""resolver=$(readlink -f /etc/resolv.conf) && [ -f "$resolver" ] &&
  set -- --ro-bind "$resolver" "$resolver" "$@"
"""


class Sandbox(Struct):
    """The paths a command may access besides the system, which is read-only."""

    mode: str
    home: str
    """The user's home. Inside, the same path is a separate directory."""
    private: str
    """The folder of the directories that are home and /tmp inside."""
    forbidden: str
    """A file that exists outside and must not exist inside."""
    masked: tuple[str, ...] = ()
    hidden: tuple[str, ...] | None = None
    """The output of SECRETS; None means that the script runs it."""
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Files in writable directories that are run or read outside, so they are read-only inside."""
    mounts: tuple[tuple[str, str], ...] = ()
    """Writable directories, each with its path inside."""
    work_dir: str


def sandbox_script(box: Sandbox) -> str:
    """Return the script: `sh SCRIPT PROGRAM [ARGS]` runs a program, `--prove` only checks."""
    home = box.home if box.home.strip("/") else f"{box.private}/home"
    private = [f"{box.private}/home", f"{box.private}/tmp"]
    listed = "\n".join(box.hidden or ())
    filled = {
        "private": join(private),
        "inside": quote(INSIDE),
        "forbidden": quote(box.forbidden),
        "kept": join(box.kept),
        "home": quote(home),
        "mode": box.mode,
        "work_dir": quote(box.work_dir),
        "hide": HIDE if box.hidden is None else HIDE.replace(f"$({SECRETS})", listed),
        "resolver": RESOLVER if box.mode == OPEN else "",
        "words": join(_words(box, home, private)),
    }
    text = OUTSIDE
    for name, value in filled.items():
        text = text.replace(f"@{name}@", value)
    return text


def _words(box: Sandbox, home: str, private: list[str]) -> list[str]:
    """Return the mounts; later ones cover earlier ones: system, masks, then required paths."""
    words = [*WALLS, *(["--unshare-net"] if box.mode != OPEN else [])]
    words += ["--dir", "/var", "--tmpfs", "/var/tmp", "--tmpfs", "/run"]
    words += [word for path in SYSTEM for word in ("--ro-bind-try", path, path)]
    words += ["--bind", private[1], "/tmp", "--bind", private[0], home]
    words += [word for path in box.masked for word in ("--tmpfs", path)]
    words += [word for source, target in box.mounts for word in ("--bind", source, target)]
    words += [word for path in box.readable for word in ("--ro-bind-try", path, path)]
    words += [word for path in box.writable for word in ("--bind-try", path, path)]
    # A link in place of one of these directories would be mounted in the next sandbox.
    if any(is_within(box.private, path) for path in box.writable):
        words += ["--tmpfs", box.private]
    return [*words, "--setenv", "HOME", home, "--setenv", "TMPDIR", "/tmp"]


def is_system(path: str) -> bool:
    return any(is_within(path, each) for each in SYSTEM)


def is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Return absolute paths outside the system, without those inside another of them."""
    found: list[str] = []
    for path in sorted({os.path.normpath(each) for each in paths if os.path.isabs(each)}):
        if not is_system(path) and not any(is_within(path, each) for each in found):
            found.append(path)
    return tuple(found)
