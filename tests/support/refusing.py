"""A host on this machine that refuses the first attempt of every testing agent.

While the file HOME.silent exists, it does not answer, and adds a line to that file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from mngr.errors import MngrError, Unreachable
from mngr.hosts.base import Host, HostReading
from mngr.plugins.registry import Registry
from mngr.settings.layers import Config
from tests.support.bare import BareHost


def register(registry: Registry) -> None:
    registry.provider("bare", "tests.support.refusing:RefusingProvider")


class RefusingProvider:
    name = "bare"

    def __init__(self, config: Config) -> None:
        self._home = str(config.get("providers.bare.home"))

    def hosts(self) -> list[Host]:
        return [RefusingHost(self._home)]


class RefusingHost(BareHost):
    def read(
        self, ids: Sequence[str] | None = None, after: Sequence[str] = (), patience: float = 0.0
    ) -> HostReading:
        silent = f"{self.home}.silent"
        if os.path.exists(silent):
            with open(silent, "a") as file:
                file.write("asked\n")
            raise Unreachable("host bare does not answer")
        return super().read(ids, after, patience)

    def swap(self, stem: str, rev: int, content: bytes) -> bool:
        record = json.loads(content)
        tester = record.get("labels", {}).get("role") == "tester"
        if tester and record["name"].endswith("-1"):
            raise MngrError("host bare: no room for another agent")
        return super().swap(stem, rev, content)
