"""A host on this machine that can stop answering.

While the file HOME.silent exists, it does not answer; while the file HOME.lost exists, its provider
cannot list its hosts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mngr.errors import Unreachable
from mngr.hosts.base import Host
from mngr.model.completed import Completed
from mngr.plugins.registry import Registry
from mngr.settings.layers import Config
from tests.support.bare import BareHost

if TYPE_CHECKING:
    from mngr.hosts.spawn import Sink


def register(registry: Registry) -> None:
    registry.provider("bare", "tests.support.silent:SilentProvider")


class SilentProvider:
    name = "bare"

    def __init__(self, config: Config) -> None:
        self._home = str(config.get("providers.bare.home"))

    def hosts(self) -> list[Host]:
        if os.path.exists(f"{self._home}.lost"):
            raise RuntimeError("the daemon is down")
        return [SilentHost(self._home)]


class SilentHost(BareHost):
    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        timeout: float,
        sink: Sink | None = None,
    ) -> Completed:
        if os.path.exists(f"{self.home}.silent"):
            raise Unreachable("host bare does not answer")
        return super().run(argv, input=input, timeout=timeout, sink=sink)
