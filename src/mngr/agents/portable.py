"""Choose the settings of a coding agent that are copied to another machine.

A list of what is copied cannot miss a secret under a new name, as a list of secrets can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Test = Callable[[object], bool]
Allowed = Mapping[str, "Allowed | Test"]
"""Settings by name: a test for its value, or what is allowed in a table; `*` is any name."""

REFERENCE = re.compile(r"\{(env|file):[^{}]*\}")
"""OpenCode's way to name a variable or a file instead of its content."""


def plain(value: object) -> bool:
    """Return whether it is a number, a text or a list of them, and no address with a password."""
    if isinstance(value, list):
        return all(map(plain, value))
    if isinstance(value, str):
        return "://" not in value or not ("@" in value or "?" in value)
    return isinstance(value, (bool, int, float))


def reference(value: object) -> bool:
    return isinstance(value, str) and REFERENCE.fullmatch(value) is not None


def switch(value: object) -> bool:
    return isinstance(value, bool)


def permission(value: object) -> bool:
    """Return whether it is `allow`, `ask` or `deny`, or a table of these by tool and pattern."""
    if isinstance(value, dict):
        return all(map(permission, value.values()))
    return value in ("allow", "ask", "deny")


def leaves(names: str) -> dict[str, Test]:
    return dict.fromkeys(names.split(), plain)


def chosen(
    settings: Mapping[str, object], allowed: Allowed, path: str = ""
) -> tuple[dict[str, object], list[str]]:
    """Return the settings that are allowed, and the dotted names of the others."""
    kept: dict[str, object] = {}
    left_out: list[str] = []
    for name, value in settings.items():
        rule = allowed.get(name, allowed.get("*"))
        if isinstance(rule, Mapping) and isinstance(value, dict):
            kept[name], inner = chosen(value, rule, f"{path}{name}.")
            left_out += inner
        elif callable(rule) and rule(value):
            kept[name] = value
        else:
            left_out.append(f"{path}{name}")
    return kept, left_out


def remark(file: str, left_out: list[str]) -> tuple[str, ...]:
    """Return a line for stderr about what was left out of a file."""
    names = ", ".join(left_out[:5]) + (f" and {len(left_out) - 5} more" if left_out[5:] else "")
    hint = "use --pass-login to copy all settings"
    return (f"{file}: not copied to another machine: {names}; {hint}",) if left_out else ()
