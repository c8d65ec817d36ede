"""A plugin with small commands, for tests of the command line itself.

It is loaded like any plugin, by the name of its module, from a folder on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

from mngr.cli.app.output import confirm, one, rows, say
from mngr.cli.app.parser import Parser
from mngr.errors import PartialFailure, Refused
from mngr.plugins.registry import Registry

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def register(registry: Registry) -> None:
    registry.command("kite", "support.kite", "fly a kite", aliases=["k"])
    registry.on("agent_created", "support.kite:tear")


def configure(parser: Parser) -> None:
    parser.description = "Fly.\n\nOr fall."
    parser.rest_name = "TAIL"
    parser.add_argument("target", nargs="+", help="whom to fly for", completes="agent")
    parser.add_argument("--wind", choices=("north", "north-east", "south"), help="from where")
    parser.add_argument("--height", type=int, default=10, help="in metres (default %(default)s)")
    parser.add_argument("--string", action="switch", help="hold it")
    parser.add_argument(
        "-l", "--label", action="pairs", metavar="K=V", help="what is written on it"
    )
    parser.add_argument("--bow", action="append", help="a bow of this colour")
    parser.add_argument("-t", "--template", action="append", completes="template")
    parser.add_argument("--type", completes="type")
    parser.add_argument("--plan", completes="file")
    parser.add_argument("--until", completes="state")
    parser.add_argument("--fate", default="fly", choices=tuple(FATES), help=argparse.SUPPRESS)
    parser.add_dry_run()
    parser.examples = [("fly one", "mngr kite a")]


def defaults(args: argparse.Namespace) -> dict[str, object]:
    found: dict[str, object] = {}
    for name in args.template:
        found.update(args.config.table(f"create_templates.{name}"))
    return found


def run(args: argparse.Namespace) -> int:
    return FATES[args.fate](args)


def _fly(args: argparse.Namespace) -> int:
    told = {
        name: value
        for name, value in vars(args).items()
        if name not in ("config", "registry", "parser")
    }
    one(args, told, json.dumps(told, sort_keys=True))
    return 0


def _flood(args: argparse.Namespace) -> int:
    rows(args, [{"n": number} for number in range(20_000)], ["n"])
    return 0


def _fail(args: argparse.Namespace) -> int:
    raise PartialFailure("the string broke", "tie a knot")


def _crash(args: argparse.Namespace) -> int:
    raise ValueError("no wind")


def _interrupt(args: argparse.Namespace) -> int:
    raise KeyboardInterrupt


def _missing(args: argparse.Namespace) -> int:
    with open("/nowhere/kite") as file:
        return len(file.read())


def _ask(args: argparse.Namespace) -> int:
    say(args, "about to fall")
    if not confirm(args, "Let it fall?"):
        raise Refused("kept")
    one(args, {"fell": True}, "it fell")
    return 0


def _emit(args: argparse.Namespace) -> int:
    args.registry.emit("agent_created", {"agent_id": "agent-1"})
    return 0


FATES = {
    "fly": _fly,
    "flood": _flood,
    "fail": _fail,
    "crash": _crash,
    "interrupt": _interrupt,
    "missing": _missing,
    "ask": _ask,
    "emit": _emit,
}


def tear(payload: dict[str, object]) -> None:
    raise RuntimeError(f"torn by {payload['agent_id']}")


def environment(home: str, **extra: str) -> dict[str, str]:
    """Return the environment of a mngr process with this home and this plugin."""
    return {
        "HOME": home,
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "MNGR_HOST_DIR": os.path.join(home, "world"),
        "MNGR__PLUGINS__MODULES": '["support.kite"]',
        "PYTHONPATH": f"{ROOT}/src:{ROOT}/tests",
        **extra,
    }


def mngr(home: str, *argv: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run mngr to its end."""
    return subprocess.run(
        [sys.executable, "-m", "mngr", *argv],
        env=environment(home, **env),
        cwd=home,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )
