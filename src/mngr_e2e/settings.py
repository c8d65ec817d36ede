"""`[tool.mngr_e2e]` of the project's pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path

PLACES = ("root", "home", "work", "artifacts")
"""Placeholders in `env`, `setup` and `teardown`, written `{home}`."""


class SettingsError(Exception):
    """A key or a value of the table is invalid."""


@dataclass(frozen=True)
class Settings:
    setup: str = ""
    """A shell command, run in the work directory before each test; may use placeholders."""
    teardown: str = ""
    """A shell command, run there after each test, before its processes are ended."""
    env: dict[str, str] = field(default_factory=dict)
    """Variables of every command; may use placeholders."""
    pass_env: list[str] = field(default_factory=list)
    """Variables of pytest's own environment that are passed on."""
    redactions: list[str] = field(default_factory=list)
    """Regular expressions; text that matches is not written to artifacts."""
    tutorial: str = "tutorial.sh"
    """The tutorial, relative to the project."""
    artifacts: str = ".mngr-e2e"
    """The directory of artifacts, relative to the project."""
    keep_runs: int = 20
    """Number of runs to keep, including this one; 0 keeps all."""
    timeout: float = 30.0
    """Default time limit of a command, in seconds."""
    shell: str = "/bin/sh"
    """The shell that runs commands."""
    coverage: list[str] = field(default_factory=list)
    """Packages or directories to measure, when MNGR_E2E_COVERAGE is set."""


def load(root: Path) -> Settings:
    path = root / "pyproject.toml"
    if not path.is_file():
        return Settings()
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except ValueError as error:
        raise SettingsError(f"{path}: {error}") from None
    table: dict[str, object] = tool.get("mngr_e2e", {})
    known = {item.name: item.type for item in fields(Settings)}
    for key, value in table.items():
        if key not in known:
            raise SettingsError(f"{path}: unknown key '{key}' in [tool.mngr_e2e]; {_nearest(key)}")
        _check(path, key, value)
    return Settings(**table)  # type: ignore[arg-type]  # each was checked against its default


def _nearest(key: str) -> str:
    import difflib

    names = [item.name for item in fields(Settings)]
    near = difflib.get_close_matches(key, names, 1, 0)
    return f"did you mean '{near[0]}'?"


def _check(path: Path, key: str, value: object) -> None:
    default = getattr(Settings(), key)
    kind = (int, float) if isinstance(default, float) else type(default)
    members = list(value.values()) if isinstance(value, dict) else value
    texts = isinstance(members, list) and all(isinstance(item, str) for item in members)
    number = isinstance(default, int | float)
    wrong = number and (isinstance(value, bool) or (isinstance(value, int | float) and value < 0))
    if wrong or not isinstance(value, kind) or (isinstance(default, list | dict) and not texts):
        raise SettingsError(f"{path}: '{key}' in [tool.mngr_e2e] must look like {default!r}")
    if key == "redactions" and isinstance(members, list):
        _compile(path, members)
    if key in ("setup", "teardown", "env"):
        _check_places(path, key, members if isinstance(members, list) else [str(value)])


def _check_places(path: Path, key: str, texts: list[str]) -> None:
    """Raise SettingsError for an unknown placeholder, except in quotes."""
    for text in texts:
        for name in re.findall(r"(?<!\$)\{([a-z_]+)\}", re.sub(r"'[^']*'", "", text)):
            if name not in PLACES:
                known = ", ".join(f"{{{place}}}" for place in PLACES)
                unknown = f"unknown placeholder '{{{name}}}' in '{key}' of [tool.mngr_e2e]"
                raise SettingsError(f"{path}: {unknown}; known: {known}")


def _compile(path: Path, patterns: list[str]) -> None:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise SettingsError(f"{path}: redaction {pattern!r}: {error}") from None
