"""`mngr event`: print the events of an agent."""

from __future__ import annotations

import sys
from collections.abc import Callable

from mngr.cli.app import targets
from mngr.cli.app.following import add_ends, check_ends, print_stream
from mngr.cli.app.output import cell, local_time
from mngr.cli.app.parser import Namespace, Parser
from mngr.model.struct import Json
from mngr.query import Fields, compile_filter

Event = dict[str, Json]

FIELDS = Fields(
    dict.fromkeys(("event_id", "timestamp", "source", "type", "agent_id", "agent_name"), "string"),
    more=True,
)
PLAIN = ("event_id", "timestamp", "type", "agent_id", "agent_name")
"""Fields that the line for people does not list as details."""


def configure(parser: Parser) -> None:
    parser.description = (
        "Print the events of an agent, oldest first: created, exited, stopped, started, "
        "renamed, message delivered. On a terminal each event is one line with the local time; "
        "in a pipe it is one JSON object per line, with the time in UTC."
    )
    targets.add_target(parser, "the agent")
    add = parser.add_argument
    add("source", nargs="?", metavar="SOURCE", help="print only events from this source")
    add_ends(parser, "events", until="interrupted")
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
    check_ends(args)
    wanted = _filter(args)
    api, agent = targets.one(args)
    human = _line if sys.stdout.isatty() else None
    print_stream(args, lambda follow: api.events(agent, follow=follow), wanted, human, "events")
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
