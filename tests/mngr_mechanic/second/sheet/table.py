"""A table in memory: rows of text under the names of their columns."""

# ruff: noqa: B905, PERF401 - it runs on Python 3.9
# mypy: ignore-errors
from __future__ import annotations

import csv
import io


class SheetError(Exception):
    """What the user did that cannot be done."""


class Table:
    def __init__(self, columns, rows):
        self.columns = list(columns)
        self.rows = [list(row) for row in rows]

    @classmethod
    def read(cls, text, separator=","):
        lines = list(csv.reader(io.StringIO(text), delimiter=separator))
        lines = [line for line in lines if line]
        if not lines:
            raise SheetError("the table is empty")
        head, rows = lines[0], lines[1:]
        for number, row in enumerate(rows, 2):
            if len(row) != len(head):
                raise SheetError(f"line {number} has {len(row)} cells, not {len(head)}")
        return cls(head, rows)

    def index(self, name):
        if name not in self.columns:
            raise SheetError(f"there is no column {name}; try {', '.join(self.columns)}")
        return self.columns.index(name)

    def column(self, name):
        at = self.index(name)
        return [row[at] for row in self.rows]

    def pick(self, names):
        places = [self.index(name) for name in names]
        return Table(names, [[row[at] for at in places] for row in self.rows])

    def drop(self, names):
        for name in names:
            self.index(name)
        return self.pick([name for name in self.columns if name not in names])

    def where(self, test):
        return Table(self.columns, [row for row in self.rows if test(dict(zip(self.columns, row)))])

    def sort(self, name, reverse=False):
        at = self.index(name)
        return Table(self.columns, sorted(self.rows, key=lambda row: key(row[at]), reverse=reverse))

    def head(self, count):
        return Table(self.columns, self.rows[:count])

    def tail(self, count):
        return Table(self.columns, self.rows[-count:] if count else [])

    def join(self, other, name):
        """Rows of both that have the same value there; each pair of them once."""
        here, there = self.index(name), other.index(name)
        names = [each for each in other.columns if each != name]
        rows = []
        for row in self.rows:
            for match in other.rows:
                if row[here] == match[there]:
                    rows.append(row + [cell for at, cell in enumerate(match) if at != there])
        return Table(self.columns + names, rows)


def key(cell):
    """Numbers sort as numbers and before words."""
    value = number(cell)
    return (1, 0, cell.lower()) if value is None else (0, value, "")


def number(cell):
    try:
        return float(cell.replace("_", "").strip())
    except ValueError:
        return None
