"""`mngr logs`: print the output of an agent's program."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Callable

from mngr.cli.app import targets
from mngr.cli.app.options import count
from mngr.cli.app.output import clean, one, write_bytes
from mngr.cli.app.parser import Namespace, Parser
from mngr.errors import UsageError

DESCRIPTION = """\
Print the output of the agent's program since the agent was created, across restarts and after the \
program has ended. The log is stored on the agent's host; at least the last 4 MB are kept.

Escape sequences and control characters are removed unless you pass --raw. For programs that \
redraw the whole screen, such as coding agents, `mngr capture` and `mngr transcript` are easier to \
read."""

SEQUENCE = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ\\`-~])"
HELD = 4096
"""Characters of an escape sequence that may still be incomplete; a longer one is not awaited."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    targets.add_target(parser)
    add = parser.add_argument
    add("-f", "--follow", action="store_true", help="print new output until the agent has ended")
    add("-n", "--tail", type=count, metavar="N", help="print only the last N lines")
    add("--raw", action="store_true", help="keep escape sequences")
    parser.examples = [
        ("print the output", "mngr logs tests"),
        ("follow new output", "mngr logs tests -f"),
        ("print the last lines", "mngr logs tests -n 20"),
        ("keep the colours", "mngr logs tests --raw"),
    ]
    parser.see_also = ["mngr-capture", "mngr-transcript", "mngr-event", "mngr-show"]


def run(args: Namespace) -> int:
    if args.follow and args.format != "human":
        raise UsageError("--follow prints the output of the agent", "leave out --format")
    api, agent = targets.one(args)
    if args.format != "human":
        text = cleaned(args.raw)(_last(api.printed(agent), args.tail), True)
        one(args, {"id": agent.id, "name": agent.name, "log": text}, "")
        return 0
    if not args.follow:
        data = _last(api.printed(agent), args.tail)
        _write(args.raw, cleaned(args.raw), data, True)
        return 0
    from mngr.cli.app.following import for_ever

    show = cleaned(args.raw)
    chunks = iter(api.follow_printed(agent))
    _write(args.raw, show, _last(next(chunks, b""), args.tail), False)
    for_ever(chunks, lambda data: _write(args.raw, show, data, False))
    return 0


def _last(data: bytes, lines: int | None) -> bytes:
    if lines is None:
        return data
    return b"".join(data.splitlines(keepends=True)[-lines:]) if lines else b""


def _write(raw: bool, show: Callable[[bytes, bool], str], data: bytes, final: bool) -> None:
    if not raw:
        data = show(data, final).encode(sys.stdout.encoding, "backslashreplace")
    write_bytes(data)


def cleaned(raw: bool) -> Callable[[bytes, bool], str]:
    """Return a function that turns pieces of output into text. An escape sequence or a character
    may begin in one piece and end in the next."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    held = ""

    def show(data: bytes, final: bool) -> str:
        nonlocal held
        text, held = held + decode(data, final), ""
        if raw:
            return text
        if not final:
            text, held = _complete(text)
        return clean(re.sub(r"\r+\n?", "\n", text))

    return show


def _complete(text: str) -> tuple[str, str]:
    """Split off the end of the text if it may be half of an escape sequence or line end."""
    end = 0
    for match in re.finditer(SEQUENCE, text):
        end = match.end()
    start = text.find("\x1b", end)
    if start < 0:
        start = len(text.rstrip("\r"))
    if len(text) - start > HELD:
        return text, ""
    return text[:start], text[start:]
