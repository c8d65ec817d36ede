"""`mngr event`: what happened to an agent."""

from __future__ import annotations

import sys

from mngr.api import Mngr
from mngr.cli.app import targets
from mngr.cli.app.following import ends, for_ever, print_records
from mngr.cli.app.options import count
from mngr.cli.app.output import cell, local_time
from mngr.errors import UsageError
from mngr.query import Fields, compile_filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from mngr.cli.app.parser import Namespace, Parser
    from mngr.model.struct import Json

    Event: TypeAlias = dict[str, Json]

FIELDS = Fields(
    dict.fromkeys(("event_id", "timestamp", "source", "type", "agent_id", "agent_name"), "string"),
    more=True,
)
PLAIN = ("event_id", "timestamp", "type", "agent_id", "agent_name")
"""What the human line says otherwise, or not at all."""


def configure(parser: Parser) -> None:
    parser.description = (
        "Print the events of an agent, oldest first: created, exited, stopped, started, "
        "renamed, message delivered. On a terminal each event is one line with the local time; "
        "in a pipe it is one JSON object per line, with the time in UTC."
    )
    targets.add_target(parser, "the agent")
    add = parser.add_argument
    add("source", nargs="?", metavar="SOURCE", help="print only events from this source")
    add("-f", "--follow", action="store_true", help="print new events until interrupted")
    add("--tail", type=count, metavar="N", help="print only the last N")
    add("--head", type=count, metavar="N", help="print only the first N")
    help = "print only events that match this filter; repeatable"
    add("--include", action="append", metavar="EXPR", help=help)
    parser.examples = [
        ("print the events", "mngr event foo"),
        ("follow new events", "mngr event foo --follow --format jsonl"),
        (
            "print how the agent ended",
            "mngr event foo --include 'type == \"agent_exited\"' --tail 1",
        ),
        ("print events of the launcher", "mngr event foo launcher"),
    ]
    parser.see_also = ["mngr-observe", "mngr-wait"]


def run(args: Namespace) -> int:
    if args.follow and args.head is not None:
        raise UsageError("--head and --follow exclude each other", "use one of them")
    api = Mngr(args.config, args.registry)
    wanted = _filter(args)
    agent = targets.agents(args, api, [args.target])[0]
    everything = list(api.events(agent))
    human = _line if sys.stdout.isatty() else None
    print_records(args, ends(args, list(filter(wanted, everything))), human)
    if args.follow:
        shown = {str(event["event_id"]) for event in everything}
        coming = (e for e in api.events(agent, follow=True) if str(e["event_id"]) not in shown)
        for_ever(filter(wanted, coming), lambda event: print_records(args, [event], human))
    return 0


def _filter(args: Namespace) -> Callable[[Event], bool]:
    tests = [compile_filter(expression, FIELDS, "--include") for expression in args.include]

    def wanted(event: Event) -> bool:
        from_there = args.source is None or event.get("source") == args.source
        return from_there and all(test(event) for test in tests)

    return wanted


def _line(event: Event) -> str:
    details = [
        f"{key}={cell(value)}"
        for key, value in event.items()
        if key not in PLAIN and value not in ("", None)
    ]
    when = local_time(event.get("timestamp"))
    return "  ".join([when, cell(event["type"]), *details]) + "\n"
