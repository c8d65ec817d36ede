"""Choosing among rows: filters in CEL, sort orders, columns.

Filters are a subset of CEL, the Common Expression Language, with rules for untidy data:

- A missing key (`labels.team` without that label), an element past the end, and text that
  `int()`, `double()`, `timestamp()` or `duration()` cannot read are all null.
- A test on null is false: `exit_code > 0`, `labels.team.startsWith("x")`, `x in null`.
  `==` and `!=` see null as a value of its own, so `labels.team != "x"` holds when the label
  is missing. A value computed from null is null. Where a test is needed, null is false.
- `has(x)` means `x != null`.
- Text beside a timestamp is read as one (`create_time < now - duration("2h")`), a number
  beside a duration counts as seconds (`idle_seconds > duration("10m")`), and whole numbers
  mix with fractions.
- `now` is the time of the test. Durations are written as everywhere in mngr: `14d`, `1h30m`.
- Any function may be written `f(x, y)` or `x.f(y)`. Not here: bytes, messages, `map()`, types.
- Comparing things that can never be equal or ordered is an error, found before any row is
  read where the kind of the field is known, otherwise when a row shows it.
"""

from __future__ import annotations

from mngr.errors import UsageError
from mngr.filters.fields import Fields, parse_fields, parse_sort, select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mngr.filters.syntax import BadExpression
    from mngr.struct import Json

__all__ = ["Fields", "compile_filter", "mentioned", "parse_fields", "parse_sort", "select"]


def compile_filter(
    expression: str,
    fields: Fields,
    where: str = "--include",
    clock: Callable[[], float] | None = None,
) -> Callable[[Mapping[str, Json]], bool]:
    """The test an expression stands for. It and the test raise UsageError naming `where`."""
    import time

    # Listing without a filter must not pay for these.
    from mngr.filters.check import check
    from mngr.filters.evaluate import Exhausted, Scope, build, truth
    from mngr.filters.parser import parse
    from mngr.filters.syntax import BadExpression
    from mngr.filters.values import Fault

    try:
        tree = parse(expression)
        check(tree, fields)
    except BadExpression as error:
        raise _refusal(error, where) from None
    step = build(tree, fields)
    now = clock or time.time

    def test(row: Mapping[str, Json]) -> bool:
        try:
            return truth(step(Scope(row, now)))
        except Fault as fault:
            raise UsageError(f"{fault.message} in {where}", fault.hint) from None
        except Exhausted as error:
            raise UsageError(f"{error} in {where}") from None
        except RecursionError:
            raise UsageError(f"data nested too deeply to compare in {where}") from None

    return test


def mentioned(expression: str) -> set[str]:
    """The names an expression uses, without what follows a dot or stands in quotes."""
    from mngr.filters.syntax import BadExpression, tokenize

    try:
        tokens = tokenize(expression)
    except BadExpression:
        return set()  # compile_filter says what is wrong with it
    pairs = zip([None, *tokens], tokens, strict=False)
    return {
        token.text
        for before, token in pairs
        if token.kind == "word" and (before is None or before.text != ".")
    }


def _refusal(error: BadExpression, where: str) -> UsageError:
    place = f"at character {error.at + 1} of" if error.at >= 0 else "in"
    return UsageError(f"{error.message} {place} {where}", error.hint)
