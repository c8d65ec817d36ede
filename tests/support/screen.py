"""A terminal for tests: the CLI in a pane of a tmux server that is not mngr's."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from types import TracebackType

from tests.support.cli import Cli, until


class Screen:
    """`with Screen(cli) as screen:` yields a shell in the repository, with screen and keyboard."""

    def __init__(self, cli: Cli, env: dict[str, str] | None = None) -> None:
        self.cli = cli
        self.folder = tempfile.mkdtemp(prefix="screen-", dir="/tmp")
        self.socket = os.path.join(self.folder, "s")
        self.env = cli.env | (env or {})

    def __enter__(self) -> Screen:
        words = [f"{key}={value}" for key, value in self.env.items()]
        shell = shlex.join(["env", "-i", *words, "PS1=$ ", "sh"])
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "40", shell, cwd=True)
        until(lambda: "$" in self.text(), what="a prompt")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.tmux("kill-server")
        until(lambda: not os.path.exists(self.socket) or not self.tmux("ls"), what="its end")
        if os.path.exists(self.socket):
            os.unlink(self.socket)
        os.rmdir(self.folder)

    def tmux(self, *words: str, cwd: bool = False) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", self.socket, *words],
            cwd=self.cli.repo if cwd else None,
            env=self.env,
            capture_output=True,
            check=False,
        )
        return done.stdout.decode()

    def mngr(self, *words: str) -> None:
        """Type a mngr command line."""
        self.type(shlex.join(self.cli.argv(*words)))

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.keys("Enter")

    def keys(self, *names: str) -> None:
        self.tmux("send-keys", *names)

    def text(self) -> str:
        return self.tmux("capture-pane", "-p", "-J")

    def shows(self, *texts: str) -> None:
        until(lambda: all(text in self.text() for text in texts), what=f"{texts} on\n{self.text()}")
