"""`price>3`, `name=milk`, `kind!=fruit`, `name~ea`: what rows have to fulfil."""

# mypy: ignore-errors
from __future__ import annotations

import re

from sheet.table import SheetError, number

PATTERN = re.compile(r"\s*(\w+)\s*(<=|>=|!=|=|<|>|~)\s*(.*?)\s*$")


def parse(text):
    found = PATTERN.match(text)
    if found is None:
        raise SheetError(f"cannot read {text!r}; write it like price>3")
    name, sign, wanted = found.groups()
    return lambda row: holds(cell(row, name), sign, wanted)


def cell(row, name):
    if name not in row:
        raise SheetError(f"there is no column {name}; try {', '.join(row)}")
    return row[name]


def holds(value, sign, wanted):
    if sign == "~":
        return wanted.lower() in value.lower()
    left, right = number(value), number(wanted)
    if left is None or right is None:
        left, right = value, wanted
    if sign == "=":
        return left == right
    if sign == "!=":
        return left != right
    if sign == "<":
        return left < right
    if sign == "<=":
        return left <= right
    if sign == ">":
        return left > right
    return left >= right


def every(tests):
    return lambda row: all(test(row) for test in tests)


def some(tests):
    return lambda row: any(test(row) for test in tests)
