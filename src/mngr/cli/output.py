"""How results are printed: tables, JSON, JSON lines, templates; and notes on stderr.

Results go to stdout and everything else to stderr, so that a pipe gets results only.
"""

from __future__ import annotations

import json
import os
import re
import sys

from mngr.cli.templates import check_fields, lookup, parse_template
from mngr.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypeAlias

    from mngr.struct import Json

    Row: TypeAlias = Mapping[str, Json]
    Column: TypeAlias = str | tuple[str, str]
    """A dotted field, or a field and its header."""


def rows(
    args: Namespace,
    rows: Sequence[Row],
    columns: Sequence[Column],
    envelope: str | None = None,
    errors: Sequence[Json] = (),
    empty: str = "",
    fields: Sequence[str] = (),
) -> None:
    """Print many results. `fields` are the known names, for when there are no rows to tell."""
    if args.format == "json":
        listed: Json = [dict(row) for row in rows]
        _print(_json({envelope: listed, "errors": list(errors)} if envelope else listed))
    elif args.format == "jsonl":
        _print(*(json.dumps(dict(row)) for row in rows))
    elif args.format == "human":
        _print_table(rows, columns, empty, fields)
    else:
        _print_template(args.format, rows, fields)
    if args.format != "json" or not envelope:
        for error in errors:
            warn(_message(error))


def one(args: Namespace, row: Row, human: str) -> None:
    """Print one result."""
    if args.format == "json":
        _print(_json(dict(row)))
    elif args.format == "human":
        _print(clean(human))
    else:
        rows(args, [row], [])


def say(args: Namespace, text: str) -> None:
    """A note for a person; not with --quiet."""
    if not args.quiet:
        _note(clean(text))


def warn(text: str) -> None:
    """Something is wrong, though not so wrong that the command fails."""
    _note(f"mngr: {clean(text)}")


def can_ask(args: Namespace) -> bool:
    """Whether somebody is there to see a question and to answer it."""
    return not args.headless and _is_terminal(sys.stdin) and _is_terminal(sys.stderr)


def confirm(args: Namespace, question: str, default: bool = False) -> bool:
    """Ask; without a terminal on both ends nobody could answer, and guessing may lose work."""
    if not can_ask(args):
        raise Refused(f"nobody to ask: {clean(question)}", "pass --force to do it anyway")
    sys.stderr.write(f"{clean(question)} [{'Y/n' if default else 'y/N'}] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        _note("")
        return False
    return answer.strip().lower() in ("y", "yes") if answer.strip() else default


_UNSAFE = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, DCS and the like
    r"|\x1b[ -/]*[0-~]?"  # any other escape
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"  # controls, C1, text direction
)


def clean(text: str) -> str:
    """Text without terminal escapes and control characters; newlines and tabs stay."""
    return text if text.isprintable() else re.sub(_UNSAFE, "", text)


def cell(value: Json) -> str:
    """A value as one line of text for a table or template."""
    if isinstance(value, str):
        text = value
    elif value is None:
        return ""
    elif isinstance(value, dict):
        text = ",".join(f"{key}={cell(inner)}" for key, inner in value.items())
    elif isinstance(value, (list, tuple)):
        text = ",".join(cell(inner) for inner in value)
    else:
        text = json.dumps(value)
    return text if text.isprintable() else clean(re.sub(r"[\r\n\t]+", " ", text))


def local_time(stamp: Json) -> str:
    """An ISO 8601 time as the reader's clock shows it, with its zone; other text as it is."""
    import time

    from mngr.filters.values import parse_timestamp

    moment = parse_timestamp(stamp) if isinstance(stamp, str) else None
    if moment is None:
        return cell(stamp)
    return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(moment.micros / 1e6))


def coloured() -> bool:
    """Whether stdout is for a person who wants colour."""
    return _is_terminal(sys.stdout) and not os.environ.get("NO_COLOR")


def bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if coloured() else text


def _print_table(
    rows: Sequence[Row], columns: Sequence[Column], empty: str, known: Sequence[str]
) -> None:
    named = [(c, _header(c)) if isinstance(c, str) else c for c in columns]
    check_fields((field for field, _ in named), rows, known)
    if not rows:
        _print(*([empty] if empty else []))
        return
    cells = [[cell(lookup(row, field)) for field, _ in named] for row in rows]
    head, *body = _aligned([[header for _, header in named], *cells])
    _print(bold(head), *body)


def _header(field: str) -> str:
    return field.replace("_", " ").replace(".", " ").upper()


def _aligned(table: list[list[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        yield "  ".join(padded).rstrip()


def _print_template(template: str, rows: Sequence[Row], known: Sequence[str]) -> None:
    pieces = parse_template(template)
    check_fields((field for _, field in pieces if field), rows, known)
    for row in rows:
        _print("".join(text + (cell(lookup(row, name)) if name else "") for text, name in pieces))


def _json(value: Json) -> str:
    return json.dumps(value, indent=2 if _is_terminal(sys.stdout) else None)


def _message(error: Json) -> str:
    return cell(error["message"] if isinstance(error, dict) and "message" in error else error)


def _print(*lines: str) -> None:
    try:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    except OSError as error:  # such as a full disk; Python does not say on which file
        error.filename = "standard output"
        raise


def _note(line: str) -> None:
    sys.stdout.flush()  # so that both streams on one terminal keep their order
    sys.stderr.write(f"{line}\n")


def _is_terminal(stream: object) -> bool:
    """A closed stream is None."""
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty())
