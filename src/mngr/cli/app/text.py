"""The text of a message: from an option, a file, standard input or an editor."""

from __future__ import annotations

import os
import sys

from mngr.cli.app.parser import Namespace
from mngr.errors import UsageError

LIMIT = 2 << 20
"""Larger than any valid message; an endless stdin must not fill the memory."""


def given_text(args: Namespace) -> str | None:
    """Return the text of --message or --message-file, or None if neither is given."""
    if args.message is not None and args.message_file is not None:
        raise UsageError("--message and --message-file cannot be used together")
    if args.message_file is not None:
        return read_text(args.message_file)
    return None if args.message is None else str(args.message)


def read_text(path: str) -> str:
    """Read a file, or standard input for `-`. Invalid UTF-8 becomes surrogates, refused later."""
    if path == "-":
        return read_stdin()
    try:
        with open(os.path.expanduser(path), "rb") as file:
            return _decoded(file.read(LIMIT))
    except OSError as error:
        raise UsageError(f"--message-file: {path}: {error.strerror}") from None


def read_stdin() -> str:
    return _decoded(sys.stdin.buffer.read(LIMIT))


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
