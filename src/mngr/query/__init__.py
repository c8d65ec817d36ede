"""Filter expressions, a subset of CEL, the Common Expression Language; see docs/filters.md."""

from __future__ import annotations

from time import time

from mngr.query.fields import Fields, select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.query.fields import Row

__all__ = ["Fields", "compile_filter", "mentioned", "select"]


def compile_filter(
    expression: str, fields: Fields, where: str = "--include", clock: Callable[[], float] = time
) -> Callable[[Row], bool]:
    """Return a function that tests a row. Both raise UsageError, which names `where`."""
    from mngr.query.expression import Expression  # a list without a filter does not import it

    return Expression(expression, fields, where, clock).parse()


def mentioned(expression: str) -> set[str]:
    """Return the top-level names that an expression uses."""
    from mngr.query.expression import words

    return {word for kind, word, _ in words(expression) if kind == "name"}
