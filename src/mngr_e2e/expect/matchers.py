"""Claims about text, as functions that return a ClaimCheck; `not_to_…` inverts the same one."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Json: TypeAlias = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
JsonLike: TypeAlias = None | bool | int | float | str | Sequence[object] | Mapping[str, object]
"""What a test may pass as JSON: for mypy, a TypedDict is a mapping of objects."""

DIFF_LINES = 200


@dataclass(frozen=True)
class ClaimCheck:
    """Whether a claim holds; None if it cannot be checked, so its negation does not hold either."""

    holds: bool | None
    claim: str
    """The text after "expected …": `to contain 'x'`."""
    detail: str = ""
    """Why it does not hold."""


# text


def contains(text: str, wanted: str) -> ClaimCheck:
    holds = wanted in text
    return ClaimCheck(
        holds, f"to contain {shown(wanted)}", "" if holds else _nearest_line(text, wanted)
    )


def matches(text: str, pattern: str | re.Pattern[str]) -> ClaimCheck:
    """Check for a pattern anywhere in the text; `^` and `$` match at lines."""
    found = re.compile(pattern, re.MULTILINE) if isinstance(pattern, str) else pattern
    return ClaimCheck(found.search(text) is not None, f"to match {shown(found.pattern)}")


def equals(text: str, wanted: str) -> ClaimCheck:
    if text == wanted:
        return ClaimCheck(True, f"to equal {shown(wanted)}")
    return ClaimCheck(False, f"to equal {shown(wanted)}", diff(wanted, text))


def starts_with(text: str, wanted: str) -> ClaimCheck:
    detail = f"it starts with {shown(text[: len(wanted) + 20])}"
    return ClaimCheck(text.startswith(wanted), f"to start with {shown(wanted)}", detail)


def ends_with(text: str, wanted: str) -> ClaimCheck:
    detail = f"it ends with {shown(text[-(len(wanted) + 20) :])}"
    return ClaimCheck(text.endswith(wanted), f"to end with {shown(wanted)}", detail)


def is_empty(text: str) -> ClaimCheck:
    return ClaimCheck(not text, "to be empty", f"it is {shown(text)}")


def has_line_count(text: str, wanted: int) -> ClaimCheck:
    """Check the number of lines, including a last one without a newline."""
    count = text.count("\n") + (not text.endswith("\n") and text != "")
    return ClaimCheck(count == wanted, f"to have {plural(wanted, 'line')}", f"it has {count}")


# display


def shown(text: str, limit: int = 200) -> str:
    """Return the text quoted on one line, truncated."""
    return repr(text) if len(text) <= limit else f"{text[:limit]!r}… ({len(text)} characters)"


def brief(value: Json, limit: int = 200) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]}…"


def pretty(value: Json) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def diff(wanted: str, actual: str) -> str:
    """Return a unified diff from the first difference; difflib is quadratic, so not of all."""
    old, new = (text.split("\n") for text in (wanted, actual))
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    start = max(0, start - 3)
    before, after = (
        [repr(line)[1:-1] for line in side[start : start + DIFF_LINES]] for side in (old, new)
    )
    lines = list(difflib.unified_diff(before, after, "expected", "actual", lineterm=""))
    if max(len(old), len(new)) > start + DIFF_LINES:
        lines.append(f"… only {DIFF_LINES} lines from line {start + 1} on are compared here")
    return "\n".join(lines)


def _nearest_line(text: str, wanted: str) -> str:
    lines = text.split("\n", 500)[:500]
    near = difflib.get_close_matches(wanted[:200], [line[:200] for line in lines], 1)
    return f"the nearest line is {shown(near[0])}" if near else ""
