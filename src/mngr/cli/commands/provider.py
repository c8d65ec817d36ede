"""`mngr provider list`: list the providers of hosts, and why some cannot be used here."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.cli.app.output import Column, rows
from mngr.cli.app.parser import Namespace, Parser

DESCRIPTION = """\
List the providers of hosts: whether each is usable on this machine, whether it creates new hosts, \
and if it is not usable, why."""

COLUMNS: list[Column] = ["name", "usable", ("new_hosts", "NEW HOSTS"), "hosts", "reason"]


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    parser.add_argument("verb", choices=("list",), nargs="?", default="list", help="list")
    parser.examples = [("list the providers", "mngr provider list")]
    parser.see_also = ["mngr-host", "mngr-plugin"]


def run(args: Namespace) -> int:
    api = Mngr(args.config, args.registry)
    rows(args, [each.to_json() for each in api.providers()], COLUMNS, "providers")
    return 0
