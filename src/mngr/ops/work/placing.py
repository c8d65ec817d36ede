"""Move staged files into place: compare everything first, then rename one by one.

This is implemented in Python for this machine and in sh for any host.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import stat

from mngr.model.struct import Struct
from mngr.ops.steps import step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Compared(Struct):
    """Staged files, grouped by the effect of placing them."""

    new: list[str]
    same: list[str]
    differing: list[str]
    blocked: list[str]
    """Something stands there that no file replaces: a directory, or a link on the way."""
    complete: bool = True
    """Whether the host got to the end of it."""


def compare(stage: str, root: str) -> Compared:
    """Return the relative paths of all staged files; a link is a file and never followed."""
    found = Compared(new=[], same=[], differing=[], blocked=[])
    if os.path.lexists(root) and not os.path.isdir(root):
        found.blocked.append(root)
        return found
    for folder, directories, files in os.walk(stage):
        below = os.path.relpath(folder, stage)
        links = [name for name in directories if os.path.islink(os.path.join(folder, name))]
        directories[:] = [name for name in directories if name not in links]
        for name in list(directories):
            path = os.path.normpath(os.path.join(below, name))
            if _bars(os.path.join(root, path)):
                found.blocked.append(path)
                directories.remove(name)
        for name in files + links:
            path = os.path.normpath(os.path.join(below, name))
            verdict = _verdict(os.path.join(stage, path), os.path.join(root, path))
            getattr(found, verdict).append(path)
    return found


def _bars(path: str) -> bool:
    """Return whether something other than a directory is at the path, even a link to one."""
    return os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path))


def _verdict(staged: str, target: str) -> str:
    if not os.path.lexists(target):
        return "new"
    mine, theirs = os.lstat(staged), os.lstat(target)
    if stat.S_ISDIR(theirs.st_mode):
        return "blocked"
    if stat.S_IFMT(mine.st_mode) != stat.S_IFMT(theirs.st_mode):
        return "differing"
    if stat.S_ISLNK(mine.st_mode):
        return "same" if os.readlink(staged) == os.readlink(target) else "differing"
    # Modes other than the executable bit depend on the umask at checkout.
    executable = (mine.st_mode & 0o100) == (theirs.st_mode & 0o100)
    return "same" if executable and filecmp.cmp(staged, target, shallow=False) else "differing"


def place(stage: str, root: str, found: Compared, modes: Mapping[str, int]) -> None:
    os.makedirs(root, exist_ok=True)
    made = []
    for folder in sorted(modes):
        target = os.path.join(root, folder) if folder else root
        if not os.path.isdir(target):
            os.mkdir(target, 0o700)
            made.append((target, modes[folder]))
    for path in found.new + found.differing:
        _rename(os.path.join(stage, path), os.path.join(root, path))
        step("one_placed")
    for target, mode in reversed(made):
        os.chmod(target, mode)


def _rename(staged: str, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        os.rename(staged, target)
    except OSError:  # another disk: copy the file next to the target first
        beside = f"{os.path.dirname(target)}/.{os.urandom(6).hex()}.mngr"
        try:
            shutil.copy2(staged, beside, follow_symlinks=False)
            os.rename(beside, target)
        except OSError:
            if os.path.lexists(beside):
                os.unlink(beside)
            raise


# $1 home, $2 work directory, $3 path in it, $4 tree or file, $5 force, $6 dry. Prints what it
# found as records that end in NUL: N new, S same, D differing, B blocked; E at its very end.
# A subtree that is new is moved whole.
WRITE = r"""
home=$1 work=$2 path=$3 kind=$4 force=$5 dry=$6
# Beside the records each kind leaves a mark: a name may hold a newline, and no grep finds its way.
say() { printf '%s%s\0' "$1" "${2#./}"; : > "$top/$1"; }
top=$(umask 077; mktemp -d "$home/.put.XXXXXX") || exit 1
trap 'chmod -R u+rwX "$top" 2>/dev/null; rm -rf "$top"' EXIT
stage=$top/files
mkdir "$stage" && tar -xpf - -C "$stage" || exit 1
cd "$work" || exit 1
case $kind in
  tree) parent=$path ;;
  file)
    case $path in */*) parent=${path%/*} ;; *) parent=. ;; esac
    for each in "$stage"/* "$stage"/.[!.]* "$stage"/..?*; do
      if [ -e "$each" ] || [ -L "$each" ]; then
        [ "$each" = "$stage/${path##*/}" ] || mv "$each" "$stage/${path##*/}" || exit 1
        break
      fi
    done ;;
esac
folder=. rest=$parent/
while [ -n "$rest" ]; do
  folder=$folder/${rest%%/*} rest=${rest#*/}
  if [ -L "$folder" ] || { [ -e "$folder" ] && [ ! -d "$folder" ]; }; then
    say B "$folder"; say E; exit 0
  fi
done
same() {
  if [ -L "$1" ] || [ -L "$2" ]; then
    [ -L "$1" ] && [ -L "$2" ] && [ "$(readlink "$1"; echo .)" = "$(readlink "$2"; echo .)" ]
  else
    [ -f "$1" ] && [ -f "$2" ] && cmp -s "$1" "$2" || return 1
    if [ -x "$1" ]; then [ -x "$2" ]; else [ ! -x "$2" ]; fi
  fi
}
into() { # rename, by way of a name beside it: the stage may be on another disk
  beside=${2%/*}/.mngr.$$.${top##*.}
  mv -f "$1" "$beside" || { rm -rf "$beside"; return 1; }
  if [ -L "$2" ]; then rm -f "$2"; fi
  mv -f "$beside" "$2"
}
# $1 what to do, $2 folder of the stage, $3 the same in the work directory
walk() (
  for each in "$2"/* "$2"/.[!.]* "$2"/..?*; do
    [ -e "$each" ] || [ -L "$each" ] || continue
    there=$3/${each##*/}
    if [ ! -e "$there" ] && [ ! -L "$there" ]; then
      if [ "$1" = place ]; then into "$each" "$there" || exit 1
      elif [ -L "$each" ] || [ ! -d "$each" ]; then say N "$there"
      else find "$each" ! -type d -exec sh -c '
          from=$1 to=${2#./}; shift 2
          for each; do printf "N%s\0" "$to${each#"$from"}"; done' mngr "$each" "$there" {} +
      fi
    elif [ -d "$each" ] && [ ! -L "$each" ]; then
      if [ -d "$there" ] && [ ! -L "$there" ]; then walk "$1" "$each" "$there" || exit 1
      else say B "$there"; fi
    elif [ -d "$there" ] && [ ! -L "$there" ]; then say B "$there"
    elif same "$each" "$there"; then [ "$1" = place ] || say S "$there"
    elif [ "$1" = place ]; then into "$each" "$there" || exit 1
    else say D "$there"; fi
  done
)
walk look "$stage" "$parent" || exit 1
if [ -e "$top/B" ] || { [ -z "$force" ] && [ -e "$top/D" ]; }; then dry=dry; fi
if [ -z "$dry" ]; then mkdir -p "$parent" && walk place "$stage" "$parent" || exit 1; fi
say E
"""


def parse(answer: bytes) -> Compared:
    """Parse the output of the script."""
    found = Compared(new=[], same=[], differing=[], blocked=[], complete=False)
    lists = {"N": found.new, "S": found.same, "D": found.differing, "B": found.blocked}
    for record in os.fsdecode(answer).split("\0"):
        if record == "E":
            return found.replace(complete=True)
        if record:
            lists[record[0]].append(record[1:])
    return found
