"""A host on this machine that acts as if it had its own disk: local paths mean nothing there."""

from __future__ import annotations

from mngr.hosts.base import Capabilities, Host
from mngr.plugins.registry import Registry
from mngr.settings.layers import Config
from tests.support.bare import BareHost


def register(registry: Registry) -> None:
    registry.provider("bare", "tests.support.apart:ApartProvider")


class ApartProvider:
    name = "bare"

    def __init__(self, config: Config) -> None:
        self._home = str(config.get("providers.bare.home"))

    def hosts(self) -> list[Host]:
        return [ApartHost(self._home)]


class ApartHost(BareHost):
    capabilities = Capabilities(shares_files=False)
