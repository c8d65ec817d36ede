"""Addresses: [NAME][@[HOST][.PROVIDER]][:PATH]."""

from __future__ import annotations

from mngr.errors import UsageError, shorten
from mngr.model.struct import Struct

LONGEST = 63


def is_name(word: str, marks: str = "-_", longest: int = LONGEST) -> bool:
    """Return whether a word consists of letters, digits and, after the first, these marks."""
    letters = word.translate(str.maketrans(marks, "x" * len(marks)))
    return len(word) <= longest and word.isascii() and word[:1].isalnum() and letters.isalnum()


def is_agent_id(word: str) -> bool:
    digits = word.removeprefix("agent-")
    return len(digits) == 32 == len(word) - 6 and not digits.strip("0123456789abcdef")


class Address(Struct):
    """An agent, a host, or a path on either; parts that were not given are empty."""

    name: str = ""
    host: str = ""
    provider: str = ""
    path: str | None = None
    new_host: bool = False

    def __str__(self) -> str:
        at = f"@{self.host}" if self.host or self.provider else ""
        provider = f".{self.provider}" if self.provider else ""
        path = "" if self.path is None else f":{self.path}"
        return f"{self.name}{at}{provider}{path}"


def parse_address(text: str) -> Address:
    """Parse and validate an address; `foo@.modal` requests a new host of that provider."""
    place, colon, path = text.partition(":")
    name, at, where = place.partition("@")
    host, dot, provider = where.rpartition(".") if "." in where else (where, "", "")
    if name:
        check_name(name)
    if at and not where:
        raise UsageError(f"address {text!r} has no host after '@'", "write NAME@HOST.PROVIDER")
    for part in filter(None, (host, provider)):
        if not is_name(part, "-_.", 128):
            hint = "name the user in ~/.ssh/config" if "@" in part else ""
            raise UsageError(f"address {text!r}: {part!r} is not a host or provider name", hint)
    return Address(
        name=name,
        host=host,
        provider=provider,
        path=path if colon else None,
        new_host=bool(dot) and not host,
    )


def check_name(name: str, kind: str = "an agent") -> None:
    """Raise UsageError with the allowed form unless this is a valid name of an agent or host."""
    if not is_name(name):
        raise UsageError(
            f"{shorten(name, 80)!r} is not {kind} name",
            "use up to 63 letters, digits, '-' and '_', starting with a letter or digit",
        )
