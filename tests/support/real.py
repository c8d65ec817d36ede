"""Real coding agents under mngr, with the scripted model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.cli import Cli, Result
from tests.support.model import Conversation, ModelServer
from tests.support.programs import path_with

PATIENCE = 240
"""Seconds for what takes up to ten (OpenCode's start) on a machine with nothing else to do."""

ENDED = ("FAILED", "DONE", "LOST")

FREE = {
    "claude": ("--permission-mode", "default", "--allowedTools", "Bash"),
    "codex": ("--ask-for-approval", "never", "--sandbox", "danger-full-access"),
    "opencode": (),
}
"""Arguments with which each program runs commands unasked."""

ASKING = {
    "claude": ("--permission-mode", "default"),
    "codex": ("--ask-for-approval", "on-request", "--sandbox", "workspace-write"),
    "opencode": (),
}
"""Arguments with which each asks before it runs a command."""


@dataclass
class Stage:
    """A CLI with one model server and any number of agents of one program."""

    cli: Cli
    server: ModelServer
    program: str

    def create(self, name: str, prompt: str = "", *args: str, options: tuple[str, ...] = ()) -> Any:
        """Create an agent that runs its tools without asking, unless `args` change that."""
        words = ["--message", prompt] if prompt else []
        rest = args or FREE[self.program]
        done = self.cli(
            *("create", name, self.program, "--no-connect", *words, *options, "--", *rest),
            timeout=PATIENCE,
        )
        return done.ok()

    def say(self, name: str, text: str, *options: str) -> Result:
        return self.cli("message", name, *options, input=text, timeout=PATIENCE)

    def transcript(self, name: str) -> list[dict[str, Any]]:
        told = self.cli("transcript", name, "--format", "jsonl").ok().out
        return [json.loads(line) for line in told.splitlines()]

    def state(self, name: str) -> tuple[str, str]:
        agent = self.cli.agent(name)
        return agent["state"], agent["state_reason"]

    def reaches(self, name: str, state: str, reason: str = "", about: str = "") -> str:
        """Wait for a state whose reason begins like this and contains `about`; return the reason.

        Claude records the call in its transcript a moment after it asks.
        """
        seen: list[tuple[str, str]] = []

        def there() -> bool:
            seen[:] = [self.state(name)]
            assert state in ENDED or seen[0][0] not in ENDED, f"it is {seen[0]}"
            return seen[0][0] == state and seen[0][1].startswith(reason) and about in seen[0][1]

        self.until(name, there, f"{name} is {state} ({reason} {about})")
        return seen[0][1]

    def until(self, name: str, condition: Callable[[], object], what: str) -> None:
        """Wait for a condition; a failure shows the agent's state and screen."""
        deadline = time.monotonic() + PATIENCE
        try:
            while not condition():
                assert time.monotonic() < deadline, f"not within {PATIENCE} s: {what}"
                # Each check is a whole `mngr list`, so continuous checks would slow the agent down.
                time.sleep(0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.scene(name)}") from None

    def scene(self, name: str) -> str:
        screen = self.cli("capture", name).out
        asked = [(each.path, each.status, each.background) for each in self.server.requests]
        return f"{self.state(name)}\n{screen}\n{asked[-8:]}\n{self.server.summary()}"

    def answered(self, name: str, text: str) -> Conversation:
        """Wait until the model has given its last answer to a prompt, and the agent reports it."""

        def there() -> bool:
            found = [
                each
                for each in self.server.conversations.values()
                if each.over and any(text in prompt for prompt in each.prompts)
            ]
            return bool(found)

        self.until(name, there, f"the model has heard {text[:60]!r}")
        self.reaches(name, "WAITING", "end_of_turn")
        return self.server.conversation(text)


@contextmanager
def stage(cli: Cli, program: str, server: ModelServer | None = None) -> Iterator[Stage]:
    with server or ModelServer() as server:
        cli.env |= server.environment(program)
        # Agents do not get the variables with the git identity of the tests.
        (cli.user_home / ".gitconfig").write_text("[user]\nname = Fox\nemail = fox@example.com\n")
        path = cli.env["PATH"].split(":", 1)[0]
        cli.env["PATH"] = f"{path}:{path_with(program)}"
        if program == "codex":
            home = cli.user_home / ".codex"
            home.mkdir()
            (home / "config.toml").write_text(server.codex_config())
        if program == "opencode":
            spare_the_plugins(cli.user_home / ".config" / "opencode")
            # Animations take a quarter of its CPU time.
            state = cli.user_home / ".local" / "state" / "opencode"
            state.mkdir(parents=True)
            (state / "kv.json").write_text('{"animations_enabled": false}')
        yield Stage(cli, server, program)


def spare_the_plugins(home: Path) -> None:
    """Make a new home look initialised, or OpenCode would download 60 MB of plugins."""
    (home / "node_modules").mkdir(parents=True)
    packages = {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}
    (home / "package-lock.json").write_text(json.dumps({"packages": packages}))
