"""The user's terminal: hand it to tmux, to an editor or to a connect command."""

from __future__ import annotations

import os
import sys

from mngr.api import REFUSED, attach_argv, call, is_here, lost, switch_client
from mngr.api import environment as variables
from mngr.errors import MissingProgram, MngrError, Refused, UsageError
from mngr.model.quoting import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from mngr.api import Agent, Host
    from mngr.cli.app.parser import Namespace
    from mngr.model.records import AgentRecord

RESTORE = (
    # margins, colours, line drawing, cursor keys, keypad, visible cursor
    "\033[r\033[m\033(B\x0f\033[?1l\033>\033[?25h"
    # mouse, focus, pasted text, modified keys, cursor style, alternate screen
    "\033[?1000;1002;1003;1005;1006l\033[?1004;2004l\033[>4m\033[0 q\033[?1049l\r\n"
)
"""Ends what tmux sets in a terminal."""

CONNECT_COMMAND = """\
shell command to run instead of attaching; its environment has MNGR_AGENT_NAME, MNGR_SESSION_NAME, \
MNGR_TMUX_SOCKET and MNGR_CONNECT_ARGV, the command line that attaches"""


def is_terminal() -> bool:
    """Return whether both standard input and output are terminals."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def connect(agent: Agent, *, command: str = "", read_only: bool = False) -> int:
    """Switch, run the connect command, or become tmux."""
    if agent.evidence.pane is None:
        raise Refused(
            f"{agent.name} is {agent.state}: there is no terminal to attach to",
            f"start it with `mngr start {agent.name}`",
        )
    if command:
        return run_connect_command(command, agent.host, agent.record, read_only)
    if not is_terminal():
        raise UsageError("connecting requires a terminal", f"see `mngr capture {agent.name}`")
    if not read_only and switch_client(agent.host, agent.record):
        return 0
    argv = attach_argv(agent.host, agent.record, read_only)
    return become(argv) if is_here(agent.host) else _attach(agent, argv)


def _attach(agent: Agent, argv: list[str]) -> int:
    """Attach through a connection; if it is lost, restore the terminal as tmux would have."""
    import termios

    sys.stderr.flush()
    before = termios.tcgetattr(0)
    code = call(argv)
    if code == REFUSED:
        return 1  # tmux has said why
    if code:
        termios.tcsetattr(0, termios.TCSAFLUSH, before)
        print(RESTORE, end="", flush=True)
        raise lost(agent.host, agent.name)
    return 0


def become(argv: list[str]) -> NoReturn:
    """Run a program in place of mngr, with its terminal and its standard input."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(argv[0], argv, variables())
    except FileNotFoundError:
        raise MissingProgram(f"{argv[0]} is not installed or not on PATH") from None


def connect_command(args: Namespace, record: AgentRecord) -> str:
    """Return the command to run instead of attaching, or "".

    A configured command that itself calls `mngr connect` for this agent gets the plain attachment;
    otherwise it would call itself without end.
    """
    command = str(args.connect_command or "")
    configured = command == args.parser.base.get("connect_command")
    inside = os.environ.get("MNGR_CONNECT_ARGV") and os.environ.get("MNGR_SESSION_NAME")
    return "" if configured and inside == record.id else command


def run_connect_command(
    command: str, host: Host, record: AgentRecord, read_only: bool = False
) -> int:
    """Run the connect command, with the command line that attaches in its environment."""
    env = {
        **variables(),
        "MNGR_AGENT_NAME": record.name,
        "MNGR_SESSION_NAME": record.id,
        "MNGR_TMUX_SOCKET": host.socket,
        "MNGR_CONNECT_ARGV": join(attach_argv(host, record, read_only)),
    }
    sys.stdout.flush()
    sys.stderr.flush()
    code = call(["sh", "-c", command], env)
    if code:
        raise MngrError(f"the connect command ended with exit code {code}: {command}")
    return 0


def edit(path: str) -> None:
    """Let the user edit a file; returns when the editor is closed."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    # Through a shell, as git does: the variable may hold options.
    code = call(["sh", "-c", f'{editor} "$@"', "editor", path], dict(os.environ))
    if code:
        raise MngrError(f"the editor {editor!r} ended with exit code {code}")


def compose() -> str:
    """Return a text written in the user's editor."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="mngr-") as folder:
        path = os.path.join(folder, "MESSAGE.md")
        open(path, "w").close()
        edit(path)
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "surrogateescape")
