"""Secrets, and how they are kept out of what a test leaves behind."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from urllib.parse import quote

SHORTEST_SECRET = 6
_TELLING = "TOKEN|SECRET|PASSW|API_?KEY|CREDENTIAL|PRIVATE_KEY"
SECRET_NAME = re.compile(_TELLING, re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"""\b(?P<name>\w*(?:{_TELLING})\w*)=(?P<quote>["']?)(?P<value>[^\s"'$;&|]+)(?P=quote)""",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"""(?P<option>--(?:[a-z0-9]+-)*(?:token|secret|password|passwd|passphrase|api-?key)[= ])"""
    r"""["']?[^\s"'$;&|-][^\s"';&|]*["']?"""
)
# What a terminal is told in the middle of a word: colours, cursor moves, and a line's end where
# the program or its editor wrapped it.
_STEERING = r"(?:\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>78]| \r|[\r\n\b\x0e\x0f])*"


class Redactor:
    """Takes secrets out of text: values of telling variables, values named, patterns."""

    def __init__(self, environment: Mapping[str, str], patterns: Sequence[str] = ()) -> None:
        self._secrets: dict[str, str] = {}
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self.on_change: Callable[[], None] | None = None
        self.learn(environment)

    def known(self) -> tuple[dict[str, str], list[str]]:
        """All that another process needs to do the same; see `knowing`."""
        return self._secrets, [pattern.pattern for pattern in self._patterns]

    @classmethod
    def knowing(cls, secrets: dict[str, str], patterns: list[str]) -> Redactor:
        redact = cls({}, patterns)
        redact._secrets = secrets
        return redact

    def learn(self, environment: Mapping[str, str]) -> None:
        for name, value in environment.items():
            if value not in self._secrets and SECRET_NAME.search(name):
                self.add(value, name)

    def add(self, value: str, name: str = "secret") -> None:
        """Output is redacted by line, so the lines of a long secret are each one.

        Also as it stands in JSON and in a URL, where some characters look different.
        """
        for line in {value.strip(), *value.splitlines()}:
            if len(line) >= SHORTEST_SECRET:
                for form in (line, json.dumps(line)[1:-1], quote(line, safe="")):
                    self._secrets[form] = f"[{name}]"
        if self.on_change:
            self.on_change()

    def command(self, text: str) -> str:
        """A command as it may be written down: it can hold a secret that nobody named."""
        for found in _ASSIGNED.finditer(text):
            self.add(found["value"], found["name"])
        return self(_OPTION.sub(r"\g<option>[redacted]", text))

    def __call__(self, text: str) -> str:
        for value in self._longest_first():
            text = text.replace(value, self._secrets[value])
        for pattern in self._patterns:
            text = pattern.sub("[redacted]", text)
        return text

    def _longest_first(self) -> list[str]:
        return sorted(self._secrets, key=len, reverse=True)

    def pieces(self, pieces: Sequence[str]) -> list[str]:
        """Of text that came in pieces, as on a terminal: a secret may begin in one and end in
        another. What stands for it goes where it began; there are as many pieces as before."""
        texts = list(pieces)
        for value in self._longest_first():
            found = re.compile(_STEERING.join(map(re.escape, value)))
            texts = _replaced(texts, found, self._secrets[value])
        for pattern in self._patterns:
            texts = _replaced(texts, pattern, "[redacted]")
        return texts


def _replaced(pieces: list[str], pattern: re.Pattern[str], by: str) -> list[str]:
    text = "".join(pieces)
    spans = deque(found.span() for found in pattern.finditer(text) if found.group())
    if not spans:
        return pieces
    ends = accumulate(map(len, pieces))
    return [
        "".join(_kept(text, end - len(piece), end, spans, by))
        for piece, end in zip(pieces, ends, strict=True)
    ]


def _kept(text: str, start: int, end: int, spans: deque[tuple[int, int]], by: str) -> Iterator[str]:
    """What is left of one piece. A span stays first in line until the piece it ends in."""
    here = start
    while spans and spans[0][0] < end:
        first, last = spans[0]
        if first >= start:
            yield text[here:first] + by
        here = min(last, end)
        if last > end:
            break
        spans.popleft()
    yield text[here:end]
