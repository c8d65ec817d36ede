"""`mngr observe`: state changes of all agents, as they happen."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.cli.app.following import for_ever, print_records
from mngr.cli.app.parser import Namespace, Parser

DESCRIPTION = """\
Print one JSON object per line until interrupted: first `observing`, with the number of agents, \
and an `agent_discovered` for every agent; then an `agent_discovered` for each new agent, \
`agent_state_changed` with old_state and new_state, and `agent_gone`. Each line is flushed \
immediately. The command ends on Ctrl-C, on a signal, or when its output is closed."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    help = "print only agents that appear and disappear"
    parser.add_argument("--discovery-only", action="store_true", help=help)
    parser.examples = [
        ("print all changes", "mngr observe"),
        ("print failures", "mngr observe | grep --line-buffered 'new_state\": \"FAILED'"),
        ("print names and states", "mngr observe --format '{agent.name} {agent.state}'"),
    ]
    parser.see_also = ["mngr-event", "mngr-wait", "mngr-list"]


def run(args: Namespace) -> int:
    api = Mngr(args.config, args.registry)
    events = api.observe(discovery_only=args.discovery_only)
    if "{" in args.format:  # `observing` has no field that a template could name
        events = (event for event in events if event["type"] != "observing")
    for_ever(events, lambda event: print_records(args, [event], None))
    return 0
