"""Quote words for shells: in POSIX sh, single quotes pass any bytes but NUL unchanged."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


# Without expressions, because compiling one takes longer than quoting all words of a command.
_AS_LETTERS = str.maketrans("_@%+:,./-", "xxxxxxxxx")


def quote(word: str) -> str:
    if word.isascii() and word.translate(_AS_LETTERS).isalnum():
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def join(words: Sequence[str]) -> str:
    return " ".join(map(quote, words))


def portable(words: Sequence[str]) -> str:
    """Return a line that every usual shell runs alike, with one process more than `join`.

    Between single quotes, csh accepts neither a newline nor `!`, and fish changes `\\\\`.
    """
    line = f"exec {join(words)}".replace("%", "%%").encode("utf-8", "surrogateescape")
    special = (*b"\\'!", *range(1, 32), *range(127, 256))
    escaped = line.decode("latin-1").translate({each: f"\\{each:03o}" for each in special})
    return f"""sh -c 'eval "$(printf "$0")"' '{escaped}'"""
