"""How results are printed: tables, JSON, JSON lines, templates; and notes on stderr.

Results go to stdout and everything else to stderr, so that a pipe gets results only.
"""

from __future__ import annotations

import os
import stat
import sys
import time

from mngr.cli.app.parser import Namespace
from mngr.cli.app.templates import check_fields, parse_template
from mngr.errors import MngrError, Refused
from mngr.model import jsontext
from mngr.model.struct import Json
from mngr.query import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

Row: TypeAlias = "Mapping[str, Json]"
Column = str | tuple[str, str]
"""A dotted field, or a field and its header."""
PATIENCE = 5.0
"""Seconds to wait for an answer from a pipe."""


def rows(
    args: Namespace,
    rows: Sequence[Row],
    columns: Sequence[Column],
    envelope: str | None = None,
    errors: Sequence[Json] = (),
    empty: str = "",
    fields: Sequence[str] = (),
) -> None:
    """Print many results; `fields` are the known names, which empty `rows` do not show."""
    if args.format == "json":
        listed: Json = [dict(row) for row in rows]
        args.has_document = True
        _print(_json({envelope: listed, "errors": list(errors)} if envelope else listed))
    elif args.format == "jsonl":
        _print(*(jsontext.dumps(dict(row)) for row in rows))
    elif args.format == "human" and args.quiet and all("id" in row for row in rows):
        _print(*(str(row["id"]) for row in rows))
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
        args.has_document = True
        _print(_json(dict(row)))
    elif args.format == "human":
        _print(clean(human))
    else:
        rows(args, [row], [])


def failed(args: Namespace, error: MngrError) -> None:
    """Print the errors of a failed command as its document, if it is JSON and there is none yet."""
    if args.format == "json" and not getattr(args, "has_document", False):
        errors = [*getattr(args, "failures", ())]
        errors += [] if error in errors else [error]
        one(args, {"errors": [{"message": str(each)} for each in errors]}, "")


def print_result(args: Namespace, row: Row, human: str) -> None:
    """Print one result; with --quiet only its id, if it has one."""
    if args.format == "human" and args.quiet:
        _print(*([str(row["id"])] if "id" in row else []))
    else:
        one(args, row, human)


def say(args: Namespace, text: str) -> None:
    """Print a note on stderr, unless --quiet."""
    if not args.quiet:
        _note(clean(text))


def warn(text: str) -> None:
    """Print a warning on stderr."""
    _note(f"mngr: {clean(text)}")


def can_ask(args: Namespace) -> bool:
    """Return whether a question can be shown and answered."""
    return not args.headless and sys.stdin.isatty() and sys.stderr.isatty()


def confirm(
    args: Namespace,
    question: str,
    *,
    reason: str = "",
    otherwise: str = "use --force to do it anyway",
    default: bool = False,
) -> bool:
    """Ask, after the reason for asking; --yes answers.

    Without a terminal on both ends, raise Refused with the hint `otherwise`: a guess could lose
    work.
    """
    if getattr(args, "yes", False):
        return True
    if not can_ask(args):
        needs = f"asking requires a terminal: {question}"
        raise Refused(clean(reason or needs), otherwise)
    question = f"{reason}. {question}" if reason else question
    sys.stderr.write(f"{clean(question)} [{'Y/n' if default else 'y/N'}] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        _note("")
        return False
    return _agrees(answer, default)


def _agrees(answer: str, default: bool) -> bool:
    return answer.strip().lower() in ("y", "yes") if answer.strip() else default


def declined(args: Namespace) -> bool:
    """Return whether standard input is a pipe that answers no: `echo n | mngr destroy foo`."""
    import select

    if args.headless or sys.stdin.isatty():
        return False
    if not stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode):
        return False
    ready, _, _ = select.select([sys.stdin], [], [], PATIENCE)
    answer = sys.stdin.readline() if ready else ""
    return bool(answer) and not _agrees(answer, False)


def asker(args: Namespace) -> Callable[[str], bool] | None:
    """Return a function that asks the user, or None without a terminal."""
    return (lambda question: confirm(args, question)) if can_ask(args) else None


_UNSAFE = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, DCS and the like
    r"|\x1b[ -/]*[0-~]?"  # any other escape
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"  # controls, C1, text direction
)


def clean(text: str) -> str:
    """Return the text without terminal escapes and control characters, except newlines and tabs."""
    if text.isprintable():
        return text
    import re

    return re.sub(_UNSAFE, "", text)


def cell(value: Json) -> str:
    """Return a value as one line of text for a table or template."""
    if isinstance(value, str):
        text = value
    elif value is None:
        return ""
    elif isinstance(value, dict):
        text = ",".join(f"{key}={cell(inner)}" for key, inner in value.items())
    elif isinstance(value, (list, tuple)):
        text = ",".join(cell(inner) for inner in value)
    else:
        text = jsontext.dumps(value)
    if text.isprintable():
        return text
    import re

    return clean(re.sub(r"[\r\n\t]+", " ", text))


def local_time(stamp: Json) -> str:
    """Return an ISO 8601 time in local time with its zone; other text unchanged."""
    from mngr.model.events import epoch

    moment = epoch(stamp) if isinstance(stamp, str) else None
    if moment is None:
        return cell(stamp)
    return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(moment))


def many(count: int, noun: str) -> str:
    """Return `1 commit` or `2 commits`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def coloured() -> bool:
    """Return whether to print colours on stdout."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


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
    cells = [[_readable(select(row, field)) for field, _ in named] for row in rows]
    states = {at for at, (field, _) in enumerate(named) if field.endswith("state")}
    head, *body = _aligned([[header for _, header in named], *cells], states)
    _print(bold(head), *body)


def _readable(value: Json | None) -> str:
    """Return a table cell, with times in local time."""
    if isinstance(value, str) and value[10:11] == "T" and value[-1:] == "Z":
        return local_time(value)
    return cell(value)


def _header(field: str) -> str:
    return field.replace("_", " ").replace(".", " ").upper()


def _aligned(table: list[list[str]], states: set[int]) -> Iterator[str]:
    if sys.stdout.isatty():
        yield from _on_terminal(table, states if coloured() else set())
        return
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        yield "  ".join(padded).rstrip()


def _on_terminal(table: list[list[str]], states: set[int]) -> Iterator[str]:
    """Yield the lines of a table that fits the terminal; `states` are the columns to colour."""
    from mngr.cli.app import tables

    natural = [max(map(tables.width_of, column)) for column in zip(*table, strict=True)]
    widths = tables.fitted(natural, tables.terminal_width())
    for line in table:
        texts = [
            tables.padded(tables.cut(text, width), width)
            for text, width in zip(line, widths, strict=False)
        ]
        texts[-1] = texts[-1].rstrip()
        painted = [tables.coloured_state(t) if at in states else t for at, t in enumerate(texts)]
        yield "  ".join(painted).rstrip()


def _print_template(template: str, rows: Sequence[Row], known: Sequence[str]) -> None:
    pieces = parse_template(template)
    check_fields((field for _, field in pieces if field), rows, known)
    for row in rows:
        _print("".join(text + (cell(select(row, name)) if name else "") for text, name in pieces))


def _json(value: Json) -> str:
    if not sys.stdout.isatty():
        return jsontext.dumps(value)
    import json

    return json.dumps(value, indent=2)


def _message(error: Json) -> str:
    return cell(error["message"] if isinstance(error, dict) and "message" in error else error)


OUTPUT = "standard output"


def write_bytes(data: bytes) -> None:
    """Write to standard output at once."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        error.filename = OUTPUT  # Python does not say on which file, for instance on a full disk
        raise


def _print(*lines: str) -> None:
    try:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    except OSError as error:  # such as a full disk; Python does not name the file
        error.filename = OUTPUT
        raise


def _note(line: str) -> None:
    sys.stdout.flush()  # so that both streams on one terminal keep their order
    sys.stderr.write(f"{line}\n")
