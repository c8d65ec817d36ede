"""A host reached only through its shell: everything follows from `argv`.

Needs POSIX sh, the standard utilities, tar, git and tmux over there; never Python.
"""

from __future__ import annotations

import io
import tarfile

from mngr import tmux, tmux_scripts
from mngr.errors import MngrError, Unreachable
from mngr.hosts import spawn
from mngr.hosts.base import CHANGING, Capabilities, Completed, HostReading, HostRef, newest
from mngr.hosts.evidence import read_evidence
from mngr.records import RECORD_LIMIT, TAIL
from mngr.state import Evidence, Pane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.hosts.base import Files

# Panes before files, as on every host: `exit` is written before its pane dies.
READ = (
    "home=$1 socket=$2; shift 2\n"
    + tmux_scripts.FUNCTIONS
    + r"""
date +%s
if command -v tmux >/dev/null; then
  [ -S "$socket" ] || restore_socket
  [ -S "$socket" ] && tmux -u -S "$socket" list-panes -a -F "$1" 2>/dev/null
else
  echo "error tmux is not installed"
fi
shift
cd "$home/agents" 2>/dev/null || { echo --; exit 0; }
[ $# -gt 0 ] || set -- agent-*
has_record() {
  for file in "$1"/agent.*.json; do
    number=${file##*/agent.}; number=${number%.json}
    case $number in *[!0-9]*|'') ;; *) return 0 ;; esac
  done
  return 1
}
for each in "$@"; do ! has_record "$each" || echo "agent $each"; done
echo --
tails=
for each in "$@"; do
  for link in transcript status; do
    [ -f "$each/$link" ] || continue
    [ -n "$tails" ] || tails=$(mktemp -d) || exit 1
    mkdir -p "$tails/$each" && tail -c TAIL "$each/$link" > "$tails/$each/$link"
  done
  shift
  set -- "$@" "$each"/agent.*.json "$each/started" "$each/exit" "$each/signals" \
    "$each/outcome.json"
done
[ -z "$tails" ] || set -- "$@" -C "$tails" .
tar -cf - "$@" 2>/dev/null || :
[ -z "$tails" ] || rm -rf "$tails"
""".replace("TAIL", str(TAIL))
)

PUT = r"""
stage=$(mktemp -d "$1/.put.XXXXXX") || exit 1; shift
trap 'rm -rf "$stage"' EXIT
tar -xpf - -C "$stage" || exit 1
number=0
for path in "$@"; do
  folder=${path%/*}
  [ -d "$folder" ] || (umask 077; mkdir -p "$folder") || exit 1
  beside=$folder/.${path##*/}.${stage##*.}
  mv -f "$stage/$number" "$beside" && mv -f "$beside" "$path" || { rm -f "$beside"; exit 1; }
  number=$((number + 1))
done
"""

# Prints `swapped` or `lost`. Why a higher revision is looked for: see LocalHost.swap.
SWAP = r"""
umask 077
stem=$1 rev=$2 next=$(($2 + 1))
[ "$rev" -gt 0 ] || mkdir -p "${stem%/*}" || exit 1
[ -d "${stem%/*}" ] || { echo lost; exit 0; }
beside=${stem%/*}/.${stem##*/}.swap.$$
cat > "$beside" || { rm -f "$beside"; [ -d "${stem%/*}" ] && exit 1; echo lost; exit 0; }
ln "$beside" "$stem.$next.json" 2>/dev/null; linked=$?
rm -f "$beside"
[ "$linked" -eq 0 ] || { echo lost; exit 0; }
for each in "$stem".*.json; do
  each=${each#"$stem".}; each=${each%.json}
  case $each in *[!0-9]*|'') continue ;; esac
  [ "$each" -le "$next" ] || { rm -f "$stem.$next.json"; echo lost; exit 0; }
done
for each in "$stem".*.json; do
  number=${each#"$stem".}; number=${number%.json}
  case $number in *[!0-9]*|'') continue ;; esac
  [ "$number" -gt "$rev" ] || rm -f "$each"
done
echo swapped
"""


ATTEMPTS = 10


class ShellHost:
    """Subclasses say how to get there: `argv`, and where home is."""

    ref: HostRef
    home: str
    socket: str
    capabilities = Capabilities()
    environment: dict[str, str] = {}

    def argv(self, argv: Sequence[str], *, tty: bool = False) -> list[str]:
        raise AssertionError("every ShellHost defines argv")

    def run(self, argv: Sequence[str], *, input: bytes | None = None, timeout: float) -> Completed:
        return spawn.run(self.argv(argv), input=input, timeout=timeout)

    def _script(self, script: str, *words: str, input: bytes | None = None) -> bytes:
        done = self.run(["sh", "-c", script, "mngr", *words], input=input, timeout=60)
        if done.code:
            raise MngrError(f"host {self.ref.name}: {done.complaint}")
        return done.stdout

    def read(self, ids: Sequence[str] | None = None) -> HostReading:
        reading, torn = self._read_once(ids)
        agents = {evidence.id: evidence for evidence in reading.agents}
        for _ in range(ATTEMPTS):
            if not torn:
                break
            # A record was replaced between the listing and the packing: look at those again.
            again, torn = self._read_once(torn)
            agents |= {evidence.id: evidence for evidence in again.agents}
        agents |= {each: Evidence(id=each, rev=0, record=None, problem=CHANGING) for each in torn}
        return reading.replace(agents=tuple(agents.values()))

    def _read_once(self, ids: Sequence[str] | None) -> tuple[HostReading, list[str]]:
        """One round trip; and the agents that are there but whose record was not caught."""
        fields = tmux.list_panes(self.socket)[-1]
        # The script reads every agent where none is named; no agent has this name.
        words = ("agent-",) if ids is not None and not ids else ids or ()
        answer = self._script(READ, self.home, self.socket, fields, *words)
        text, mark, archive = answer.partition(b"--\n")
        if not mark:
            raise Unreachable(f"host {self.ref.name} gave a torn answer")
        lines = text.decode("utf-8", "replace").splitlines()
        error = next((x.removeprefix("error ") for x in lines if x.startswith("error ")), "")
        there = [x.removeprefix("agent ") for x in lines if x.startswith("agent agent-")]
        panes = tmux.parse_panes("\n".join(lines[1:]))
        agents = tuple(_agents(_unpack(archive), panes))
        torn = sorted(set(there) - {evidence.id for evidence in agents})
        now = float(lines[0])
        return HostReading(host=self.ref, now=now, agents=agents, error=error), torn

    def put(self, files: Files) -> None:
        self._script('mkdir -p -m 700 "$1"\n' + PUT, self.home, *files, input=_pack(files))

    def swap(self, stem: str, rev: int, content: bytes) -> bool:
        return self._script(SWAP, stem, str(rev), input=content).strip() == b"swapped"


def _pack(files: Files) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for number, (content, mode) in enumerate(files.values()):
            info = tarfile.TarInfo(str(number))
            info.size, info.mode = len(content), mode
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def _unpack(data: bytes) -> dict[str, dict[str, bytes]]:
    """Small regular files by agent and name; an agent decides what lies in its folder."""
    found: dict[str, dict[str, bytes]] = {}
    if not data:
        return found
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                agent_id, _, name = member.name.removeprefix("./").partition("/")
                if member.isfile() and name and member.size <= RECORD_LIMIT + 1:
                    content = archive.extractfile(member)
                    found.setdefault(agent_id, {})[name] = content.read() if content else b""
    except tarfile.TarError as error:
        raise Unreachable(f"a torn archive of the agents' files arrived: {error}") from None
    return found


def _agents(folders: dict[str, dict[str, bytes]], panes: dict[str, list[Pane]]) -> list[Evidence]:
    agents = []
    for agent_id, files in folders.items():
        rev, name = newest(list(files), "agent")
        if rev and agent_id.startswith("agent-"):
            mine = tuple(panes.get(agent_id, ()))
            agents.append(read_evidence(agent_id, rev, files[name], files, mine))
    return agents
