"""Bare hosts named in a file, one per line; a line that ends in `!` is a host that never answers.

The home of each host is in the folder of that file. NAME.asked exists once a command ran on the
host.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mngr.errors import Unreachable
from mngr.hosts import tmux
from mngr.hosts.base import Host, HostRef
from mngr.model.completed import Completed
from mngr.plugins.registry import Registry
from mngr.settings.layers import Config
from tests.support.bare import BareHost

if TYPE_CHECKING:
    from mngr.hosts.spawn import Sink
    from tests.support.cli import Cli


def register(registry: Registry) -> None:
    registry.provider("fleet", "tests.support.fleet:FleetProvider")


@contextmanager
def fleet(cli: Cli, *names: str) -> Iterator[Path]:
    """Give the CLI these additional hosts; yield the file that names them."""
    listed = cli.base / "fleet/hosts"
    listed.parent.mkdir()
    listed.write_text("".join(f"{name}\n" for name in names))
    cli.env |= {
        "MNGR__PLUGINS__MODULES": '["tests.support.fleet"]',
        "MNGR__PROVIDERS__FLEET__HOSTS": str(listed),
    }
    yield listed
    for name in listed.read_text().replace("!", "").split():
        path = socket(cli, name)
        subprocess.run(["tmux", "-S", path, "kill-server"], capture_output=True, check=False)
        Path(path).unlink(missing_ok=True)


def socket(cli: Cli, name: str) -> str:
    return tmux.socket_path(str(cli.base / "fleet" / name), os.getuid())


class FleetProvider:
    name = "fleet"

    def __init__(self, config: Config) -> None:
        self._listed = Path(str(config.get("providers.fleet.hosts")))

    def hosts(self) -> list[Host]:
        return [FleetHost(self._listed.parent, n) for n in self._listed.read_text().split()]


class FleetHost(BareHost):
    def __init__(self, folder: Path, name: str) -> None:
        self.silent, name = name.endswith("!"), name.removesuffix("!")
        super().__init__(str(folder / name))
        self.ref = HostRef(id=f"host-{name.encode().hex():0>32}", name=name, provider="fleet")

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        timeout: float,
        sink: Sink | None = None,
    ) -> Completed:
        Path(f"{self.home}.asked").touch()
        if self.silent:
            raise Unreachable(f"host {self.ref.name} does not answer")
        return super().run(argv, input=input, timeout=timeout, sink=sink)
