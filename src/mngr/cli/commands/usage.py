"""`mngr usage`: show the tokens and the cost of agents."""

from __future__ import annotations

import time

from mngr.api import Mngr
from mngr.cli.app import targets
from mngr.cli.app.output import many, one, rows, warn
from mngr.errors import MngrError, TimedOut, UsageError
from mngr.model.durations import exactly, parse_duration
from mngr.model.state import ALIVE
from mngr.query import Fields, compile_filter
from mngr.settings.schema import join_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mngr.api import Agent, Usage
    from mngr.cli.app.output import Column
    from mngr.cli.app.parser import Namespace, Parser
    from mngr.model.struct import Json

DESCRIPTION = """\
Show tokens and dollars for each agent that reports its usage, for each value of a label, and in \
total. Without TARGET, all agents are included.

With --wait, wait until the total meets the condition given with --until."""

NOTES = """\
Conditions are filter expressions over agents (their number), tokens, input, output, cache_read, \
cache_write and cost.

The cost is computed from the setting `prices`, by the longest known prefix of the model's name: \
prices."claude-sonnet-5".input, .output, .cache_read and .cache_write are dollars per million \
tokens. An agent that used a model without a price has no cost, and the total does not include \
that model; a warning is printed on standard error, and `unpriced` lists the models.

The cost of hosts is not part of the total. It is printed on standard error, and `mngr host list` \
shows it per host. See `providers.modal.cpu_price` in docs/hosts.md.

JSON output has `usage`, a list, `total`, and `hosts`, the list of hosts that cost money. With a \
template or `jsonl`, the total is not printed."""

NUMBERS = ("tokens", "input", "output", "cache_read", "cache_write")
FIELDS = Fields({"agents": "int", **dict.fromkeys(NUMBERS, "int"), "cost": "double"})
INTERVAL = 0.5


def configure(parser: Parser) -> None:
    parser.description, parser.notes = DESCRIPTION, NOTES
    targets.add_targets(parser, "agents")
    add = parser.add_argument
    add("--by", type=_label, metavar="label:K", help="group by the values of a label")
    add("--wait", action="store_true", help="wait until the total meets the --until condition")
    add("--until", metavar="EXPR", help="condition for --wait, such as `cost > 5`")
    help = "maximum time to wait; then exit with 124"
    add("--timeout", type=parse_duration, metavar="DURATION", help=help)
    parser.examples = [
        ("show the usage so far", "mngr usage"),
        ("group by ticket", "mngr usage --by label:ticket"),
        ("print the cost of one agent", "mngr usage foo --format '{cost}'"),
        ("wait until 20 dollars are spent", "mngr usage --wait --until 'cost > 20'; mngr list"),
    ]
    parser.see_also = ["mngr-limit", "mngr-list", "mngr-transcript"]


def _label(text: str) -> str:
    kind, colon, key = text.partition(":")
    if kind != "label" or not colon or not key:
        raise UsageError(f"expected label:KEY, not {text[:60]!r}")
    return key


def run(args: Namespace) -> int:
    if args.wait != (args.until is not None):
        raise UsageError("--wait and --until must be used together")
    if args.timeout is not None and not args.wait:
        raise UsageError("--timeout requires --wait")
    api = Mngr(args.config, args.registry)
    test = compile_filter(args.until, FIELDS, "--until") if args.wait else None
    chosen, used = _wait(args, api, test) if test else _look(args, api)
    return _report(args, api, chosen, used)


def _look(args: Namespace, api: Mngr) -> tuple[list[Agent], dict[str, Usage]]:
    args.failures = []
    if args.target or args.stdin:
        chosen = targets.agents(args, api)
    else:
        chosen = list(api.list())
        targets.footnotes(api)
    used = api.usage(chosen)
    named = bool(args.target)
    for agent in chosen if named else ():
        if agent.id not in used:
            warn(f"{agent.name} does not report its usage")
    return [agent for agent in chosen if agent.id in used], used


def _wait(
    args: Namespace, api: Mngr, test: Callable[[Mapping[str, Json]], bool]
) -> tuple[list[Agent], dict[str, Usage]]:
    chosen, used = _look(args, api)
    deadline = None if args.timeout is None else time.monotonic() + args.timeout
    wanted = [agent.id for agent in chosen]
    everybody = not args.target and not args.stdin
    while not test(_summed(used.values())):
        alive = [agent for agent in chosen if agent.state in ALIVE]
        if not alive and not everybody:
            raise MngrError(f"all agents have ended, and {args.until!r} was not met")
        if deadline is not None and time.monotonic() >= deadline:
            raise TimedOut(f"{args.until!r} was not met within {exactly(args.timeout)}")
        time.sleep(INTERVAL)
        chosen = [a for a in api.list() if everybody or a.id in wanted]
        used = api.usage(chosen)
    return [agent for agent in chosen if agent.id in used], used


def _summed(each: Iterable[Usage]) -> dict[str, Json]:
    from mngr.api import total_usage

    listed = list(each)
    return {"agents": len(listed), **total_usage(listed).described(partly=True)}


def _report(args: Namespace, api: Mngr, chosen: Sequence[Agent], used: Mapping[str, Usage]) -> int:
    table = _by_label(args.by, chosen, used) if args.by else _by_agent(chosen, used)
    total = _summed(used.values())
    first: list[Column] = [("label", args.by.upper()), "agents"] if args.by else ["name"]
    columns = [*first, *NUMBERS, "cost"]
    _tell_unpriced(total)
    if args.format == "json":
        listed: list[Json] = [*table]
        errors: list[Json] = targets.errors(args)
        one(args, {"usage": listed, "total": total, "hosts": _hosts(api), "errors": errors}, "")
    elif args.format == "human":
        last: dict[str, Json] = {"name": "total", "label": "total", **total}
        rows(args, [*table, last] if table else [], columns, empty="No usage found")
        _tell_hosts(api)
    else:
        rows(args, table, columns)
    return targets.warn_failures(args)


def _hosts(api: Mngr) -> list[Json]:
    """Return the hosts that cost money, with their cost so far."""
    made = [each for each in api.hosts() if each.ref.provider != "local"]
    costs = [(each.ref, api.host_cost(each)) for each in made]
    return [
        {"name": ref.name, "provider_name": ref.provider, "cost": round(cost, 6)}
        for ref, cost in costs
        if cost is not None
    ]


def _tell_hosts(api: Mngr) -> None:
    costs = [float(each["cost"]) for each in _hosts(api) if isinstance(each, dict)]  # type: ignore[arg-type]
    if costs:
        hosts = many(len(costs), "host")
        warn(f"cost of hosts so far: ${sum(costs):.4f} for {hosts}; see `mngr host list`")


def _by_agent(chosen: Sequence[Agent], used: Mapping[str, Usage]) -> list[dict[str, Json]]:
    return [
        {
            "id": agent.id,
            "name": agent.name,
            **used[agent.id].described(),
            "models": {name: tokens.to_json() for name, tokens in used[agent.id].models.items()},
        }
        for agent in chosen
    ]


def _by_label(
    key: str, chosen: Sequence[Agent], used: Mapping[str, Usage]
) -> list[dict[str, Json]]:
    groups: dict[str, list[Usage]] = {}
    for agent in chosen:
        groups.setdefault(agent.record.labels.get(key, ""), []).append(used[agent.id])
    return [{"label": value, **_summed(groups[value])} for value in sorted(groups)]


def _tell_unpriced(total: Mapping[str, Json]) -> None:
    unpriced = total["unpriced"]
    assert isinstance(unpriced, list)
    for model in unpriced:
        warn(
            f"no price is known for the model {model!r}; "
            f"set {join_key(('prices', str(model)))}.input and .output"
        )
