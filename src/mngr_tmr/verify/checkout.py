"""The clean checkout of one check: its own clone, home and /tmp, in bubblewrap if that works.

Nothing is kept: a filter, hook, setting or file of one check cannot affect the next.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mngr.api import OFFLINE, OPEN, SECRETS, WALLS, Sandbox, is_within, outermost
from mngr.model.quoting import join
from mngr_tmr.run.settings import ProjectSettings

LOG_LIMIT = 400_000
PROBE_LIMIT = 32 << 20
CHECKOUT_FAILED, SETUP_FAILED, LEAKED = 90, 91, 97
REMOVE = r"""
remove() {
  rm -rf "$@" 2> /dev/null || { chmod -R u+rwX "$@" 2> /dev/null; rm -rf "$@"; }
}
"""

# git reads only the settings that come with the check. $1 the work tree, $2 the folder with
# the objects it borrows, $3 the commit, $4 the worker's own checkout, for its submodules.
FRESH = r"""
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
fresh() {
  hash=sha1; [ "${#3}" != 64 ] || hash=sha256
  git init -q --template= --object-format="$hash" -- "$1" || return 1
  cat "$own/gitconfig" >> "$1/.git/config" || return 1
  printf '%s\n' "$2" > "$1/.git/objects/info/alternates" || return 1
  mkdir "$1/.git/info" && echo __pycache__/ > "$1/.git/info/exclude" || return 1
  [ ! -f "$2/../shallow" ] || cp "$2/../shallow" "$1/.git/shallow" || return 1
  git -C "$1" checkout -q --detach --force "$3" || return 1
  [ ! -f "$1/.gitmodules" ] || submodules "$1" "$4"
}
submodules() {
  git -C "$1" ls-files -s | sed -n 's/^160000 \([0-9a-f]*\) 0\t/\1 /p' |
    while IFS=' ' read -r link path; do
      [ -d "$2/$path/.git/objects" ] || continue
      fresh "$1/$path" "$2/$path/.git/objects" "$link" "$2/$path"
    done
}
"""

# $1 a new folder, $2 the commit, $3 the worker's checkout, $4 the name of a folder for
# temporary files outside a sandbox, $5 whether files are fetched afterwards, $6 the set-up command,
# $7 the command for pytest, then its arguments. Standard input is for the probe; its lines go to
# stdout, pytest's output to stderr. Without a sandbox temporary files are in their usual place,
# because the path of a socket is limited to 108 characters.
CHECK = (
    r"""
own=$1 commit=$2 worker=$3 tmp=${TMPDIR:-/tmp}/$4 keep=$5 setup=$6 pytest=$7; shift 7
work=$own/work log=$own/log
"""
    + REMOVE
    + r"""
[ -n "$keep" ] || trap 'remove "$own" "$tmp"' EXIT
"""
    + FRESH
    + r"""
fresh "$work" "$worker/.git/objects" "$commit" "$worker" < /dev/null || exit CHECKOUT
unset GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM
inside() {
  if [ -f "$own/box" ]; then SANDBOX_TOLD=1 sh "$own/box" "$@" 9> "$own/proved"
  else
    mkdir -p "$own/home" && mkdir -p -m 700 "$tmp" && cd "$work" || exit CHECKOUT
    HOME=$own/home TMPDIR=$tmp "$@"
  fi
}
proved() {
  [ ! -f "$own/box" ] || [ -s "$own/proved" ] || { tail -c LOG_LIMIT "$log" >&2; exit LEAKED; }
}
if [ -n "$setup" ]; then
  (inside sh -c "$setup") > "$log" 2>&1 < /dev/null; code=$?
  proved
  [ "$code" = 0 ] || { tail -c LOG_LIMIT "$log" >&2; exit SETUP; }
fi
run='plug=$1 pytest=$2; shift 2
unset MNGR_AGENT_NAME MNGR_AGENT_ID MNGR_AGENT_STATE_DIR MNGR_AGENT_WORK_DIR
unset MNGR_HOST_DIR MNGR_GIT_BASE
export PYTHONPATH="$plug:$PWD/src:$PWD"; unset PYTHONDONTWRITEBYTECODE
eval "$pytest"'"' -p mngr_tmr_probe -o cache_dir=\"\$HOME/.pytest\" -q --rootdir . \"\$@\"'"
exec 3>&1
code=$({ {
  (inside sh -c "$run" mngr "$own/plug" "$pytest" "$@") 2> "$log" 3>&- 4>&-; echo $? >&4
} | head -c PROBE_LIMIT >&3; } 4>&1)
proved
tail -c LOG_LIMIT "$log" >&2
case $code in CHECKOUT | SETUP | LEAKED) code=89 ;; esac
exit "$code"
"""
)
for _name, _value in {
    "LOG_LIMIT": LOG_LIMIT,
    "PROBE_LIMIT": PROBE_LIMIT,
    "CHECKOUT": CHECKOUT_FAILED,
    "SETUP": SETUP_FAILED,
    "LEAKED": LEAKED,
}.items():
    CHECK = CHECK.replace(_name, str(_value))

# End and remove what an interrupted check left. Outside a sandbox, daemons leave its process group,
# but they have the folder for temporary files in their environment, which no other process has.
SWEEP = (
    REMOVE
    + r"""
tmp=${TMPDIR:-/tmp}/$1
for each in $(grep -lsF "TMPDIR=$tmp" /proc/[0-9]*/environ); do
  each=${each#/proc/}; kill -9 "${each%/environ}" 2>/dev/null
done
remove "$tmp"*
"""
)

_EMPTY_BOX = ["bwrap", *WALLS, "--unshare-net", "--ro-bind", "/", "/", "true"]
# In a worker that was just made: the user's home, whether bubblewrap works, and what it borrows.
LOOK = rf"""
printf '%s\n' "$HOME"
if command -v bwrap > /dev/null; then
  why=$({join(_EMPTY_BOX)} 2>&1) && why=yes
else why='bubblewrap is not installed'; fi
printf '%s\n' "$(printf %s "$why" | tail -n 1)"
({SECRETS}) | sed 's/^/hidden /'
printf '%s\n' "$PATH" | tr : '\n' | sed 's/^/program /'
find . -path '*/.git/objects/info/alternates' -exec sed 's/^/objects /' {{}} +
find . -name .git -exec printf 'objects %s\n' "$PWD"/{{}}/objects \;
"""

# $1 the command for pytest, $2 a new folder with the plugin.
ASK = r"""
mkdir -p "$2/empty" && cd "$2/empty" || exit 1
export PYTHONPATH="$2"
eval "$1"' -p mngr_tmr_survey' < /dev/null
cd / && rm -rf "$2"
"""


@dataclass(frozen=True)
class Surroundings:
    """What a worker's host offers to its checks."""

    home: str
    bare: str
    """Why checks have no sandbox there; "" if they have one."""
    objects: tuple[str, ...]
    hidden: tuple[str, ...]
    """Files that only root may read."""
    programs: tuple[str, ...]
    """Directories of programs in the user's home."""

    @classmethod
    def of(cls, told: bytes) -> Surroundings:
        home, works, *rest = os.fsdecode(told).splitlines()
        kinds = [line.partition(" ") for line in rest]
        objects, hidden, programs = (
            tuple(value for kind, _, value in kinds if kind == wanted)
            for wanted in ("objects", "hidden", "program")
        )
        own = tuple(p for p in programs if is_within(p, home) and p != home)
        return cls(home, "" if works == "yes" else works, objects, hidden, own)


@dataclass(frozen=True)
class Interpreter:
    """The Python that runs pytest, as reported by the survey."""

    places: tuple[str, ...] = ()
    prefix: str = ""
    modules: frozenset[str] = frozenset()

    @classmethod
    def of(cls, told: bytes) -> Interpreter:
        """Return the interpreter; empty if the command cannot run yet, as before the set-up."""
        for line in told.decode("utf-8", "replace").splitlines():
            if line.startswith("mngr-survey "):
                found = json.loads(line.removeprefix("mngr-survey "))
                places, modules = tuple(found["places"]), frozenset(found["modules"])
                return cls(places, found["prefix"], modules)
        return cls()


@dataclass(frozen=True)
class Room:
    """Where one check's files are on its host."""

    own: str
    """A folder whose name no other check knows."""
    home: str
    """mngr's home."""
    forbidden: str
    """A file in it."""
    repository: str = ""
    """Where the clone appears in the sandbox, so that editable installs lead to it."""


def sandbox(
    room: Room, place: Surroundings, python: Interpreter, project: ProjectSettings
) -> Sandbox:
    own, repository = room.own, room.repository
    work = repository or f"{own}/work"
    found = (*python.places, *place.programs)
    needed = [p for p in found if not is_within(place.home, p) and p != "/"]
    if repository:  # the rest of the path is in the clone itself
        kept = python.prefix or "/nowhere"
        needed = [p for p in needed if not is_within(p, repository) or is_within(p, kept)]
        needed = [p for p in needed if not is_within(repository, p)]
    own_words = [p.replace("~", place.home, 1) if p[:2] == "~/" else p for p in project.readable]
    return Sandbox(
        mode=OPEN if project.network else OFFLINE,
        home=place.home,
        private=f"{own}/private",
        forbidden=room.forbidden,
        masked=(room.home,),
        hidden=place.hidden,
        mounts=((f"{own}/work", work),),
        readable=(
            f"{own}/plug",
            *place.objects,
            *outermost([*needed, *own_words]),
        ),
        work_dir=work,
    )


def git_config(settings: Sequence[tuple[str, str]]) -> str:
    """Return the text of a git configuration file with these settings."""
    lines = []
    for key, value in settings:
        section, _, name = key.rpartition(".")
        quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'[{section}]\n\t{name} = "{quoted}"\n')
    return "".join(lines)


def orders(nonce: str, tests: Sequence[str], switches: Mapping[str, str]) -> bytes:
    """Return the standard input of the probe."""
    return json.dumps({"nonce": nonce, "select": list(tests), "switches": dict(switches)}).encode()
