"""`mngr list --hosts`: list hosts instead of agents."""

from __future__ import annotations

import time

from mngr.api import Mngr
from mngr.cli.app.output import print_result, rows, warn
from mngr.cli.commands.list_rows import HOST, chosen, listed
from mngr.model.durations import written
from mngr.query import Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.api import Agent, Host, Lease
    from mngr.cli.app.output import Column, Row
    from mngr.cli.app.parser import Namespace
    from mngr.model.struct import Json

FIELDS = Fields(
    {**HOST, "agents": "int", "reason": "string", "time_left": "string", "cost": "double"}
)
COLUMNS: list[Column] = ["name", ("provider_name", "PROVIDER"), "state", "agents"]
WHERE_ANY = [("tags", "TAGS"), ("cost", "COST"), ("time_left", "TIME LEFT"), ("reason", "REASON")]


def show(args: Namespace) -> int:
    api = Mngr(args.config, args.registry)
    table = chosen(args, _hosts(api), FIELDS)
    errors: list[Json] = [{"message": problem} for problem in dict.fromkeys(api.problems)]
    listed(args, table, _columns(table), "hosts", errors, "No hosts found", FIELDS)
    return 0


def show_all(args: Namespace, api: Mngr) -> int:
    """Print all hosts, for `mngr host list`, which takes no filters."""
    table = _hosts(api)
    if args.quiet and args.format == "human":
        for row in table:
            print_result(args, row, "")
    else:
        rows(args, table, _columns(table), "hosts", empty="No hosts found")
    for problem in dict.fromkeys(api.problems):
        warn(problem)
    return 0


def _columns(table: Sequence[Row]) -> list[Column]:
    return [*COLUMNS, *(each for each in WHERE_ANY if any(row.get(each[0]) for row in table))]


def _hosts(api: Mngr) -> list[Row]:
    agents = api.list()
    told = api.leases()
    leases = {each.host_id: each for listed in told.values() for each in listed}
    unfinished: dict[str, Json] = {"state": "CREATING", "time_left": ""}
    return [
        *(
            _row(api, host, agents)
            | _state(api, host, leases.get(host.ref.id), host.ref.provider in told)
            for host in api.hosts()
        ),
        *(
            _row(api, host, ()) | unfinished | {"reason": reason}
            for host, reason in api.unfinished_hosts()
        ),
    ]


def _row(api: Mngr, host: Host, agents: Sequence[Agent]) -> dict[str, Json]:
    return {
        "id": host.ref.id,
        "name": host.ref.name,
        "provider_name": host.ref.provider,
        "tags": dict(host.ref.tags),
        "agents": sum(agent.host.ref.id == host.ref.id for agent in agents),
        "cost": _rounded(api.host_cost(host)),
    }


def _rounded(cost: float | None) -> float | None:
    return None if cost is None else round(cost, 4)


def _state(api: Mngr, host: Host, lease: Lease | None, told: bool) -> dict[str, Json]:
    """Return the state of a host, the time it has left, and the reason if it is not running.

    If `told`, the provider has listed its hosts, so a host without a lease no longer exists.
    """
    reason = api.silence(host)
    if told and lease is None:
        why = reason.removeprefix(f"host {host.ref.name} is stopped: ")
        return {"state": "STOPPED", "time_left": "", "reason": why}
    if lease is not None and not lease.running:
        return {"state": "STOPPED", "time_left": "", "reason": lease.reason}
    ends = lease.ends if lease else None
    left = written(ends - time.time()) if ends else ""
    return {"state": "UNREACHABLE" if reason else "RUNNING", "time_left": left, "reason": reason}
