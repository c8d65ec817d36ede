"""Addresses: [NAME][@[HOST][.PROVIDER]][:PATH]."""

from __future__ import annotations

import re

from mngr.errors import UsageError, shorten
from mngr.model.struct import Struct

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
AGENT_ID = re.compile(r"agent-[0-9a-f]{32}")


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
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", part):
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
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{shorten(name, 80)!r} is not {kind} name",
            "use up to 63 letters, digits, '-' and '_', starting with a letter or digit",
        )
