"""One world is asked by many threads: `create --batch`, and jobs for several agents."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mngr.hosts.base import Host
from mngr.hosts.local import LocalProvider
from mngr.ops.world import World
from mngr.plugins.registry import Registry
from mngr.settings.layers import Config
from tests.support.cli import until

entered = threading.Semaphore(0)
go = threading.Event()


class Slow(LocalProvider):
    """Says which hosts it has when it is let."""

    def hosts(self) -> list[Host]:
        entered.release()
        assert go.wait(60)
        return super().hosts()


def test_a_thread_that_asks_while_hosts_are_looked_for_gets_them_all(tmp_path: Path) -> None:
    registry = Registry()
    registry.provider("slow", f"{__name__}:Slow")
    world = World(Config.load(str(tmp_path), str(tmp_path), {}, []), registry)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(world.hosts)
        assert entered.acquire(timeout=60)
        second = pool.submit(world.hosts)
        until(lambda: second.done() or entered.acquire(blocking=False), 60, "the second asks")
        go.set()
        assert [host.ref.name for host in second.result(60)] == ["localhost"]
        assert [host.ref.name for host in first.result(60)] == ["localhost"]
