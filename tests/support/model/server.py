"""The server: one thread per connection, one script for all."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tests.support.model import clients
from tests.support.model.conversation import Conversation, Request
from tests.support.model.http import Listener
from tests.support.model.scenario import Rule, Script, Step, Usage


class ModelServer:
    """A scripted model; see the docstring of the package."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.address = address
        self.script = Script()
        self.requests: list[Request] = []
        self.lock = threading.Lock()
        self.gates: dict[str, threading.Event] = {}
        self.held: list[str] = []
        self.closing = threading.Event()
        self.listener = Listener(self)
        self.port = self.listener.port

    # the script

    def on(self, pattern: str, **step: Any) -> Rule:
        rule = Rule(pattern, [Step(**step)])
        self.script.rules.append(rule)
        return rule

    def gate(self, name: str) -> threading.Event:
        with self.lock:
            return self.gates.setdefault(name, threading.Event())

    def release(self, name: str) -> None:
        self.gate(name).set()

    def until_held(self, name: str, timeout: float = 240) -> None:
        self.until(lambda: name in self.held, timeout, f"a request held at {name!r}")

    # requests

    @property
    def conversations(self) -> dict[str, Conversation]:
        found: dict[str, Conversation] = {}
        with self.lock:
            for request in self.requests:
                if not request.background:
                    id = request.conversation
                    found.setdefault(id, Conversation(id)).asked.append(request)
        return found

    def conversation(self, text: str) -> Conversation:
        found = [
            conversation
            for conversation in self.conversations.values()
            if any(text in prompt for prompt in conversation.prompts)
        ]
        assert len(found) == 1, f"{len(found)} conversations have {text!r}: {self.summary()}"
        return found[0]

    @property
    def usage(self) -> Usage:
        return sum((each.usage for each in self.conversations.values()), Usage())

    def summary(self) -> str:
        """Return every conversation with its prompts, for failure messages."""
        return "; ".join(f"{id}: {each.prompts}" for id, each in self.conversations.items())

    def until(self, condition: Callable[[], object], timeout: float = 60, what: str = "") -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < deadline, f"not within {timeout} s: {what or self.summary()}"
            time.sleep(0.02)

    def save(self, path: str) -> None:
        """Write the log, one request per line, for a person who searches for the cause."""
        with open(path, "w") as file:
            for each in list(self.requests):
                row = {"method": each.method, "path": each.path, "status": each.status}
                row |= {"background": each.background, "conversation": each.conversation}
                file.write(json.dumps(row | {"headers": each.headers, "body": each.body}) + "\n")

    # clients

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}"

    def environment(self, program: str, *, plan: bool = False) -> dict[str, str]:
        return clients.environment(program, self.url, plan)

    def codex_config(self) -> str:
        return clients.codex_config(self.url)

    def opencode_config(self) -> str:
        return clients.opencode_config(self.url)

    # failures and end

    def vanish(self) -> None:
        self.listener.close()

    def return_(self) -> None:
        self.listener = Listener(self, self.port)

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self.listener.close()
        assert error or not self.listener.http.problems, self.listener.http.problems
