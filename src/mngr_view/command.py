"""`mngr view`: serve the report of a run, or write it to a directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mngr.cli.app.output import one, say
from mngr.cli.app.parser import Namespace, Parser
from mngr.errors import MngrError, NotFound, UsageError
from mngr_tmr.journal.journal import NAME
from mngr_tmr.run import runs
from mngr_view.serving import Server
from mngr_view.writing import MARK, Live, write


def configure(parser: Parser) -> None:
    parser.description = (
        "Serve the report of a `mngr tmr` run on 127.0.0.1, at a URL that contains a secret, "
        "until you press Ctrl-C. Reload the first page to see the progress of a run. With "
        "--bundle, write the pages to a directory instead; they can be opened from disk and "
        "copied anywhere."
    )
    help = "name or directory of a run, or directory of a report (default: the newest run)"
    add = parser.add_argument
    add("what", nargs="?", default="", metavar="RUN", help=help, completes="file")
    parser.add_argument(
        "--bundle", default="", metavar="DIR", help="write the pages to this directory and exit"
    )
    parser.add_argument(
        "--port", type=_port, default=0, metavar="N", help="port (default: a free one)"
    )
    parser.examples = [
        ("show the newest run", "mngr view"),
        ("write the pages to a directory", "mngr view night --bundle /tmp/night"),
    ]
    parser.see_also = ["mngr-tmr"]


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 <= int(text) < 65536:
        raise UsageError(f"{text[:40]!r} is not a port")
    return int(text)


def run(args: Namespace) -> int:
    given = Path(args.what)
    if args.what and (given / MARK).is_file():
        if args.bundle:
            raise UsageError(f"{given} is already a report", "copy the directory instead")
        return _serve(args, given, lambda: None)
    folder = _run_folder(args, given)
    if args.bundle:
        page = write(folder, Path(args.bundle))
        one(args, {"run": folder.name, "page": str(page)}, str(page))
        return 0
    live = Live(folder, folder / "report")
    live.show()
    if live.problem:
        raise MngrError(f"the report could not be written: {live.problem}")
    return _serve(args, folder / "report", live.show)


def _run_folder(args: Namespace, given: Path) -> Path:
    if args.what and (given / NAME).is_file():
        return given.absolute()
    if "/" in args.what:
        raise NotFound(f"{args.what} is neither a run nor a report")
    return runs.find(args.config.home, args.what)


def _serve(args: Namespace, folder: Path, renew: Callable[[], None]) -> int:
    try:
        server = Server(folder, args.port, renew)
    except OSError as error:
        raise MngrError(f"port {args.port} cannot be used: {error.strerror}") from None
    with server:
        one(args, {"url": server.url}, server.url)
        say(args, "Press Ctrl-C to stop.")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0
