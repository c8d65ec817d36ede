"""`mngr observe`: state changes of all agents, as they happen."""

from __future__ import annotations

import json
import sys

from mngr.api import Mngr
from mngr.cli.app.following import for_ever
from mngr.cli.app.output import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from mngr.cli.app.parser import Parser
    from mngr.model.struct import Json

DESCRIPTION = """\
Print one JSON object per line, for ever: first `observing`, with the number of agents, and an \
`agent_discovered` for every agent there is, \
then one for each that is found later, `agent_state_changed` with old_state and new_state, and \
`agent_gone`. Each line is written at once. Ends on Ctrl-C, on a signal, or when nobody reads."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    parser.add_argument(
        "--discovery-only", action="store_true", help="only which agents come and go"
    )
    parser.examples = [
        ("watch everything", "mngr observe"),
        ("hear of failures", "mngr observe | grep --line-buffered 'new_state\": \"FAILED'"),
        ("only names and states", "mngr observe --format '{agent.name} {agent.state}'"),
    ]
    parser.see_also = ["mngr-event", "mngr-wait", "mngr-list"]


def run(args: argparse.Namespace) -> int:
    api = Mngr(args.config, args.registry)
    events = api.observe(discovery_only=args.discovery_only)
    for_ever(events, lambda event: _print(args, event))
    return 0


def _print(args: argparse.Namespace, event: dict[str, Json]) -> None:
    if args.format in ("human", "json", "jsonl"):
        sys.stdout.write(f"{json.dumps(event)}\n")
    elif event["type"] != "observing":  # it has nothing that a template could name
        rows(args, [event], [])
    sys.stdout.flush()
