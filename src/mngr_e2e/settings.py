"""`[tool.mngr_e2e]` of the project's pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path

PLACES = ("root", "home", "work", "artifacts")
"""Placeholders in `env`, `setup` and `teardown`, written `{home}`."""


class SettingsError(Exception):
    """The table says something that cannot be meant."""


@dataclass(frozen=True)
class Settings:
    setup: str = ""
    """A shell command, run in the work directory before each test; has the placeholders too."""
    teardown: str = ""
    """A shell command, run there after each test, before what is left is ended."""
    env: dict[str, str] = field(default_factory=dict)
    """Added to the environment of every command; each of PLACES is filled in."""
    pass_env: list[str] = field(default_factory=list)
    """Variables that commands get as they are outside; others they do not see."""
    redactions: list[str] = field(default_factory=list)
    """Regular expressions; what they match is not written to artifacts."""
    tutorial: str = "tutorial.sh"
    """The tutorial, relative to the project."""
    artifacts: str = ".mngr-e2e"
    """Where artifacts go, relative to the project."""
    keep_runs: int = 20
    """How many runs' artifacts are kept, this one included; 0 keeps all."""
    timeout: float = 30.0
    """Seconds that a command may take, unless the test says otherwise."""
    shell: str = "/bin/sh"
    """What runs the commands."""
    coverage: list[str] = field(default_factory=list)
    """Packages or directories to measure, when MNGR_E2E_COVERAGE is set."""


def load(root: Path) -> Settings:
    path = root / "pyproject.toml"
    if not path.is_file():
        return Settings()
    tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
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
    """SettingsError for a placeholder that nothing fills in; quoted ones are a program's own."""
    for text in texts:
        for name in re.findall(r"(?<!\$)\{([a-z_]+)\}", re.sub(r"'[^']*'", "", text)):
            if name not in PLACES:
                known = ", ".join(f"{{{place}}}" for place in PLACES)
                unknown = f"unknown placeholder '{{{name}}}' in '{key}' of [tool.mngr_e2e]"
                raise SettingsError(f"{path}: {unknown}; there are {known}")


def _compile(path: Path, patterns: list[str]) -> None:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise SettingsError(f"{path}: redaction {pattern!r}: {error}") from None
