"""Assertions about the result of a command, as text, in the style of the test."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable

from mngr_mechanic.program.reports import Invocation

WIDTH = 100
LINES, LENGTH = 12, 900
CLOCK = re.compile(r"\b\d{1,2}:\d{2}(:\d{2})?\b|\b1[6-9]\d{8}\b")
RANDOM = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b|/tmp/|/var/folders/")


def stable_lines(commands: list[Invocation], part: str) -> "tuple[list[str], bool]":
    """Return the lines that every run printed, and whether these are all lines.

    Lines with times, paths or random values are left out. `commands` is one command in several
    runs.
    """
    texts = [str(getattr(command, part)) for command in commands]
    first = texts[0].split("\n")
    others = [set(text.split("\n")) for text in texts[1:]]
    marks = {mark for command in commands for mark in (command.home, command.work) if mark}
    kept = [
        line
        for line in first
        if all(line in other for other in others) and not _passing_thing(line, marks)
    ]
    return kept, len(kept) == len(first) and len(set(texts)) == 1


def _passing_thing(line: str, marks: Iterable[str]) -> bool:
    if any(mark in line for mark in marks) or CLOCK.search(line) or RANDOM.search(line):
        return True
    now = datetime.datetime.now(datetime.timezone.utc)
    days = [now + datetime.timedelta(days=shift) for shift in (-1, 0, 1)]
    forms = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%b %d", "%d %b", "%B %d", "%Y%m%d")
    return any(day.strftime(form) in line for day in days for form in forms)


def about_text(subject: str, lines: list[str], whole: bool, style: str, indent: str) -> list[str]:
    """Return assertions about a text; none if the text is not specific."""
    text = "\n".join(lines)
    if not text.strip():
        return []
    if whole and len(lines) <= LINES and len(text) <= LENGTH:
        return [_statement(subject, "to_equal", text, style, indent)]
    telling = sorted((line for line in lines if len(line.strip()) > 3), key=_telling)[:3]
    ordered = [line for line in lines if line in telling]
    return [_statement(subject, "to_contain", line, style, indent) for line in ordered]


def _telling(line: str) -> tuple[int, int]:
    """Return a sort key: lines that are long enough to be specific and short enough to read."""
    return (abs(len(line.strip()) - 40), len(line))


def about_exit(name: str, code: int, style: str, indent: str) -> str:
    if style == "assert":
        return f"{indent}assert {name}.exit_code == {code}"
    if code == 0:
        return f"{indent}expect({name}).to_succeed()"
    return f"{indent}expect({name}).to_have_exit_code({code})"


def _statement(subject: str, claim: str, text: str, style: str, indent: str) -> str:
    if style == "assert":
        sign = "==" if claim == "to_equal" else "in"
        sides = (subject, _quoted(text)) if claim == "to_equal" else (_quoted(text), subject)
        return f"{indent}assert {sides[0]} {sign} {sides[1]}"
    line = f"{indent}expect({subject}).{claim}({_quoted(text)})"
    if len(line) <= WIDTH:
        return line
    parts = text.splitlines(keepends=True)
    inner = "".join(f"{indent}    {_quoted(part)}\n" for part in parts)
    return f"{indent}expect({subject}).{claim}(\n{inner}{indent})"


def _quoted(text: str) -> str:
    if '"' in text and "'" not in text:
        return repr(text)
    if text.isprintable() or text.replace("\n", "").isprintable():
        return json.dumps(text, ensure_ascii=False)
    return repr(text)
