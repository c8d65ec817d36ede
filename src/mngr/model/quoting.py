"""Quote words for POSIX sh: single quotes pass any bytes but NUL unchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


def quote(word: str) -> str:
    if _PLAIN.fullmatch(word) and "=" not in word:
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def join(words: Sequence[str]) -> str:
    return " ".join(map(quote, words))
