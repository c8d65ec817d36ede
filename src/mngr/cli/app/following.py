"""Print records as they arrive, or repeatedly, until interrupted or the output is closed."""

from __future__ import annotations

import json
import os
import sys
import time

from mngr.cli.app.options import count
from mngr.cli.app.output import rows
from mngr.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from mngr.cli.app.parser import Namespace, Parser
    from mngr.model.struct import Json

    T = TypeVar("T")
    Record = dict[str, Json]

HOME_AND_CLEAR = "\x1b[H\x1b[2J"


def again(seconds: float, show: Callable[[], int]) -> int:
    """Repeat the output: on a terminal in place, otherwise separated by blank lines."""
    redraw = sys.stdout.isatty()
    leave_with_reader()
    try:
        while True:
            if redraw:
                sys.stdout.write(HOME_AND_CLEAR)
            code = show()
            if code:
                return code
            sys.stdout.write("" if redraw else "\n")
            sys.stdout.flush()
            time.sleep(seconds)
    except KeyboardInterrupt:
        return 0


def for_ever(items: Iterable[T], show: Callable[[T], None]) -> None:
    """Show items endlessly; Ctrl-C is the usual way to end this, and not an error."""
    leave_with_reader()
    try:
        for item in items:
            show(item)
    except KeyboardInterrupt:
        pass


def print_records(
    args: Namespace,
    records: Iterable[dict[str, Json]],
    human: Callable[[dict[str, Json]], str] | None,
    envelope: str = "",
) -> None:
    """Print each record as a line of JSON, with a template, or as the text that `human` returns.

    With `envelope`, all records are one document if the format is JSON.
    """
    if envelope and args.format == "json":
        rows(args, list(records), [], envelope)
        return
    for record in records:
        if human and args.format == "human":
            sys.stdout.write(human(record))
        elif args.format in ("human", "json", "jsonl"):
            sys.stdout.write(f"{json.dumps(record)}\n")
        else:
            rows(args, [record], [])
    sys.stdout.flush()


def add_ends(parser: Parser, what: str, until: str) -> None:
    """Add --tail, --head and --follow."""
    add = parser.add_argument
    add("--tail", type=count, metavar="N", help=f"print only the last N {what}")
    add("--head", type=count, metavar="N", help=f"print only the first N {what}")
    add("-f", "--follow", action="store_true", help=f"print new {what} until {until}")


def check_ends(args: Namespace) -> None:
    if args.follow and args.head is not None:
        raise UsageError("--head and --follow cannot be used together", "use one of them")


def print_stream(
    args: Namespace,
    look: Callable[[bool], Iterable[Record]],
    wanted: Callable[[Record], bool],
    human: Callable[[Record], str] | None,
    envelope: str,
) -> None:
    """Print the records that --head or --tail selects; with --follow, then those that come.

    `look` returns the past records or, if it is told to follow, endlessly all.
    """
    past = list(filter(wanted, look(False)))
    shown = past if args.head is None else past[: args.head]
    shown = shown if args.tail is None else shown[max(len(shown) - args.tail, 0) :]
    if not args.follow:
        print_records(args, shown, human, envelope)
        return
    left_out = {str(record["event_id"]) for record in past[: len(past) - len(shown)]}
    coming = (each for each in look(True) if str(each["event_id"]) not in left_out)
    for_ever(filter(wanted, coming), lambda record: print_records(args, [record], human))


def leave_with_reader() -> None:
    """End when the reader of stdout is gone, which a command without output would not notice."""
    import threading

    threading.Thread(target=_leave_with_reader, daemon=True).start()


def _leave_with_reader() -> None:
    import select

    poll = select.poll()
    poll.register(1, 0)  # errors only
    if poll.poll():
        os._exit(141)
