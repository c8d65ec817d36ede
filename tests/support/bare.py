"""A host on this machine that is reached only through `env -i sh`, with its own home.

It shares no code path with the local host beyond the five methods, so running the CLI tests on
it proves that mngr requires nothing else of a host.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from mngr.hosts import tmux
from mngr.hosts.base import Capabilities, Host, HostRef
from mngr.hosts.shell import ShellHost
from mngr.plugins.registry import Registry
from mngr.settings.layers import Config


def register(registry: Registry) -> None:
    registry.provider("bare", "tests.support.bare:BareProvider")


class BareProvider:
    name = "bare"

    def __init__(self, config: Config) -> None:
        self._home = str(config.get("providers.bare.home"))

    def hosts(self) -> list[Host]:
        second = f"{self._home}2"
        return [BareHost(self._home), *([BareHost(second, 2)] if os.path.isdir(second) else [])]


class BareHost(ShellHost):
    capabilities = Capabilities(shares_files=True)

    def __init__(self, home: str, number: int = 1) -> None:
        self.home = home
        name = "bare" if number == 1 else f"bare{number}"
        self.ref = HostRef(id=f"host-{number:032x}", name=name, provider="bare")
        self.socket = tmux.socket_path(home, os.getuid())

    def argv(self, argv: Sequence[str], *, tty: bool = False) -> list[str]:
        clean = [
            f"{key}={os.environ[key]}" for key in ("HOME", "PATH", "TERM") if key in os.environ
        ]
        git_identity = [f"{k}={v}" for k, v in os.environ.items() if k.startswith("GIT_CONFIG_")]
        return ["env", "-i", *clean, *git_identity, "sh", "-c", 'exec "$@"', "sh", *argv]
