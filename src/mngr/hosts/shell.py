"""A host used only through its shell; everything builds on `argv`.

It requires POSIX sh, the standard utilities, tar, git and tmux on the host, never Python.
"""

from __future__ import annotations

from mngr.errors import Unreachable
from mngr.hosts import agent_files, spawn, tmux, tmux_scripts
from mngr.hosts.base import (
    CHANGING,
    Capabilities,
    CommandFailed,
    Files,
    HostReading,
    HostRef,
)
from mngr.hosts.evidence import CANDIDATES, first_record, read_evidence
from mngr.hosts.kept import ANSWER, Kept
from mngr.hosts.spawn import Sink
from mngr.model.completed import Completed
from mngr.model.quoting import join
from mngr.model.records import RECORD_LIMIT, TAIL, revision
from mngr.model.state import Evidence, Pane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# Read panes before files, as on every host: `exit` is written before its pane dies. `agent ID REV`
# means that this record exists, `agent ID REV odd` that it is not a regular file. find and tar
# follow no links; tar would read a name with a newline as several names or as an option.
READ = (
    "home=$1 socket=$2; shift 2\n"
    + tmux_scripts.FUNCTIONS
    + agent_files.FUNCTIONS
    + r"""
listed= many= newline='
'
if command -v tmux >/dev/null; then
  [ -S "$socket" ] || restore_socket
  panes() { tmux -u -S "$socket" list-panes -a -F "$1" \; display-message -p %s 2>/dev/null; }
  if [ -S "$socket" ]; then
    listed=$(panes "$1")
    case $listed in *"UNCOLLECTED"*) COLLECT; listed=$(panes "$1") ;; esac
  fi
else
  echo "error tmux is not installed"
fi
printf '%s\n' "$listed"
# Print the time if there is no tmux server, or if tmux cannot print it.
case ${listed##*"$newline"} in '' | *[!0-9]*) date +%s ;; esac
shift
cd "$home/agents" 2>/dev/null || { echo --; exit 0; }
[ $# -gt 0 ] || set -- agent-*
for each in "$@"; do
  shift
  case $each in *[!A-Za-z0-9-]*) continue ;; esac
  [ -d "$each" ] && [ ! -h "$each" ] || continue
  find_newest "$each/agent"
  [ "$best" -gt 0 ] || continue
  [ -h "$each/signals" ] || for file in "$each"/signals/*.json; do count=$((count + 1)); done
  [ "$count" -le CANDIDATES ] || many=1
  set -- "$@" "./$each"
  if [ "$best" = "$solid" ]; then odd=; else odd=" odd"; fi
  echo "agent $each $best$odd"
  made=../sandboxes/$each.json
  [ ! -f "$made" ] || { printf 'made %s ' "$each"; cat "$made"; }
done
echo --
[ $# -gt 0 ] || exit 0
tails=
trap 'rm -rf "$tails"' EXIT
trap 'exit 143' HUP INT TERM  # dash runs the first trap only if this one exits
for each in "$@"; do
  for link in transcript status; do
    [ -f "$each/$link" ] || continue
    target=$each/$link
    if [ -h "$target" ]; then
      target=$(readlink "$target"); case $target in /*) ;; *) target=$each/$target ;; esac
    fi
    plain "$target" || continue
    # Without a place for them, everything else is still read.
    [ -n "$tails" ] || tails=$(mktemp -d 2>/dev/null) ||
      tails=$(mktemp -d "$home/.put.XXXXXX" 2>/dev/null) || break 2
    mkdir -p "$tails/$each" && tail -c TAIL "$target" > "$tails/$each/$link"
  done
done
files() {
  find "$@" -type d \( -path './*/*/*' -o -path './*/*' ! -name signals \) -prune -o \
    -type f -size -2050 ! -name '*
*' \( -name 'agent.[1-9]*.json' -o -name started -o -name exit -o -name outcome.json \
      -o -path './*/signals/[!.]*.json' \) -print 2>/dev/null
}
few() { LC_ALL=C awk -F/ '++seen[$2, NF == 4, substr($3, 1, 6)] <= CANDIDATES'; }
pack() { set --; [ -z "$tails" ] || set -- -C "$tails" .; tar -cf - -T - "$@" 2>/dev/null || :; }
if [ -n "$many" ]; then files "$@" | few | pack; else files "$@" | pack; fi
""".replace("TAIL", str(TAIL))
    .replace("CANDIDATES", str(CANDIDATES))
    .replace("UNCOLLECTED", "\t1\t\t\t")  # dead, at no time and with no code
    .replace("COLLECT", tmux_scripts.COLLECT)
)

PUT = r"""
home=$1 stage=$(mktemp -d "$1/.put.XXXXXX") || exit 1; shift
trap 'rm -rf "$stage"' EXIT
trap 'exit 143' HUP INT TERM
tar -xpf - -C "$stage" || exit 1
number=0
for path in "$@"; do
  folder=${path%/*}
  [ -d "$folder" ] || (umask 077; mkdir -p "$folder") || exit 1
  case $path in "$home"/agents/*/*/*)
    [ ! -h "$folder" ] || { echo "$folder was replaced by a link" >&2; exit 1; } ;;
  esac
  [ ! -d "$path" ] || { echo "$path is a directory" >&2; exit 1; }
  beside=$folder/.${path##*/}.${stage##*.}
  mv -f "$stage/$number" "$beside" && mv -f "$beside" "$path" || { rm -f "$beside"; exit 1; }
  number=$((number + 1))
done
"""

# Print `swapped` or `lost`. LocalHost.swap explains the check for a higher revision.
SWAP = r"""
umask 077; set -C # the agent may put a link where a file is written
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
  case $each in *[!0-9]*|''|0*|??????????*) continue ;; esac
  [ "$each" -le "$next" ] || { rm -f "$stem.$next.json"; echo lost; exit 0; }
done
for each in "$stem".*.json; do
  number=${each#"$stem".}; number=${number%.json}
  case $number in *[!0-9]*|''|0*|??????????*) continue ;; esac
  [ "$number" -gt "$rev" ] || rm -f "$each"
done
echo swapped
"""


ATTEMPTS = 10


class ShellHost:
    """A host with a shell; subclasses implement `argv` and `home`."""

    ref: HostRef
    home: str
    socket: str
    capabilities = Capabilities()
    environment: dict[str, str] = {}
    patience = 15.0
    greets = False

    def argv(self, argv: Sequence[str], *, tty: bool = False) -> list[str]:
        raise AssertionError("every ShellHost defines argv")

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        timeout: float,
        sink: Sink | None = None,
    ) -> Completed:
        return spawn.run(self.argv(argv), input=input, timeout=timeout, sink=sink)

    def _script(
        self, script: str, *words: str, input: bytes | None = None, timeout: float = 60.0
    ) -> bytes:
        kept = Kept(f"host {self.ref.name}", ANSWER)
        argv = ["sh", "-c", script, "mngr", *words]
        done = self.run(argv, input=input, timeout=timeout, sink=kept)
        if done.code:
            raise CommandFailed(self.ref, done)
        return done.stdout

    def read(
        self, ids: Sequence[str] | None = None, after: Sequence[str] = (), patience: float = 0.0
    ) -> HostReading:
        reading, torn = self._read_once(ids, after, patience)
        agents = {evidence.id: evidence for evidence in reading.agents}
        before: dict[str, int] = {}
        # If a record was replaced between listing and packing, read it again. The same revision
        # twice is not a race: that file is too large to be a record.
        for _ in range(ATTEMPTS):
            if not torn or torn == before:
                break
            for gone in torn:
                agents.pop(gone, None)
            before = torn
            more, torn = self._read_once([*torn])
            agents |= {evidence.id: evidence for evidence in more.agents}
        lost = [each for each in torn if agents[each].record is None]
        agents |= {each: Evidence(id=each, rev=0, record=None, problem=CHANGING) for each in lost}
        return reading.replace(agents=tuple(agents.values()))

    def _read_once(
        self, ids: Sequence[str] | None, after: Sequence[str] = (), patience: float = 0.0
    ) -> tuple[HostReading, dict[str, int]]:
        """Read once; return also the agents whose newest record was missed, with its revision."""
        fields = tmux.list_panes(self.socket)[-1]
        # Without names the script reads every agent; no agent has this name.
        words = ("agent-",) if ids is not None and not ids else ids or ()
        given = (self.home, self.socket, fields, *words)
        first = f"{join(after)} > /dev/null || exit\n" if after else ""
        answer = self._script(first + READ, *given, timeout=self.patience + patience)
        # The name of a window is the last word of a line, and may end with two dashes.
        text, mark, archive = answer.partition(b"\n--\n")
        if not mark:
            raise Unreachable(f"host {self.ref.name} gave an incomplete answer")
        # Not splitlines: a title may contain characters that Python treats as line ends.
        lines = text.decode("utf-8", "replace").split("\n")
        # These are bytes, because the words of a command may not be UTF-8.
        made = dict(x.split(b" ", 2)[1:] for x in text.split(b"\n") if x.startswith(b"made agent-"))
        panes = tmux.parse_panes("\n".join(lines))
        told = [line for line in lines if "\t" not in line]  # a pane's line has tabs
        now = next((float(line) for line in told if line.isdecimal()), 0.0)
        error = next((x.removeprefix("error ") for x in told if x.startswith("error ")), "")
        folders = _unpack(archive)
        agents, torn = [], {}
        for _, agent_id, rev, *odd in (x.split() for x in told if x.startswith("agent agent-")):
            files = folders.get(agent_id, {}) | {"made": made.get(agent_id.encode(), b"")}
            evidence, caught = _evidence(agent_id, int(rev), files, panes)
            agents.append(evidence)
            if caught < int(rev) and not odd:
                torn[agent_id] = int(rev)
        reading = HostReading(now=now, agents=tuple(agents), error=error)
        return reading, torn

    def put(self, files: Files) -> None:
        self._script('mkdir -p -m 700 "$1" || exit\n' + PUT, self.home, *files, input=_pack(files))

    def swap(self, stem: str, rev: int, content: bytes) -> bool:
        return self._script(SWAP, stem, str(rev), input=content).strip() == b"swapped"


BLOCK = 512


def _pack(files: Files) -> bytes:
    """Return an archive of files named 0, 1, ...; importing tarfile would be too slow."""
    parts = []
    for number, (content, mode) in enumerate(files.values()):
        fields = (b"%07o" % mode, b"%07o" % 0, b"%07o" % 0, b"%011o" % len(content), b"%011o" % 0)
        head = b"%d" % number
        head = head.ljust(100, b"\0") + b"\0".join(fields) + b"\0" + b" " * 8 + b"0"
        head = (head.ljust(257, b"\0") + b"ustar\x0000").ljust(BLOCK, b"\0")
        head = head[:148] + b"%06o\0 " % sum(head) + head[156:]
        parts += [head, content, bytes(-len(content) % BLOCK)]
    packed = b"".join([*parts, bytes(2 * BLOCK)])
    return packed + bytes(-len(packed) % (20 * BLOCK))


def _unpack(data: bytes) -> dict[str, dict[str, bytes]]:
    """Return small regular files by agent and name; the content is untrusted."""
    found: dict[str, dict[str, bytes]] = {}
    for path, content in _members(data):
        agent_id, _, name = path.removeprefix("./").partition("/")
        if name:
            found.setdefault(agent_id, {})[name] = content[: RECORD_LIMIT + 1]
    return found


def _members(data: bytes) -> Iterable[tuple[str, bytes]]:
    """Yield path and content of each regular file; use tarfile if the archive is unusual."""
    found: list[tuple[str, bytes]] = []
    at = 0
    while at < len(data):
        head = data[at : at + BLOCK]
        if not head.rstrip(b"\0"):
            return found
        size, kind = head[124:135], head[156:157]
        if head[345:346] != b"\0" or not size.isdigit():
            break
        at += BLOCK
        if kind in (b"0", b"\0"):
            name, length = head[:100].partition(b"\0")[0], int(size, 8)
            found.append((name.decode("utf-8", "surrogateescape"), data[at : at + length]))
            at += length + -length % BLOCK
        elif kind != b"5":
            break
    return _all_members(data) if data else found


def _all_members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the members by tarfile, which handles long names, large sizes and the like."""
    import io
    import tarfile

    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                if member.isfile() and (content := archive.extractfile(member)):
                    yield member.name, content.read(RECORD_LIMIT + 1)
    except tarfile.TarError as error:
        raise Unreachable(f"the archive of the agents' files is incomplete: {error}") from None


def _evidence(
    agent_id: str, listed: int, files: dict[str, bytes], panes: dict[str, list[Pane]]
) -> tuple[Evidence, int]:
    """Return the evidence of an agent, and the highest revision in it."""
    caught = sorted(((revision(name, "agent"), name) for name in files), reverse=True)
    contents = (files[name] for rev, name in caught if rev)
    record = first_record(agent_id, contents, files["made"])
    newest = caught[0][0] if caught else 0
    mine = tuple(panes.get(agent_id, ()))
    return read_evidence(agent_id, max(listed, newest), record, files, mine), newest
