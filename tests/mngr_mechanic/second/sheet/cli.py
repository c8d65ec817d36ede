"""sheet COMMAND FILE …"""

# ruff: noqa: B905 - it runs on Python 3.9
# mypy: ignore-errors
from __future__ import annotations

import argparse
import json
import sys

from sheet import VERSION, conditions, figures
from sheet.table import SheetError, Table, number


def load(name, separator):
    text = sys.stdin.read() if name == "-" else open(name, encoding="utf-8").read()
    return Table.read(text, separator)


def drawn(table):
    """Aligned columns: numbers to the right, words to the left."""
    lines = [table.columns, *table.rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.columns))]
    right = [
        bool(table.rows) and all(number(row[at]) is not None for row in table.rows)
        for at in range(len(table.columns))
    ]
    text = ""
    for line in lines:
        cells = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right)
        ]
        text += "  ".join(cells).rstrip() + "\n"
    return text


def as_csv(table):
    return "".join(",".join(row) + "\n" for row in [table.columns, *table.rows])


def as_json(table):
    return json.dumps([dict(zip(table.columns, row)) for row in table.rows], indent=1) + "\n"


WRITERS = {"text": drawn, "csv": as_csv, "json": as_json}


def show(table, args):
    return table


def pick(table, args):
    return table.drop(args.names) if args.drop else table.pick(args.names)


def where(table, args):
    tests = [conditions.parse(text) for text in args.conditions]
    together = conditions.some if args.any else conditions.every
    return table.where(together(tests))


def sort(table, args):
    return table.sort(args.name, reverse=args.reverse)


def part(table, args):
    return table.tail(args.count) if args.last else table.head(args.count)


def join(table, args):
    return table.join(load(args.other, args.separator), args.on)


def figure(table, args):
    if args.by:
        return figures.grouped(table, args.name, args.by, args.figure)
    values = figures.numbers(table.column(args.name))
    return figures.shown(figures.FIGURES[args.figure](values)) + "\n"


def parser():
    top = argparse.ArgumentParser(prog="sheet")
    top.add_argument("--version", action="version", version="sheet " + VERSION)
    top.add_argument("--as", dest="format", choices=sorted(WRITERS), default="text")
    top.add_argument("-s", "--separator", default=",")
    commands = top.add_subparsers(dest="command", required=True)
    made = {}
    for name, run in (
        ("show", show),
        ("pick", pick),
        ("where", where),
        ("sort", sort),
        ("part", part),
        ("join", join),
        ("figure", figure),
    ):
        made[name] = commands.add_parser(name)
        made[name].set_defaults(run=run)
        made[name].add_argument("file")
    made["pick"].add_argument("names", nargs="+")
    made["pick"].add_argument("--drop", action="store_true")
    made["where"].add_argument("conditions", nargs="+")
    made["where"].add_argument("--any", action="store_true")
    made["sort"].add_argument("name")
    made["sort"].add_argument("--reverse", action="store_true")
    made["part"].add_argument("count", type=int)
    made["part"].add_argument("--last", action="store_true")
    made["join"].add_argument("other")
    made["join"].add_argument("--on", required=True)
    made["figure"].add_argument("figure", choices=sorted(figures.FIGURES))
    made["figure"].add_argument("name")
    made["figure"].add_argument("--by")
    return top


def main(argv):
    args = parser().parse_args(argv)
    try:
        result = args.run(load(args.file, args.separator), args)
        sys.stdout.write(result if isinstance(result, str) else WRITERS[args.format](result))
    except SheetError as error:
        print(f"sheet: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"sheet: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 0
