"""`mngr demo`: run `mngr tmr` on the bundled example, with the agent type mechanic."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from mngr.cli.app.output import one, say
from mngr.cli.app.parser import Namespace, Parser
from mngr.errors import MissingProgram, MngrError, Refused
from mngr.model.quoting import quote
from mngr_tmr.cli.demo_project import CannotPlant, plant, require_empty

DESCRIPTION = """\
Create a small note-keeping program with known defects in a new git repository: three bugs, an \
outdated test, four tests that check nothing, and one test that requires a program that is not \
installed. Then run `mngr tmr` on it with the built-in agent type `mechanic`, which requires no \
account and no network. The result is a branch, a report and a summary. The demo has its own mngr \
home and does not touch your agents."""

FAILING, WEAK = 8, 4
"""Tests of examples/jot that its defects break, and that check nothing."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    help = "new or empty directory (default: a temporary one)"
    parser.add_argument("folder", nargs="?", metavar="DIR", help=help, completes="file")
    parser.examples = [
        ("run the demo", "mngr demo"),
        ("choose the directory", "mngr demo ~/mngr-demo"),
    ]
    parser.see_also = ["mngr-tmr", "mngr-tutorial"]


def run(args: Namespace) -> int:
    folder = Path(args.folder or tempfile.mkdtemp(prefix="mngr-demo-")).absolute()
    _need_pytest()
    try:
        require_empty(folder)  # the last line tells the user to delete it
        plant(folder / "jot")
    except CannotPlant as error:
        raise Refused(str(error), "name a new or empty directory") from None
    say(args, f"Created {folder / 'jot'}: {FAILING} of its tests fail, and {WEAK} check nothing.")
    say(args, "Starting one mechanic agent for each of them; this takes a minute or two.")
    status = _pipeline(args, folder)
    if status:
        raise MngrError("the pipeline failed", f"see `{_again(folder)} show`")
    one(args, _row(folder), _closing(folder))
    return 0


def _need_pytest() -> None:
    from importlib.util import find_spec

    if find_spec("pytest") is None:
        raise MissingProgram("the demo requires pytest", "install mngr[demo]")


def environment(folder: Path) -> dict[str, str]:
    """Return the environment with the demo's home, and without the variables of an agent."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MNGR_AGENT_")}
    tools = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    return {**kept, "MNGR_HOST_DIR": str(folder / "home"), "PATH": tools}


def _pipeline(args: Namespace, folder: Path) -> int:
    words = ["tmr", "run", "--name", "demo", "--type", "mechanic", "--only", "problems", "--yes"]
    words += ["--max-agents", "2", "--workers", "2", "-S", "stop.grace=2s"]
    words += ["--agent-arg=--budget=300"]  # so that it does not give up on a busy machine
    words += ["--quiet"] if args.quiet or args.format != "human" else []
    out = subprocess.DEVNULL if args.format != "human" else None
    argv = [sys.executable, "-m", "mngr", *words]
    done = subprocess.run(
        argv, cwd=folder / "jot", env=environment(folder), stdout=out, check=False
    )
    return done.returncode


def _row(folder: Path) -> dict[str, str]:
    return {
        "repository": str(folder / "jot"),
        "branch": "tmr/demo",
        "report": str(folder / "home/tmr/demo/report/index.html"),
        "journal": str(folder / "home/tmr/demo/journal.jsonl"),
    }


def _again(folder: Path) -> str:
    return f"MNGR_HOST_DIR={quote(str(folder / 'home'))} mngr tmr"


def _closing(folder: Path) -> str:
    jot = quote(str(folder / "jot"))
    return "\n".join(
        [
            f"Read the branch:  git -C {jot} log -p main..tmr/demo",
            f"Look at the run:  {_again(folder)} show",
            f"Delete the demo:  rm -rf {quote(str(folder))}",
        ]
    )
