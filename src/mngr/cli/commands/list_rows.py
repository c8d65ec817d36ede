"""Which rows `list` shows, in which order and with which columns."""

from __future__ import annotations

from mngr.cli.app.options import count
from mngr.cli.app.output import rows, warn
from mngr.cli.app.targets import check_providers
from mngr.cli.app.templates import parse_template
from mngr.errors import UsageError
from mngr.query import Fields, compile_filter, mentioned, select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mngr.cli.app.output import Column, Row
    from mngr.cli.app.parser import Namespace, Parser
    from mngr.model.struct import Json

    Test = Callable[[Row], bool]

HOST = {
    "id": "string",
    "name": "string",
    "provider": "string",
    "provider_name": "string",
    "state": "string",
    "tags": "string map",
}

FIELDS = Fields(
    {
        "id": "string",
        "name": "string",
        "type": "string",
        "command": "string",
        "argv": "list",
        "work_dir": "string",
        "initial_branch": "string",
        "sandbox": "string",
        "create_time": "string",
        "start_time": "string",
        "state": "string",
        "state_reason": "string",
        "state_since": "string",
        "pid": "int",
        "labels": "string map",
        "project": "string",
        "idle_seconds": "double",
        "runtime_seconds": "double",
        "exit_code": "int",
        "usage": "any",
        "archived": "bool",
        "host": HOST,
        "plugin": "map",
        "ahead": "int",
        "behind": "int",
        "dirty": "int",
        "cost": "double",
        "tokens": "int",
        "idle": "int",
        "changes": {"commits": "int", "added": "int", "removed": "int"},
    }
)

ON_REQUEST = ("ahead", "behind", "dirty", "cost", "tokens", "idle", "usage", "changes")
"""Columns that are computed only if an option or template names them."""

STATES = {
    "running": ("RUNNING",),
    "waiting": ("WAITING",),
    "stopped": ("STOPPED",),
    "failed": ("FAILED",),
    "done": ("DONE",),
    "lost": ("LOST",),
    "active": ("CREATING", "RUNNING", "WAITING"),
}


def add_filters(parser: Parser) -> None:
    add = parser.add_argument
    help = "list only agents that match this filter; repeatable"
    add("--include", action="append", metavar="EXPR", help=help)
    help = "skip agents that match this filter; repeatable"
    add("--exclude", action="append", metavar="EXPR", help=help)
    for flag, states in STATES.items():
        help = "agents that are alive: CREATING, RUNNING or WAITING"
        if flag != "active":
            help = f"agents in state {states[0]}"
        add(f"--{flag}", action="store_true", help=help)
    add("--archived", action="store_true", help="archived agents")
    add("--local", action="store_true", help="agents on this machine")
    add("--remote", action="store_true", help="agents on other hosts")
    help = "agents on hosts of this provider; repeatable"
    add("--provider", action="append", help=help, completes="provider")
    add("--type", action="append", help="agents of this type; repeatable", completes="type")
    add("--project", action="append", help="agents of this project; repeatable")
    add("--label", action="append", metavar="K[=V]", help="agents with this label; repeatable")
    help = "agents on hosts with this tag; repeatable"
    add("--host-label", action="append", metavar="K[=V]", help=help)
    help = "sort by fields, such as `state,create_time:desc`"
    add("--sort", metavar="FIELDS", help=help, completes="field")
    help = "columns to show, such as `name,host.name,labels.team`"
    add("--fields", metavar="FIELDS", help=help, completes="field")
    add("--limit", type=lambda text: count(text, 1), metavar="N", help="list at most N agents")
    add("--ids", action="store_true", help="print only ids, one per line")


def chosen(args: Namespace, table: Sequence[Row], fields: Fields = FIELDS) -> list[Row]:
    """Return the rows filtered, sorted and limited. The options are checked even without rows."""
    tests = list(_tests(args, fields))
    sort = parse_sort(args.sort, fields) if args.sort is not None else list
    return sort(row for row in table if all(test(row) for test in tests))[: args.limit]


def providers(args: Namespace) -> list[str] | None:
    """Return the providers whose hosts are listed; None for all."""
    check_providers(args, args.provider)
    if not args.provider and args.local == args.remote:
        return None
    known = args.provider or args.registry.names("provider")
    return [name for name in known if args.local == args.remote or (name == "local") is args.local]


def requested(args: Namespace) -> list[str]:
    """Return the expensive columns that an option or template names."""
    said = {name for each in (*args.include, *args.exclude) for name in mentioned(each)}
    columns = [*(args.fields or "").split(","), *(args.sort or "").split(",")]
    if "{" in args.format:
        columns += [field for _, field in parse_template(args.format)]
    said |= {name.strip(" -").partition(":")[0].partition(".")[0] for name in columns}
    return [name for name in ON_REQUEST if name in said]


def _tests(args: Namespace, fields: Fields) -> Iterator[Test]:
    for expression in args.include:
        yield compile_filter(expression, fields, "--include")
    for expression in args.exclude:
        yield _negated(compile_filter(expression, fields, "--exclude"))
    asked = providers(args)
    if asked is not None:
        where = "host.provider_name" if fields is FIELDS else "provider_name"
        yield lambda row: select(row, where) in asked
    for wanted in args.host_label:
        yield _labelled(wanted, "host.tags" if fields is FIELDS else "tags")
    if fields is FIELDS:
        yield from _agent_tests(args)


def _negated(test: Test) -> Test:
    return lambda row: not test(row)


def _agent_tests(args: Namespace) -> Iterator[Test]:
    states = [state for flag in STATES if getattr(args, flag) for state in STATES[flag]]
    if states or args.archived:
        yield lambda row: row["state"] in states or (args.archived and bool(row["archived"]))
    if not _wants_archived(args):
        yield lambda row: not row["archived"]
    if args.type:
        yield lambda row: row["type"] in args.type
    if args.project:
        yield lambda row: row["project"] in args.project
    for wanted in args.label:
        yield _labelled(wanted, "labels")


def _wants_archived(args: Namespace) -> bool:
    """Return whether archived agents are requested: by flag, by name, or by an expression."""
    named = args.stdin or args.target
    return args.archived or named or any("archived" in mentioned(e) for e in args.include)


def _labelled(wanted: str, where: str) -> Test:
    key, equals, value = wanted.partition("=")
    if not key:
        raise UsageError(f"expected a label as K or K=V, not {wanted!r}")

    def test(row: Row) -> bool:
        labels = select(row, where)
        assert isinstance(labels, dict)
        return key in labels and (not equals or labels[key] == value)

    return test


def parse_fields(text: str, fields: Fields) -> list[str]:
    """Return the known names in a list such as `name,state,host.name,labels.team`."""
    names = _split(text, "--fields")
    for name in names:
        fields.find(name, "in --fields")
    return names


def _split(text: str, where: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise UsageError(f"{where} has an empty field name: {text[:60]!r}")
    return names


def parse_sort(text: str, fields: Fields) -> Callable[[Iterable[Row]], list[Row]]:
    """Return a function that sorts rows by an order such as `-create_time,name` or `name:desc`.

    Nulls come last in either direction; values of different types are grouped by type.
    """
    columns = [_direction(item, fields) for item in _split(text, "--sort")]

    def sort(rows: Iterable[Row]) -> list[Row]:
        found = list(rows)
        for name, down in reversed(columns):
            found.sort(key=lambda row: _rank(select(row, name), down), reverse=down)
        return found

    return sort


def _direction(item: str, fields: Fields) -> tuple[str, bool]:
    name, colon, word = item.rpartition(":")
    if not colon or word not in ("asc", "desc"):
        name, word = item.removeprefix("-"), "desc" if item.startswith("-") else "asc"
    elif name.startswith("-"):
        raise UsageError(f"{item!r} in --sort gives the direction twice", f"use {item[1:]}")
    fields.find(name, "in --sort")
    return name, word == "desc"


def _rank(value: Json, down: bool) -> tuple[object, ...]:
    """Return a sort key, for an order that is reversed if it is `down`."""
    if value is None or value != value:  # NaN cannot be compared with numbers
        return (not down,)
    if isinstance(value, (bool, int, float, str)):
        return (down, 0 if isinstance(value, bool) else 2 if isinstance(value, str) else 1, value)
    import json

    return (down, 3, json.dumps(value, sort_keys=True))


def listed(
    args: Namespace,
    table: Sequence[Row],
    columns: Sequence[Column],
    envelope: str,
    errors: Sequence[Json],
    empty: str,
    fields: Fields,
) -> None:
    """Print the rows, with the columns asked for in every format."""
    if (args.ids or args.quiet) and args.format == "human":
        args.format = "{id}"
    if args.fields is not None:
        columns = names = parse_fields(args.fields, fields)
        if args.format in ("json", "jsonl"):
            table = [{name: select(row, name) for name in names} for row in table]
    if args.format == "json":
        for error in errors:
            warn(str(error["message"]) if isinstance(error, dict) else str(error))
    rows(args, table, columns, envelope, errors, empty, fields.names())
