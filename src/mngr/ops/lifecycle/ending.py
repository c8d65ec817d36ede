"""End the programs of any number of agents in one round trip per host."""

from __future__ import annotations

import os

from mngr.errors import MngrError
from mngr.hosts import tmux_scripts
from mngr.hosts.base import Host
from mngr.ops.world import World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TOGETHER = 500
"""Agents per call: the patterns of their processes must fit into one word of a command line."""


def end_processes(
    world: World, host: Host, ids: Mapping[str, str], *, force: bool = False
) -> dict[str, str]:
    """Save the screens, end every process, then the sessions; record each id's event.

    Return, by agent id, the launch of each session that was there.
    """
    launches: dict[str, str] = {}
    for first in range(0, len(ids), TOGETHER):
        some = dict(list(ids.items())[first : first + TOGETHER])
        launches |= _end(host, some, 0.0 if force else world.config.seconds("stop.grace"))
    return launches


def _end(host: Host, ids: Mapping[str, str], grace: float) -> dict[str, str]:
    words = [host.home, host.socket, str(max(1, round(grace))), tmux_scripts.patterns([*ids])]
    words += [word for pair in ids.items() for word in pair]
    patience = grace + 30 + 0.2 * len(ids)
    done = host.run(["sh", "-c", tmux_scripts.STOP, "mngr", *words], timeout=patience)
    if done.code:
        who = next(iter(ids)) if len(ids) == 1 else f"{len(ids)} agents"
        raise MngrError(f"some processes of {who} did not end", "see `mngr doctor`")
    found = (line.partition(" ") for line in os.fsdecode(done.stdout).splitlines())
    return {session: launch for session, _, launch in found}
