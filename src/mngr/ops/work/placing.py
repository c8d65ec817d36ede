"""Move staged files into place: compare everything first, then rename one by one.

One script does this on every host and on this machine. Whenever it is killed, each file is the old
one or the new one, and running it again completes the work.
"""

from __future__ import annotations

import os

from mngr.model.struct import Struct

# Arguments: a folder with the staged files in `files`, the target directory, the path in it, force,
# dry. Print records that end in NUL: N new, S same, D differing, B blocked; E at the very end. A
# new subtree is moved as a whole.
PLACE = r"""
top=$1 work=$2 parent=$3 force=$4 dry=$5
# Each kind of record also creates a file, because names with newlines cannot be searched with grep.
say() { printf '%s%s\0' "$1" "${2#./}"; : > "$top/$1"; }
cd "$work" || exit 1
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
# Rename; mv would move a file into a directory that a link leads to. -T is GNU's, -h is BSD's.
rename() {
  if [ ! -L "$2" ] || [ ! -d "$2" ]; then mv -f "$1" "$2"
  else
    mv -fT "$1" "$2" 2>/dev/null || mv -fh "$1" "$2" 2>/dev/null ||
      { rm -f "$2" && mv -f "$1" "$2"; }
  fi
}
into() { # through a name beside the target, because the stage may be on another disk
  beside=${2%/*}/.mngr-placing.$$.${top##*/}
  mv -f "$1" "$beside" && rename "$beside" "$2" || { rm -rf "$beside"; return 1; }
}
sweep() { # remove such names of killed processes, including zombies
  for each in "$1"/.mngr-placing.*; do
    pid=${each#"$1"/.mngr-placing.} pid=${pid%%.*}
    kill -0 "$pid" 2>/dev/null && case $(ps -o stat= -p "$pid" 2>/dev/null) in Z*) false ;; esac ||
      rm -rf "$each"
  done
}
# $1 the action, $2 a folder of the staging directory, $3 the same folder of the work directory
walk() (
  [ "$1" = look ] || sweep "$3"
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
    elif [ "$1" = place ]; then into "$each" "$there" || exit 1
    elif same "$each" "$there"; then say S "$there"; printf '%s\0' "$each" >> "$top/same"
    else say D "$there"; fi
  done
)
[ "$parent" = . ] || parent=./$parent # it may begin with a dash
# Only a directory that can be written can be moved. A new one gets its mode back at the end.
(cd "$top/files" && find . -type d ! -perm -200 -print0) > "$top/shut" || exit 1
if [ -s "$top/shut" ]; then
  xargs -0 sh -c '
    for each; do [ -e "$0/$each" ] || printf "%s\0" "$each"; done
  ' "$parent" < "$top/shut" > "$top/new"
  (cd "$top/files" && xargs -0 chmod u+w < "$top/shut") || exit 1
fi
walk look "$top/files" "$parent" || exit 1
if [ -e "$top/B" ] || { [ -z "$force" ] && [ -e "$top/D" ]; }; then dry=dry; fi
if [ -z "$dry" ]; then
  [ ! -e "$top/same" ] || xargs -0 rm -f < "$top/same" || exit 1
  mkdir -p "$parent" && walk place "$top/files" "$parent" || exit 1
  [ ! -s "$top/new" ] || (cd "$parent" && xargs -0 chmod u-w < "$top/new") || exit 1
fi
say E
"""

# Arguments: mngr's home, a new name for a single file or "", then those of PLACE without the first.
# Standard input: a tar of the files.
UNPACK_AND_PLACE = (
    r"""
top=$(umask 077; mktemp -d "$1/.put.XXXXXX") || exit 1
trap 'chmod -R u+rwX "$top" 2>/dev/null; rm -rf "$top"' EXIT
trap 'exit 143' HUP INT TERM
mkdir "$top/files" && tar -xpf - -C "$top/files" >&2 || exit 1
if [ -n "$2" ]; then
  for each in "$top/files"/* "$top/files"/.[!.]* "$top/files"/..?*; do
    if [ -e "$each" ] || [ -L "$each" ]; then
      [ "$each" = "$top/files/$2" ] || mv "$each" "$top/files/$2" || exit 1
      break
    fi
  done
fi
shift 2; set -- "$top" "$@"
"""
    + PLACE
)


class Placement(Struct):
    """Staged files, grouped by the effect of placing them."""

    new: list[str] = []
    same: list[str] = []
    differing: list[str] = []
    blocked: list[str] = []
    """Files whose target, or a parent of it, is a directory or link."""
    complete: bool = False
    """Whether the script finished."""


def parse(answer: bytes) -> Placement:
    """Return the records that PLACE printed."""
    found = Placement()
    lists = {"N": found.new, "S": found.same, "D": found.differing, "B": found.blocked}
    for record in os.fsdecode(answer).split("\0"):
        if record == "E":
            return found.replace(complete=True)
        if record:
            lists[record[0]].append(record[1:])
    return found
