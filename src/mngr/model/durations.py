"""Durations as people write them: 14d, 1h30m, 90, 250ms."""

from __future__ import annotations

from mngr.errors import UsageError

_UNITS = {"w": 604_800.0, "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
# Largest unit first and each at most once, so that a typing error such as `30h1` is an error.
_WRITTEN = r"\s*".join(rf"(?:{_NUMBER}\s*{unit})?" for unit in _UNITS)
# Far below the values at which select() and timestamps overflow.
_LONGEST = 100 * 365 * 86_400.0


def parse_duration(text: str) -> float:
    """Return seconds. A bare number is seconds; raise UsageError for any other form."""
    trimmed = text.strip()
    # `stop` and `start` parse a plain `10s`; importing re takes longer than all the rest.
    number, unit = trimmed[:-1], _UNITS.get(trimmed[-1:])
    if unit and number.isascii() and number.isdigit():
        return _bounded(float(number) * unit, text)
    if trimmed.isascii() and trimmed.isdigit():
        return _bounded(float(trimmed), text)
    import re

    if re.fullmatch(_NUMBER, trimmed):
        return _bounded(float(trimmed), text)
    match = re.fullmatch(_WRITTEN, trimmed)
    if not trimmed or match is None:
        raise UsageError(f"bad duration {text[:40]!r}", "write it like 14d, 1h30m, 90s or 250ms")
    amounts = zip(match.groups(), _UNITS.values(), strict=True)
    return _bounded(sum(float(number) * unit for number, unit in amounts if number), text)


def _bounded(seconds: float, text: str) -> float:
    if seconds > _LONGEST:
        raise UsageError(f"the duration {text[:40]!r} is longer than 100 years")
    return seconds


def exactly(seconds: float) -> str:
    """Return a duration without rounding: `1h`, `1h 30m`, `45 s`, `0.5 s`."""
    if seconds < 60 or seconds != int(seconds):
        return f"{seconds:g} s"
    return " ".join(part for part in written(seconds, 4).split() if part[0] != "0")


def written(seconds: float, units: int = 2) -> str:
    """Return the largest units of a duration: `1h 30m`, `45s`; with one unit `2d`."""
    parts: list[str] = []
    rest = max(0, int(seconds))
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(rest, int(_UNITS[unit]))
        if count or parts or unit == "s":
            parts.append(f"{count}{unit}")
    return " ".join(parts[:units])
