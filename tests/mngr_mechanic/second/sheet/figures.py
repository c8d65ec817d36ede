"""Sums, means and the like."""

# ruff: noqa: B905 - it runs on Python 3.9
# mypy: ignore-errors
from __future__ import annotations

from sheet.table import SheetError, Table, number


def numbers(cells):
    found = [number(cell) for cell in cells]
    if any(value is None for value in found):
        bad = cells[found.index(None)]
        raise SheetError(f"{bad!r} is not a number")
    return found


def total(values):
    return sum(values)


def mean(values):
    if not values:
        raise SheetError("the mean of nothing")
    return sum(values) / len(values)


def median(values):
    if not values:
        raise SheetError("the median of nothing")
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def span(values):
    return max(values) - min(values)


FIGURES = {"sum": total, "mean": mean, "median": median, "span": span, "count": len}


def grouped(table, name, by, figure):
    """One row per value of `by`, in the order of their first appearance."""
    groups = {}
    for group, cell in zip(table.column(by), table.column(name)):
        groups.setdefault(group, []).append(cell)
    rows = [[group, shown(FIGURES[figure](numbers(cells)))] for group, cells in groups.items()]
    return Table([by, figure], rows)


def shown(value):
    """Without a fraction where there is none, else with at most two digits."""
    if float(value) == int(value):
        return str(int(value))
    return f"{value:.2f}".rstrip("0")
