"""Keep secrets out of a test's artifacts."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple
from urllib.parse import quote

from mngr_e2e.redaction.shellwords import EXPANSION, ShellWord, words

SHORTEST_SECRET = 6
SHORTEST_WORD = 2
"""A value shorter than SHORTEST_SECRET is redacted only where it is a whole word."""
_PASSWORDS = "PASSWORD|PASSWD|PASSPHRASE|SECRET|_PWD"
_TELLING = f"TOKEN|PASSW|{_PASSWORDS}|API_?KEY|CREDENTIAL|PRIVATE_KEY"
SECRET_NAME = re.compile(_TELLING, re.IGNORECASE)
_PASSWORD_NAME = re.compile(rf"(?:{_PASSWORDS})$", re.IGNORECASE)
_KEY_NAME = re.compile(r"(?:TOKEN|API_?KEY|CREDENTIALS?|PRIVATE_KEY)$", re.IGNORECASE)
_SETTING = re.compile(r"\d+|true|false|yes|no|on|off|none|null|auto", re.IGNORECASE)
_OPTION = re.compile(
    r"--(?:[a-z0-9]+[-_])*(?:token|secret|password|passwd|passphrase|api[-_]?key)", re.IGNORECASE
)
_NAME = rf"(?P<name>\w*(?:{_TELLING})\w*)"
_ASSIGNED = re.compile(rf"{_NAME}=(?P<value>.*)", re.IGNORECASE | re.DOTALL)
_SOMEWHERE = re.compile(rf"""\b{_NAME}=(?P<value>[^\s"'&;|]+)""", re.IGNORECASE)
_SCRIPT = re.compile(r"-[a-zA-Z]*c")
"""The option of a shell that is followed by a command."""
NESTED = 3
"""Levels of commands within commands that are searched."""
# Control sequences that may be in the middle of a word: colours, cursor movements, and the end of a
# line where the program or its editor wrapped it.
_STEERING = r"(?:\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>78]| \r|[\r\n\b\x0e\x0f])*"


class Redactor:
    """Removes secrets from text: values of variables such as API_TOKEN, given values, patterns."""

    def __init__(self, environment: Mapping[str, str], patterns: Sequence[str] = ()) -> None:
        self._secrets: dict[str, str] = {}
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self.on_change: Callable[[], None] | None = None
        self.learn(environment)

    def known(self) -> tuple[dict[str, str], list[str]]:
        """Return what another process requires to do the same; see `knowing`."""
        return self._secrets, [pattern.pattern for pattern in self._patterns]

    @classmethod
    def knowing(cls, secrets: dict[str, str], patterns: list[str]) -> Redactor:
        redact = cls({}, patterns)
        redact._secrets = secrets
        return redact

    def learn(self, environment: Mapping[str, str]) -> None:
        for name, value in environment.items():
            if value not in self._secrets and SECRET_NAME.search(name) and is_secret(name, value):
                self.add(value, name)

    def add(self, value: str, name: str = "secret") -> None:
        """Redact a value from now on, also in the forms it has in JSON and in a URL.

        Output is redacted line by line, so each line of a long secret is a secret too.
        """
        whole = [value.strip()] if len(value.strip()) >= SHORTEST_WORD else []
        lines = [line for line in value.splitlines() if len(line) >= SHORTEST_SECRET]
        for line in {*whole, *lines}:
            for form in (line, json.dumps(line)[1:-1], quote(line, safe="")):
                self._secrets[form] = f"[{name}]"
        if self.on_change:
            self.on_change()

    def command(self, text: str) -> str:
        """Return a command with its secrets redacted, including those that were not registered."""
        found = sorted(_given(text))
        for secret in found:
            if secret.value and (secret.name or len(secret.value) >= SHORTEST_SECRET):
                self.add(secret.value, secret.name or "redacted")
        written, end = [], 0
        for secret in found:
            if secret.start >= end:
                written += [self(text[end : secret.start]), f"[{secret.name or 'redacted'}]"]
            end = max(end, secret.end)
        return "".join([*written, self(text[end:])])

    def __call__(self, text: str) -> str:
        for value in self._longest_first():
            if len(value) >= SHORTEST_SECRET:
                text = text.replace(value, self._secrets[value])
            else:
                text = "".join(_replaced([text], _word(re.escape(value)), self._secrets[value]))
        for pattern in self._patterns:
            text = pattern.sub("[redacted]", text)
        return text

    def _longest_first(self) -> list[str]:
        return sorted(self._secrets, key=len, reverse=True)

    def pieces(self, pieces: Sequence[str]) -> list[str]:
        """Return text that arrived in pieces, as from a terminal, without secrets.

        A secret may begin in one piece and end in another; its replacement is put where it began.
        """
        texts = list(pieces)
        for value in self._longest_first():
            words = _STEERING.join(map(re.escape, value))
            found = _word(words) if len(value) < SHORTEST_SECRET else re.compile(words)
            texts = _replaced(texts, found, self._secrets[value])
        for pattern in self._patterns:
            texts = _replaced(texts, pattern, "[redacted]")
        return texts


def is_secret(name: str, value: str) -> bool:
    """Return whether such a variable holds a secret rather than a setting such as `true`."""
    if len(value) >= SHORTEST_SECRET or _PASSWORD_NAME.search(name):
        return True
    return bool(_KEY_NAME.search(name)) and not _SETTING.fullmatch(value)


class _Given(NamedTuple):
    """A secret in a command, with the name of its variable, if it has one."""

    start: int
    end: int
    name: str
    value: str
    """Empty if an expansion is part of it."""


def _given(command: str, depth: int = 0) -> Iterator[_Given]:
    before = ""
    for word in words(command):
        if depth < NESTED and word.text != command:
            for inner in _given(word.text, depth + 1):
                start, end = word.chars[inner.start].start, word.chars[inner.end - 1].end
                yield inner._replace(start=start, end=end)
        bare = command.endswith(word.text, 0, word.end)
        for name, first, last in _places(word.text, before, bare):
            value = word.text[first:last]
            if value.strip(EXPANSION) and (not name or is_secret(name, value)):
                start, end = _balanced(command, word, first, last)
                yield _Given(start, end, name, "" if EXPANSION in value else value)
        before = word.text


def _places(text: str, before: str, bare: bool) -> Iterator[tuple[str, int, int]]:
    """Yield variable, start and end of each secret in a word; `bare` if it has no quotes."""
    option, equals, _ = text.partition("=")
    if _OPTION.fullmatch(before) and not (bare and text.startswith("--")):
        yield "", 0, len(text)
    elif equals and _OPTION.fullmatch(option):
        yield "", len(option) + 1, len(text)
    elif (found := _ASSIGNED.fullmatch(text)) and not _SCRIPT.fullmatch(before):
        yield found["name"], *found.span("value")
    else:
        for each in _SOMEWHERE.finditer(text):
            yield each["name"], *each.span("value")


def _balanced(command: str, word: ShellWord, first: int, last: int) -> tuple[int, int]:
    """Return the range of these characters, with the quotes around them if it contains quotes."""
    start, end = word.chars[first].start, word.chars[last - 1].end
    if re.search("[\"']", command[start:end]):
        start = word.chars[first - 1].end if first else start
        end = word.end if last == len(word.chars) else end
    return start, end


def _word(pattern: str) -> re.Pattern[str]:
    """Return a pattern for a whole word; a control sequence may precede it."""
    steering = _STEERING.removesuffix("*")
    return re.compile(rf"(?:(?<!\w)|{steering})(?P<whole>{pattern})(?!\w)")


def _replaced(pieces: list[str], pattern: re.Pattern[str], by: str) -> list[str]:
    text = "".join(pieces)
    group = pattern.groupindex.get("whole", 0)
    spans = deque(found.span(group) for found in pattern.finditer(text) if found.group())
    if not spans:
        return pieces
    ends = accumulate(map(len, pieces))
    return [
        "".join(_kept(text, end - len(piece), end, spans, by))
        for piece, end in zip(pieces, ends, strict=True)
    ]


def _kept(text: str, start: int, end: int, spans: deque[tuple[int, int]], by: str) -> Iterator[str]:
    """Yield the rest of one piece. A span stays in the queue until the piece in which it ends."""
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
