"""Choose the model's answers: rules, their steps, and the choice between them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Usage:
    """The tokens of one answer, or of several."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


@dataclass(frozen=True)
class Step:
    """One answer, or one failure."""

    say: str = ""
    call: Call | list[Call] | None = None
    run: str = ""
    ask: bool = False
    """Whether `run` requires permission; with Codex the model decides that."""
    usage: Usage | None = None
    slow: float = 0
    hold: str = ""
    fail: int = 0
    kind: str = ""
    text: str = ""
    retry_after: int | None = None
    quota: int = 0
    broken: bool = False
    times: int | None = 0
    """The number of failures; None means always; 0 means once if broken, else always."""

    @property
    def fails(self) -> bool:
        return bool(self.fail or self.quota or self.broken)

    @property
    def limit(self) -> float:
        if self.times:
            return self.times
        return 1 if self.broken and self.times == 0 else float("inf")

    @property
    def calls(self) -> list[Call]:
        if self.call is None:
            return []
        return self.call if isinstance(self.call, list) else [self.call]


@dataclass
class Rule:
    """Answers, one after the other, to prompts that match."""

    pattern: str
    steps: list[Step] = field(default_factory=list)

    def then(self, **step: Any) -> Rule:
        self.steps.append(Step(**step))
        return self

    def matches(self, prompt: str) -> bool:
        return re.search(self.pattern, prompt, re.DOTALL) is not None


@dataclass(frozen=True)
class Turn:
    """A request, in terms common to all APIs."""

    conversation: str
    prompts: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    answered: int = 0
    """The number of answers in the history since the last prompt."""
    user_text: str = ""
    """All text from the user's side, including tool results."""
    tools: tuple[str, ...] = ()
    size: int = 0
    """The number of characters of the whole request."""
    stream: bool = True
    model: str = ""
    structured: bool = False
    """Whether it requests JSON of a given shape, such as a title."""

    @property
    def background(self) -> bool:
        return not self.tools

    @property
    def prompt(self) -> str:
        return self.prompts[-1] if self.prompts else ""


class Script:
    """All rules; it stores only how often each failure has happened to each session."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.failures: Counter[tuple[str, int, int, int]] = Counter()

    def answer(self, turn: Turn) -> Step:
        if turn.background:
            return Step(say='{"title": "Scripted"}' if turn.structured else "Scripted")
        for number, rule in enumerate(list(self.rules)):
            if rule.matches(turn.prompt):
                return self.step(rule, number, turn)
        return Step(say=f"No rule matches: {turn.prompt[:200]}")

    def step(self, rule: Rule, number: int, turn: Turn) -> Step:
        """Return the step that is due; failures are not among the answers in the history."""
        due = turn.answered
        for index, step in enumerate(rule.steps):
            if step.fails:
                key = (turn.conversation, number, len(turn.prompts), index)
                # A later answer proves that this failure is over.
                if due == 0 and self.failures[key] < step.limit:
                    self.failures[key] += 1
                    return step
            elif due == 0:
                return step
            else:
                due -= 1
        return Step(say="Done.")


SHELLS: dict[str, Any] = {
    "Bash": lambda command: {"command": command, "description": "run it"},
    "bash": lambda command: {"command": command, "description": "run it"},
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-c", command]},
}


def calls_of(step: Step, turn: Turn) -> list[Call]:
    """Return the step's tool calls, `run` under the name of this client's shell tool."""
    calls = list(step.calls)
    if step.run:
        names = [name for name in SHELLS if name in turn.tools]
        if not names:
            raise LookupError(f"none of {sorted(turn.tools)} is a shell")
        given = SHELLS[names[0]](step.run)
        if step.ask and names[0] == "exec_command":
            given |= {"sandbox_permissions": "require_escalated", "justification": "May I?"}
        calls.append((names[0], given))
    return calls


def usage_of(step: Step, turn: Turn) -> Usage:
    if step.usage:
        return step.usage
    # Clients show and sum these, so all parts are present and differ between answers.
    size = turn.size // 4 + 1
    said = len(step.say) + len(step.run) + len(str(step.call or ""))
    return Usage(input=size // 4 + 3, output=said // 4 + 1, cache_read=size // 2, cache_write=7)
