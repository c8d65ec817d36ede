"""What a test leaves on disk, `.mngr-e2e/<run>/<slug>/`: no reader ever sees half of a file."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import secrets
import shutil
import textwrap
import time
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path

SCHEMA = 1
LONGEST_SLUG = 80


def new_run_id() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def slug(node_id: str) -> str:
    """A file name for a test: readable, and its own by the hash."""
    digest = hashlib.sha256(node_id.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', node_id)[:LONGEST_SLUG]}-{digest[:8]}"


def point(link: Path, target: str) -> None:
    """By rename: another worker may do the same at this moment."""
    if link.is_symlink() and os.readlink(link) == target:
        return
    fresh = link.with_name(f".{link.name}.{os.getpid()}.{secrets.token_hex(4)}")
    fresh.symlink_to(target)
    fresh.replace(link)


def write_whole(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(fresh, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    os.replace(fresh, path)


def open_test(run: Path, node_id: str) -> Path:
    """Empty: what an earlier try of the same test left there would mislead."""
    folder = run / slug(node_id)
    try:
        folder.mkdir()
    except FileExistsError:
        shutil.rmtree(folder)
        folder.mkdir()
    return folder


@dataclass(frozen=True)
class CommandRecord:
    text: str
    exit_code: int | None
    """None while it runs."""
    seconds: float
    start: float
    """Seconds after the test began."""
    timed_out: bool = False

    @cached_property
    def encoded(self) -> str:
        """Once, though it is written with every later command again."""
        names = [item.name for item in fields(self)]
        return _json({name: getattr(self, name) for name in names})


@dataclass
class TestRecord:
    """`result.json`."""

    __test__ = False  # pytest would take the name for a class of tests

    node_id: str
    source_sha256: str
    outcome: str = "running"
    """running, until it is known; passed, failed, error, crashed, skipped, xfailed, xpassed."""
    seconds: float = 0.0
    started: str = ""
    blocks: list[str] = field(default_factory=list)
    commands: list[CommandRecord] = field(default_factory=list)
    casts: list[str] = field(default_factory=list)
    noop: bool = False
    is_over: bool = False
    """Only then does the file say `noop`: the test might read it."""
    began: float = field(default_factory=time.monotonic)

    def encoded(self) -> str:
        """As JSON. A list may grow while we look: a background command ends when it likes."""
        head = _json(self._head())
        commands = ", ".join([command.encoded for command in self.commands])
        return f'{head[:-1]}, "commands": [{commands}]}}'

    def _head(self) -> dict[str, object]:
        return {
            "schema": SCHEMA,
            "node_id": self.node_id,
            "outcome": self.outcome,
            "seconds": round(self.seconds, 4),
            "started": self.started,
            "source_sha256": self.source_sha256,
            "block": "\n\n".join(self.blocks) or None,  # no block holds an empty line
            "casts": self.casts,
            "noop": self.noop and self.is_over,
        }


class ResultFile:
    """`result.json`, there from the first moment and rewritten with every command.

    Each time in place, by one write of the whole: replacing a file by rename costs 1.6 ms on
    ext4, which flushes it. What is shorter than before is filled up with blanks.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "result.json"
        self._fd = -1
        self._length = 0

    def write(self, record: TestRecord) -> None:
        record.seconds = time.monotonic() - record.began
        data = record.encoded().encode("utf-8", "backslashreplace").ljust(self._length - 1) + b"\n"
        self._length = len(data)
        if self._fd < 0:
            self._create(data)
        else:
            os.pwrite(self._fd, data, 0)

    def _create(self, data: bytes) -> None:
        fresh = self._path.with_name(".result.json")
        self._fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(self._fd, data)
        fresh.rename(self._path)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _json(value: dict[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False)


def mark_crashed(run: Path, node_id: str) -> None:
    """The process that ran the test died and could not say so itself."""
    path = run / slug(node_id) / "result.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    if found.get("outcome") == "running":
        write_whole(path, json.dumps({**found, "outcome": "crashed"}, indent=1) + "\n")


def cited(docstring: str | None) -> str:
    """The block in a docstring: the lines after `Tutorial block:`, to the next empty one."""
    _, found, rest = (docstring or "").partition("Tutorial block:")
    return dedented(re.split(r"\n[ \t]*\n", rest.strip("\n"))[0]) if found else ""


def dedented(block: str) -> str:
    """A block as it is compared: without indentation, blank ends and trailing blanks."""
    lines = [line.rstrip() for line in textwrap.dedent(block).strip("\n").split("\n")]
    return textwrap.dedent("\n".join(lines)).strip("\n").rstrip()


def source_sha256(path: Path, qualname: str) -> str:
    """Of the text of one test, decorators included: a change elsewhere leaves it as it is."""
    try:
        found = _sources(str(path), path.stat().st_mtime_ns).get(qualname, "")
    except (OSError, SyntaxError, UnicodeDecodeError):
        found = ""
    return hashlib.sha256(found.encode()).hexdigest()


@lru_cache(maxsize=64)
def _sources(path: str, _changed: int) -> dict[str, str]:
    text = Path(path).read_text(encoding="utf-8")
    found: dict[str, str] = {}
    _collect(ast.parse(text), "", text.split("\n"), found)
    return found


def _collect(node: ast.AST, prefix: str, lines: list[str], found: dict[str, str]) -> None:
    """Functions by their dotted name, as in `TestNotes.test_add`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            _collect(child, f"{prefix}{child.name}.", lines, found)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
            body = [line.rstrip() for line in lines[first - 1 : child.end_lineno]]
            found[prefix + child.name] = textwrap.dedent("\n".join(body))
