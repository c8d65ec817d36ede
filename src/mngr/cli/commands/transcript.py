"""`mngr transcript`: print the conversation with an agent."""

from __future__ import annotations

import json
from collections.abc import Callable

from mngr.api import ROLES
from mngr.cli.app import targets
from mngr.cli.app.following import add_ends, check_ends, print_stream
from mngr.cli.app.output import bold, cell, clean, local_time
from mngr.cli.app.parser import Namespace, Parser
from mngr.model.struct import Json

Record = dict[str, Json]

DESCRIPTION = """\
Print the conversation between the user, the agent and its tools, oldest first, in the same form \
for every agent type. In JSON formats each entry is an object: event_id, timestamp, \
source (the agent's type), type (`user_message`, `assistant_message` or `tool_result`), text, and \
if present, model and tools (id, name, input)."""

NOTES = """\
With --follow, an entry that grows after it was printed is printed again under the same event_id. \
In human format the output of tools is cut to a few lines, unless you pass --verbose."""

LINES = 10
WIDTH = 200


def configure(parser: Parser) -> None:
    parser.description, parser.notes = DESCRIPTION, NOTES
    targets.add_target(parser, "the agent")
    help = "print only entries of this role; repeatable"
    parser.add_argument("--role", action="append", choices=tuple(ROLES), help=help)
    add_ends(parser, "entries", until="the agent has ended")
    parser.examples = [
        ("print the conversation", "mngr transcript foo"),
        ("print the last reply", "mngr transcript foo --role assistant --tail 1"),
        ("follow the conversation", "mngr transcript foo --follow"),
        ("list the tools it used", "mngr transcript foo --format jsonl | jq -r '.tools[]?.name'"),
    ]
    parser.see_also = ["mngr-message", "mngr-usage", "mngr-event", "mngr-capture"]


def run(args: Namespace) -> int:
    check_ends(args)
    wanted = _filter(args)

    def show(record: Record) -> str:
        return _told(record, args.verbose)

    api, agent = targets.one(args)
    print_stream(
        args, lambda follow: api.conversation(agent, follow=follow), wanted, show, "transcript"
    )
    return 0


def _filter(args: Namespace) -> Callable[[Record], bool]:
    types = [ROLES[role] for role in args.role or ROLES]
    return lambda record: record["type"] in types


def _told(record: Record, whole: bool) -> str:
    role = next((role for role, type in ROLES.items() if type == record["type"]), "?")
    stamp = local_time(record["timestamp"])
    text = clean(str(record["text"])).strip("\n")
    lines = text.split("\n") if text.strip() else []
    if role == "tool" and not whole:
        lines = _shortened(lines)
    tools = record.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        assert isinstance(tool, dict), "not a record of mngr"
        lines.append(f"> {cell(tool['name'])} {cell(json.dumps(tool['input']))}"[:WIDTH])
    shown = "".join(f"{line}\n" for line in lines)
    return f"{bold(f'# {role}, {stamp}' if stamp else f'# {role}')}\n{shown}\n"


def _shortened(lines: list[str]) -> list[str]:
    if len(lines) <= LINES:
        return lines
    return [*lines[:LINES], f"… and {len(lines) - LINES} more lines"]
