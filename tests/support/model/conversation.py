"""Requests, and the conversations that they form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.model.scenario import Turn, Usage


@dataclass(eq=False)
class Request:
    """One request and its answer."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any = None
    status: int = 0
    turn: Turn | None = None
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    """The number of tools that the answer calls."""
    cut: bool = False
    """Whether the client disconnected, or the script broke the stream."""

    @property
    def key(self) -> str:
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix(
            "Bearer "
        )

    @property
    def conversation(self) -> str:
        return self.turn.conversation if self.turn else ""

    @property
    def background(self) -> bool:
        return self.turn is None or self.turn.background


@dataclass
class Conversation:
    """The requests that carry one session id."""

    id: str
    asked: list[Request] = field(default_factory=list)
    """All requests, including failed ones."""

    @property
    def turns(self) -> list[Request]:
        return [request for request in self.asked if request.status == 200 and not request.cut]

    @property
    def over(self) -> bool:
        """Return whether the model's last answer calls no tool."""
        last = self.asked[-1]
        return last.status == 200 and not last.cut and not last.calls

    @property
    def last(self) -> Turn:
        turn = self.asked[-1].turn
        assert turn is not None
        return turn

    @property
    def prompts(self) -> list[str]:
        return list(self.last.prompts)

    @property
    def said(self) -> list[str]:
        return list(self.last.said)

    @property
    def usage(self) -> Usage:
        return sum((request.usage for request in self.turns), Usage())

    def count(self, text: str) -> int:
        return self.last.user_text.count(text)
