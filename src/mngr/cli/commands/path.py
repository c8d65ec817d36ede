"""`mngr path`: print the path of an agent's work directory."""

from __future__ import annotations

import os

from mngr.api import Mngr
from mngr.cli.app import targets
from mngr.cli.app.output import one, say
from mngr.cli.app.parser import Namespace, Parser
from mngr.model.address import is_agent_id, parse_address

DESCRIPTION = """\
Print the path of an agent's work directory, or of `NAME:PATH` in it. For an agent on another host \
the path is on that host, which is named on standard error."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    targets.add_target(parser)
    parser.examples = [
        ("change to the work directory", 'cd "$(mngr path fix)"'),
        ("open a file in it", 'less "$(mngr path fix:README.md)"'),
    ]
    parser.see_also = ["mngr-show", "mngr-exec", "mngr-pull"]


def run(args: Namespace) -> int:
    api = Mngr(args.config, args.registry)
    word, inner = args.target, ""
    if not is_agent_id(word) and (address := parse_address(word)).path is not None:
        word, inner = str(address.replace(path=None)), address.path or ""
    agent = targets.agents(args, api, [word], look=False)[0]
    path = os.path.join(agent.record.work_dir, inner) if inner else agent.record.work_dir
    host = agent.host
    one(args, {"id": agent.id, "name": agent.name, "path": path, "host": host.ref.name}, path)
    if args.format == "human" and host.argv(["x"]) != ["x"]:
        say(args, f"This path is on the host {host.ref.name}.")
    return 0
