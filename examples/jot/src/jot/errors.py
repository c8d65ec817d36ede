"""Errors: each is printed as one line on stderr, with exit code 1."""

from __future__ import annotations


class JotError(Exception):
    """An error; its message is printed after `jot: `."""


class NoSuchNote(JotError):
    def __init__(self, number: int) -> None:
        super().__init__(f"there is no note {number}; `jot list` shows all")


class BadNote(JotError):
    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where} is not a note: {why}")
