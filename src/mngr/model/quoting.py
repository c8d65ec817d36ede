"""Quote words for shells: in POSIX sh, single quotes pass any bytes but NUL unchanged."""

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


_SPECIAL = re.compile(rb"[\\'!\x01-\x1f\x7f-\xff]")


def portable(words: Sequence[str]) -> str:
    """Return a line that every usual shell runs alike, with one process more than `join`.

    Between single quotes, csh accepts neither a newline nor `!`, and fish changes `\\\\`.
    """
    line = f"exec {join(words)}".replace("%", "%%").encode("utf-8", "surrogateescape")
    escaped = _SPECIAL.sub(lambda found: b"\\%03o" % found[0][0], line)
    return f"""sh -c 'eval "$(printf "$0")"' '{escaped.decode("ascii")}'"""
