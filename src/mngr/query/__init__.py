"""Select rows with filter expressions, and parse sort orders and columns.

Filter expressions are a subset of CEL, the Common Expression Language: fields, text, numbers,
lists, `== != < <= > >= in && || !`, `has()`, four tests of text, and times. docs/filters.md lists
all of it.
"""

from __future__ import annotations

from mngr.errors import UsageError
from mngr.query.fields import Fields, parse_fields, parse_sort, select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mngr.model.struct import Json

__all__ = ["Fields", "compile_filter", "mentioned", "parse_fields", "parse_sort", "select"]


def compile_filter(
    expression: str,
    fields: Fields,
    where: str = "--include",
    clock: Callable[[], float] | None = None,
) -> Callable[[Mapping[str, Json]], bool]:
    """Return a function that tests a row. Both raise UsageError, which names `where`."""
    import time

    # A list without a filter does not pay for these imports.
    from mngr.query.evaluate import truth
    from mngr.query.parser import Expression
    from mngr.query.words import BadExpression

    def refusal(error: BadExpression) -> UsageError:
        place = f"at character {error.at + 1} of" if error.at >= 0 else "in"
        return UsageError(f"{error.message} {place} {where}", error.hint)

    try:
        tested = Expression(expression, fields, clock or time.time).test()
    except BadExpression as error:
        raise refusal(error) from None

    def test(row: Mapping[str, Json]) -> bool:
        try:
            return truth(tested(row))
        except BadExpression as error:
            raise refusal(error) from None
        except RecursionError:
            raise UsageError(f"data nested too deeply to compare in {where}") from None

    return test


def mentioned(expression: str) -> set[str]:
    """Return the names an expression uses, except those after a dot or in quotes."""
    from mngr.query.words import BadExpression, split

    try:
        words = split(expression)
    except BadExpression:
        return set()  # compile_filter reports it
    pairs = zip([None, *words], words, strict=False)
    return {
        word.text
        for before, word in pairs
        if word.kind == "name" and (before is None or before.text != ".")
    }
