"""Agent names: unique per host, claimed by exclusive create.

A claim is valid while its agent has that name, or while its claimer is at work. So a claim never
has to be released: destroying or renaming the agent makes it void, and the next claimer supersedes
it with a higher revision.
"""

from __future__ import annotations

import os
import time

from mngr.errors import BadRecord, Taken
from mngr.hosts import processes
from mngr.hosts.base import CHANGING, Host
from mngr.model.address import check_name
from mngr.model.records import NameClaim, decode, encode, name_stem
from mngr.ops import versioned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ADJECTIVES = (
    "amber brave brisk calm clear cosy crisp eager early fair fleet fond gentle glad grand green "
    "happy hardy honest jolly keen kind light lively lucky mellow merry mild neat noble plain "
    "prime proud quick quiet rapid ready rosy round sharp shiny silver sleek smart snug solid "
    "spry steady still sunny swift tidy tough true vivid warm wise witty young zesty"
).split()
NOUNS = (
    "acorn alder anchor badger beacon birch bison brook canyon cedar clover comet coral crane "
    "delta ember falcon fern finch fjord forge fox garnet glade harbor hawk heron inlet ivory "
    "juniper kestrel lagoon larch lark linden lynx maple marten meadow mesa otter owl pebble "
    "pine plover quarry raven reef ridge robin rowan sable spruce summit swan thistle tundra "
    "walnut willow wren"
).split()


def random_name() -> str:
    dice = int.from_bytes(os.urandom(8))
    dice, adjective = divmod(dice, len(ADJECTIVES))
    dice, noun = divmod(dice, len(NOUNS))
    return f"{ADJECTIVES[adjective]}-{NOUNS[noun]}-{dice % 1000:03d}"


def claim(host: Host, name: str, agent_id: str, hint: str = "choose another") -> None:
    """Take `name` for `agent_id`, or raise Taken."""
    check_name(name)
    mine = _claim_by(agent_id)
    if host.swap(name_stem(host.home, name), 0, mine):
        return
    for _ in range(50):
        rev, holder = _current(host, name)
        if holder is not None and holder.agent_id == agent_id:
            return
        if holder is not None and _holds(host, name, holder):
            raise Taken(f"the name {name!r} is taken", hint)
        if host.swap(name_stem(host.home, name), rev, mine):
            return
    raise Taken(f"the name {name!r} is being claimed by another command", "try again")


def claim_any(host: Host, candidates: Iterable[str], agent_id: str) -> str:
    """Claim and return the first of these names that is free."""
    for name in candidates:
        try:
            claim(host, name, agent_id)
            return name
        except Taken:
            continue
    raise Taken("no free name found", "choose one with --name")


def numbered_from(name: str) -> Iterator[str]:
    """Yield `foo-2` and a hundred names with the numbers after it."""
    stem, _, number = name.rpartition("-")
    yield from (f"{stem}-{n}" for n in range(int(number), int(number) + 100))


def release(host: Host, name: str, agent_id: str) -> None:
    """Void this process's claim, which would otherwise last as long as the process."""
    void(host, name, agent_id, *versioned.current(host, name_stem(host.home, name)))


def void(host: Host, name: str, agent_id: str, rev: int, content: bytes) -> None:
    """Void a claim that is the newest one read; a newer claim belongs to another agent."""
    holder = _parsed(rev, content)
    if holder is not None and holder.agent_id == agent_id:
        host.swap(name_stem(host.home, name), rev, _claim_by(""))


def _claim_by(agent_id: str) -> bytes:
    worker = processes.this_process()
    return encode(NameClaim(agent_id=agent_id, worker=worker, time=time.time()))


def _current(host: Host, name: str) -> tuple[int, NameClaim | None]:
    rev, content = versioned.current(host, name_stem(host.home, name))
    return rev, _parsed(rev, content)


def _parsed(rev: int, content: bytes) -> NameClaim | None:
    try:
        return NameClaim.from_json(decode(content)) if rev else None
    except BadRecord:
        return None  # not written by mngr: supersede it


def _holds(host: Host, name: str, holder: NameClaim) -> bool:
    if not holder.agent_id:
        return False
    evidence = next(iter(host.read([holder.agent_id]).agents), None)
    if evidence is not None and evidence.record is not None:
        return evidence.record.name == name or _at_work(holder)
    # A record that could not be read because it kept changing may have this name.
    return (evidence is not None and evidence.problem == CHANGING) or _at_work(holder)


def _at_work(holder: NameClaim) -> bool:
    return processes.is_alive(holder.worker, since=holder.time, now=time.time())
