"""Limits as people write them, for `create` and `limit`: 2h, 2.50, 500k."""

from __future__ import annotations

from mngr.cli.app.options import Group
from mngr.errors import UsageError
from mngr.model.durations import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NONE = "none"
_SCALES = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


def add_limits(group: Group, *, or_none: bool = False) -> None:
    """Add the limit options. With `or_none`, the value `none` removes a limit."""
    also = "; `none` removes it" if or_none else ""
    kinds = (
        ("--timeout", seconds, "DURATION", "time limit, such as 90s or 2h"),
        ("--max-cost", dollars, "AMOUNT", "cost limit in dollars, such as 2.50"),
        ("--max-tokens", tokens, "N", "token limit, such as 500k"),
    )
    for option, parse, metavar, help in kinds:
        kind = _or_none(parse) if or_none else parse
        group.add_argument(option, type=kind, metavar=metavar, help=f"{help}{also}")


def _or_none(parse: Callable[[str], object]) -> Callable[[str], object]:
    return lambda text: NONE if text.strip().lower() == NONE else parse(text)


def seconds(text: str) -> float:
    found = parse_duration(text)
    if found <= 0:
        raise UsageError("must be more than 0")
    return found


def dollars(text: str) -> float:
    import re

    if not re.fullmatch(r"\$?([0-9]{1,9}(\.[0-9]{0,6})?|\.[0-9]{1,6})", text.strip()):
        raise UsageError(f"{text[:40]!r} is not an amount of money", "write dollars, as in 2.50")
    amount = float(text.strip().removeprefix("$"))
    if amount <= 0:
        raise UsageError("must be more than 0")
    return amount


def tokens(text: str) -> int:
    import re

    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)([kmg]?)", text.strip().lower())
    if match is None:
        raise UsageError(f"{text[:40]!r} is not a number of tokens", "write it like 20000 or 1.5M")
    count = round(float(match[1]) * _SCALES[match[2]])
    if count <= 0:
        raise UsageError("must be more than 0")
    return count
