"""The settings of a project: [tool.mngr_tmr] in its pyproject.toml."""

from __future__ import annotations

import os
import sys
import tomllib
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import PurePosixPath
from unicodedata import category

from mngr.errors import UsageError, nearest
from mngr.model.quoting import quote

TESTS = ("tests/**", "test/**", "**/tests/**", "**/test_*.py", "**/*_test.py", "**/conftest.py")
DOCUMENTS = ("docs/**", "doc/**", "**/*.md", "**/*.rst")
FORBIDDEN = (
    "**/.git*",
    "**/.git*/**",
    "**/.ci/**",
    "**/.circleci/**",
    "**/azure-pipelines.yml",
    "**/bitbucket-pipelines.yml",
    "**/Jenkinsfile",
    "**/.pre-commit-config.yaml",
)
ALWAYS = (
    "**/.git",
    "**/.git/**",
    "**/.gitattributes",
    "**/.gitmodules",
    "**/.mngr/**",
    "**/.mngr-e2e/**",
    "**/pytest.ini",
    "**/.pytest.ini",
    *("**/sitecustomize.*", "**/sitecustomize/**", "**/usercustomize.*", "**/usercustomize/**"),
    *(
        "**/*.pyc",
        "**/*.pth",
        "**/*.dist-info",
        "**/*.dist-info/**",
        "**/*.egg-info",
        "**/*.egg-info/**",
    ),
)
"""Always forbidden: files that git, mngr, pytest and Python read without being told to."""


@dataclass(frozen=True)
class ProjectSettings:
    """Globs match paths from the top of the repository; `**` matches any number of folders."""

    implementation: tuple[str, ...] = ()
    """Default: everything that is not a test or a document."""
    forbidden: tuple[str, ...] = FORBIDDEN
    setup: str = ""
    """A shell command that prepares a fresh checkout, for instance `uv sync`."""
    pytest: str = ""
    """The command that runs pytest, if not `PYTHON -m pytest`."""
    python: str = ""
    check_timeout: int = 900
    sandbox: bool = True
    """Run baseline, verification and gates in bubblewrap, if available."""
    network: bool = False
    """Tests may use the network."""
    readable: tuple[str, ...] = ()
    """Further paths that tests may read, for instance `~/.cache/uv`."""
    mutant_seconds: int = 20
    """Seconds for the mutants of a changed test; 0 for none."""
    prompts: str = ""
    """A folder with templates that replace the packaged ones of the same name."""

    def is_implementation(self, path: str) -> bool:
        if self.implementation:
            return any(matches(path, glob) for glob in self.implementation)
        return not any(matches(path, glob) for glob in (*TESTS, *DOCUMENTS, "tutorial.sh"))

    @property
    def off_limits(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.forbidden, *ALWAYS)))

    def is_forbidden(self, path: str) -> bool:
        """Return whether a path is forbidden, in any spelling that a file system accepts."""
        plain = "".join(c for c in path if category(c) != "Cf").casefold()
        return any(matches(plain, glob.casefold()) for glob in self.off_limits)


def pytest_command(project: ProjectSettings, repository: str, provider: str) -> str:
    """Return the command for pytest: the project's, that of its .venv, or mngr's own."""
    if project.pytest:
        return project.pytest
    beside = os.path.join(repository, ".venv", "bin", "python")
    if project.python:
        python = project.python
    elif provider in ("", "local") and os.path.exists(beside):
        python = beside
    elif provider in ("", "local") and find_spec("pytest") is not None:
        python = sys.executable
    else:
        python = "python3"
    return f"{quote(python)} -m pytest"


def matches(path: str, glob: str) -> bool:
    """Match a path: `a/**` is all below a, `**/x` is x at any depth, `*` excludes slashes."""
    return _parts_match(PurePosixPath(path).parts, tuple(glob.split("/")))


def _parts_match(path: tuple[str, ...], glob: tuple[str, ...]) -> bool:
    if not glob:
        return not path
    if glob[0] == "**":
        if len(glob) == 1:
            return bool(path)
        return any(_parts_match(path[skip:], glob[1:]) for skip in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], glob[0]) and _parts_match(path[1:], glob[1:])


def parse(text: str) -> ProjectSettings:
    """Return the settings in a pyproject.toml. Raise UsageError if they are invalid."""
    try:
        tool = tomllib.loads(text).get("tool")
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"pyproject.toml: {error}") from None
    table = tool.get("mngr_tmr", {}) if isinstance(tool, dict) else {}
    known = {each.name: each for each in fields(ProjectSettings)}
    values: dict[str, object] = {}
    for key, value in table.items():
        if key not in known:
            near = nearest(key, list(known))
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(known)}"
            raise UsageError(f"pyproject.toml: unknown key tool.mngr_tmr.{key}", hint)
        values[key] = _checked(key, value, known[key].default)
    return ProjectSettings(**values)  # type: ignore[arg-type]


def _checked(key: str, value: object, default: object) -> object:
    if isinstance(default, tuple):
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise UsageError(f"pyproject.toml: tool.mngr_tmr.{key} must be a list of strings")
        return tuple(value)
    if type(value) is not type(default):
        kind = {bool: "true or false", int: "a whole number"}.get(type(default), "a string")
        raise UsageError(f"pyproject.toml: tool.mngr_tmr.{key} must be {kind}")
    return value
