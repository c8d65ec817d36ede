"""`mngr diff`: show the changes of an agent since it was created."""

from __future__ import annotations

import os
import sys

from mngr.cli.app import targets
from mngr.cli.app.output import clean, coloured, one, rows, warn, write_bytes
from mngr.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.api import Agent, Difference, Mngr
    from mngr.cli.app.parser import Namespace, Parser
    from mngr.model.struct import Json

DESCRIPTION = """\
Show how an agent's work directory differs from the commit it started from: committed, uncommitted \
and untracked changes, without ignored files. The agent need not be stopped; neither its files \
nor its index change.

Paths after `--` limit the output and are relative to the top of the work directory. In a pipe the \
output is a patch for `git apply`."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    parser.rest_name = "PATHS"
    add = parser.add_argument
    targets.add_target(parser, "the agent")
    add("--stat", action="store_true", help="show only files and line counts")
    add("--commits", action="store_true", help="list the commits since the start, newest first")
    add("--uncommitted", action="store_true", help="show only uncommitted changes")
    parser.examples = [
        ("show all changes", "mngr diff foo"),
        ("summarise the changes", "mngr diff foo --stat"),
        ("list the commits", "mngr diff foo --commits"),
        ("limit to some files", "mngr diff foo -- src tests"),
        ("apply the changes here", "mngr diff foo | git apply"),
    ]
    parser.see_also = ["mngr-merge", "mngr-snapshot", "mngr-pull"]


def run(args: Namespace) -> int:
    if args.commits and (args.stat or args.uncommitted):
        raise UsageError("--commits cannot be used with --stat or --uncommitted")
    api, agent = targets.one(args)
    if args.commits:
        return _commits(args, api, agent)
    asked = {"uncommitted": args.uncommitted, "paths": args.rest, "stat": args.stat}
    found = api.difference(agent, **asked)
    if found.complaint:
        warn(f"{agent.name}: {found.complaint}; it is not in this diff")
    if args.format == "human":
        _show(found.patch)
    else:
        one(args, _row(args, agent, found), "")
    return 0


def _row(args: Namespace, agent: Agent, found: Difference) -> dict[str, Json]:
    row: dict[str, Json] = {
        "name": agent.name,
        "id": agent.id,
        "base": found.old,
        "head": found.head,
        "files": list(found.files()),
    }
    if not args.stat:
        row["diff"] = found.patch.decode("utf-8", "replace")
    return row


def _commits(args: Namespace, api: Mngr, agent: Agent) -> int:
    found = api.commits(agent, args.rest)
    if args.format == "human":
        _show(os.fsencode("".join(f"{row['short']} {row['subject']}\n" for row in found)))
    else:
        rows(args, found, [], "commits", fields=["commit", "short", "author", "time", "subject"])
    return 0


def _show(text: bytes) -> None:
    """Print all bytes in a pipe; on a terminal without control characters, in colour."""
    if not sys.stdout.isatty():
        write_bytes(text)
        return
    paint = _painted if coloured() else str
    for line in clean(text.decode("utf-8", "replace")).splitlines():
        sys.stdout.write(f"{paint(line)}\n")


COLOURS = {"@@": "36", "+++": "1", "---": "1", "diff ": "1", "index ": "1", "+": "32", "-": "31"}


def _painted(line: str) -> str:
    for start, colour in COLOURS.items():
        if line.startswith(start):
            return f"\x1b[{colour}m{line}\x1b[0m"
    return line
