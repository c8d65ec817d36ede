"""`mngr list --hosts`: the hosts themselves."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.cli.choosing import HOST, chosen, listed
from mngr.filters import Fields
from mngr.state import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from mngr.cli.output import Column, Row
    from mngr.struct import Json

FIELDS = Fields({**HOST, "agents": "int"})


def show(args: argparse.Namespace) -> int:
    api = Mngr(args.config, args.registry)
    table = chosen(args, _hosts(api), FIELDS)
    errors: list[Json] = [{"message": problem} for problem in dict.fromkeys(api.problems)]
    columns: list[Column] = ["name", ("provider_name", "PROVIDER"), "state", "agents"]
    listed(args, table, columns, "hosts", errors, "No hosts found", FIELDS)
    return 0


def _hosts(api: Mngr) -> list[Row]:
    agents = api.list()
    silent = {problem.who for problem in api.world.problems}
    silent |= {a.host.ref.name for a in agents if a.state is State.UNREACHABLE}
    return [
        {
            "id": host.ref.id,
            "name": host.ref.name,
            "provider_name": host.ref.provider,
            "state": "UNREACHABLE" if host.ref.name in silent else "RUNNING",
            "tags": dict(host.ref.tags),
            "agents": sum(agent.host.ref == host.ref for agent in agents),
        }
        for host in api.world.hosts()
    ]
