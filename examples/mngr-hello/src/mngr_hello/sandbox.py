"""A provider of one host: this machine, with another home and an empty environment.

`argv` returns the local command that runs a command on the host; ShellHost implements everything
else with it: attaching, messages, files and records. For a host behind ssh or in a container, only
that method differs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from mngr.hosts import tmux
from mngr.hosts.base import Capabilities, Host, HostRef
from mngr.hosts.shell import ShellHost
from mngr.settings.layers import Config


class SandboxProvider:
    name = "sandbox"

    def __init__(self, config: Config) -> None:
        # A provider defines its own settings, under providers.NAME.
        default = os.path.join(config.home, "sandbox")
        self._home = os.path.abspath(str(config.get("providers.sandbox.home", default)))

    def hosts(self) -> list[Host]:
        return [SandboxHost(self._home)]


class SandboxHost(ShellHost):
    # Paths are the same on this host, so agents can have worktrees of local repositories.
    capabilities = Capabilities(shares_files=True)

    def __init__(self, home: str) -> None:
        self.home = home
        self.ref = HostRef(id=f"host-{0x5A4D:032x}", name="sandbox", provider="sandbox")
        self.socket = tmux.socket_path(home, os.getuid())
        self.environment = {
            "HOME": os.path.join(home, "user"),
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "TERM": os.environ.get("TERM", "dumb"),
        }

    def argv(self, argv: Sequence[str], *, tty: bool = False) -> list[str]:
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        enter = 'mkdir -p "$HOME" && exec "$@"'
        return ["env", "-i", *variables, "sh", "-c", enter, "sh", *argv]
