"""`mngr completion`: print the script that lets a shell complete mngr's command lines."""

from __future__ import annotations

import os
import sys

from mngr import files
from mngr.cli.app.parser import Namespace, Parser

SETTINGS_OPTIONAL = True

DESCRIPTION = """\
Print a completion script for a shell. It completes commands, options, their values, and the names
of agents, templates and settings. The script calls mngr on TAB, so it stays correct when mngr or
its plugins change.

Add one line to the start-up file of your shell, or save the script in its completion directory:

    bash   source <(mngr completion bash)     # in ~/.bashrc
    zsh    source <(mngr completion zsh)      # in ~/.zshrc, after compinit
    fish   mngr completion fish | source      # in ~/.config/fish/config.fish"""

FILES = {"bash": "mngr.bash", "zsh": "_mngr", "fish": "mngr.fish"}
"""Files in the folder `completions`, with the names that the shells expect."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    parser.add_argument("shell", metavar="SHELL", choices=tuple(FILES), help="bash, zsh or fish")
    parser.examples = [("enable completion in the current bash", "source <(mngr completion bash)")]


def run(args: Namespace) -> int:
    sys.stdout.write(script(args.shell))
    return 0


def script(shell: str) -> str:
    """Return the completion script for a shell, which calls mngr on TAB."""
    path = os.path.join(os.path.dirname(__file__), "completions", FILES[shell])
    with open(path, encoding="utf-8") as file:
        return file.read()


PLACES = {
    "bash": (".local/share/bash-completion/completions/mngr", (".bashrc", ".bash_profile")),
    "zsh": ("", (".zshrc",)),
    "fish": (".config/fish/completions/mngr.fish", (".config/fish/config.fish",)),
}
"""The path at which each shell looks for a script, and its start-up files, in the user's home."""


def is_set_up(shell: str, home: str) -> bool:
    """Return whether the script is installed, or a start-up file loads it."""
    place, start_up = PLACES[shell]
    if place and os.path.exists(os.path.join(home, place)):
        return True
    return any("mngr completion" in _content(os.path.join(home, name)) for name in start_up)


def set_up(shell: str, home: str) -> None:
    """Write the script to where the shell looks for it."""
    path = os.path.join(home, PLACES[shell][0])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    files.replace(path, script(shell).encode(), 0o644)


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""
