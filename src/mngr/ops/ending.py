"""End agents' programs: one visit to the host, however many they are."""

from __future__ import annotations

from mngr import tmux_scripts
from mngr.errors import MngrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.hosts.base import Host
    from mngr.ops.world import World


def end_processes(world: World, host: Host, ids: Sequence[str]) -> None:
    """Save the screens, end every process, then the sessions."""
    grace = world.config.seconds("stop.grace")
    words = [host.home, host.socket, str(max(1, round(grace))), *ids]
    patience = grace + 30 + 0.2 * len(ids)
    done = host.run(["sh", "-c", tmux_scripts.STOP, "mngr", *words], timeout=patience)
    if done.code:
        who = ids[0] if len(ids) == 1 else f"{len(ids)} agents"
        raise MngrError(f"some processes of {who} did not end", "see `mngr doctor`")
