"""Keep the output of an agent's program from the first byte: tmux pipes it to a file.

The file is in `logs/` and not in the agent's own folder: an agent in a sandbox can write to its
folder and could replace the file by a link. It is removed when the agent is purged.
"""

from __future__ import annotations

import os
import time

from mngr.model.quoting import quote
from mngr.model.state import ALIVE
from mngr.ops.look import event_log
from mngr.ops.look.listing import Agent, refreshed
from mngr.ops.work import transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal, TypeAlias

    from mngr.ops.world import World

    Stream: TypeAlias = Literal["stdout", "stderr"]

LARGEST = 4 << 20
"""Bytes after which a log is rotated; one older log is kept."""

# dd writes the result of each read at once; head and cat buffer it. Each dd makes up to 128 reads,
# so the size of the log is checked at least once per megabyte. At the end of the output dd reads
# nothing. A full disk ends this loop and does not affect the agent.
KEEP = r"""umask 077; log={log}
mkdir -p "${{log%/*}}"
while said=$(LC_ALL=C dd bs=8192 count=128 2>&1 >> "$log"); do
  case $said in "0+0 records in"*) exit ;; esac
  [ "$(wc -c < "$log")" -lt {largest} ] || mv -f "$log" "$log.1"
done"""

# Arguments: the log, and the offset that was read so far. Print its size on a line, then the rest.
SHOW = r"""
size=0; [ ! -f "$1" ] || size=$(wc -c < "$1")
echo $((size))
if [ "$size" -lt "$2" ] || [ -n "$3" ]; then
  [ ! -f "$1.1" ] || tail -c +$(($2 + 1)) "$1.1"
  set -- "$1" 0
fi
[ ! -f "$1" ] || tail -c +$(($2 + 1)) "$1" | head -c $((size - $2))
"""


def path(home: str, agent_id: str) -> str:
    return os.path.join(home, "logs", agent_id)


def keeper(home: str, agent_id: str) -> str:
    """Return the command that receives a terminal's output; tmux expands % and # in it."""
    script = KEEP.format(log=quote(path(home, agent_id)), largest=LARGEST)
    return script.replace("#", "##").replace("%", "%%")


def past(agent: Agent) -> bytes:
    """Return all kept output, from both files."""
    if agent.record.headless:  # its terminal may end before it has shown all of these files
        return event_log.read(agent, name="stdout") + event_log.read(agent, name="stderr")
    return _read(agent, 0, older=True)[1]


def follow(world: World, agent: Agent) -> Iterator[bytes]:
    """Yield all kept output, then new output until the agent has ended."""
    if agent.record.headless:
        yield from (data for _, data in stream(world, agent))
        return
    known, data = _read(agent, 0, older=True)
    yield data
    while True:
        # Read the state before the file, so that everything printed before the end is read.
        alive = bool(data) or refreshed(world, agent).state in ALIVE
        known, data = _read(agent, known)
        if data:
            yield data
        elif not alive:
            return
        else:
            time.sleep(transport.pause(agent.host, 0.2))


def _read(agent: Agent, known: int, older: bool = False) -> tuple[int, bytes]:
    """Return the size of the log and what was added; with `older` also the older file."""
    words = [path(agent.host.home, agent.id), str(known), "older" if older else ""]
    done = agent.host.run(["sh", "-c", SHOW, "mngr", *words], timeout=60)
    size, _, data = done.stdout.partition(b"\n")
    return int(size or known), data


INTERVAL = 0.05


def stream(world: World, agent: Agent) -> Iterator[tuple[Stream, bytes]]:
    """Yield the output until the agent has ended and everything it wrote was returned."""
    offsets: dict[Stream, int] = {"stdout": 0, "stderr": 0}
    while True:
        # Read the state before the files, so that everything written before the end is read.
        alive = refreshed(world, agent).state in ALIVE
        quiet = True
        for name, offset in offsets.items():
            if data := event_log.read(agent, offset, name):
                offsets[name] = offset + len(data)
                quiet = False
                yield name, data
        if quiet and not alive:
            return
        if quiet:
            time.sleep(INTERVAL)
