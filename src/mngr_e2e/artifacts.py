"""The files of a test, `.mngr-e2e/<run>/<slug>/`; readers never see an incomplete file."""

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
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path

SCHEMA = 1
Function = ast.FunctionDef | ast.AsyncFunctionDef
LONGEST_SLUG = 80


def new_run_id() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def slug(node_id: str) -> str:
    """Return a file name for a test: readable, and unique by its hash."""
    digest = hashlib.sha256(node_id.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', node_id)[:LONGEST_SLUG]}-{digest[:8]}"


def point(link: Path, target: str) -> None:
    """Make a link by rename: another worker may do the same at this moment."""
    if link.is_symlink() and os.readlink(link) == target:
        return
    fresh = link.with_name(f".{link.name}.{os.getpid()}.{secrets.token_hex(4)}")
    fresh.symlink_to(target)
    fresh.replace(link)


def write_whole(path: Path, text: str) -> None:
    """Replace a file by rename and keep its mode: readers see the old file or the new one."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_text(text, encoding="utf-8", errors="backslashreplace")
        if path.exists():
            shutil.copymode(path, fresh)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def open_test(run: Path, node_id: str) -> Path:
    """Return the test's folder, emptied: an earlier attempt may have left files there."""
    folder = run / slug(node_id)
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    return folder


@dataclass(frozen=True)
class CommandRecord:
    """One command in `result.json`."""

    text: str
    exit_code: int | None
    """None while it runs."""
    seconds: float
    start: float
    """Seconds after the test began."""
    timed_out: bool = False

    @cached_property
    def encoded(self) -> str:
        """Return the JSON, encoded once because it is written again with every later command."""
        return _json(asdict(self))


@dataclass
class TestRecord:
    """`result.json`."""

    __test__ = False  # pytest would collect the class by its name

    node_id: str
    source_sha256: str
    outcome: str = "running"
    """running until it is known, then passed, failed, error, crashed, skipped, xfailed, xpassed."""
    seconds: float = 0.0
    started: str = ""
    blocks: list[str] = field(default_factory=list)
    commands: list[CommandRecord] = field(default_factory=list)
    casts: list[str] = field(default_factory=list)
    noop: bool = False
    is_over: bool = False
    """Whether the test has ended. `noop` is written only then, because a test could read it."""
    began: float = field(default_factory=time.monotonic)

    def encoded(self) -> str:
        """Return the JSON. The list is copied: a background command may end at any time."""
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
            "block": "\n\n".join(self.blocks) or None,  # no block contains an empty line
            "casts": self.casts,
            "noop": self.noop and self.is_over,
        }


class ResultFile:
    """`result.json`, which exists from the start and is rewritten with every command.

    It is rewritten in place, by one write: replacing a file by rename costs 1.6 ms on ext4, which
    flushes it. Shorter content is filled up with blanks.
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
    """Set the outcome of a test whose process died while running it."""
    path = run / slug(node_id) / "result.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    if found.get("outcome") == "running":
        write_whole(path, json.dumps({**found, "outcome": "crashed"}, indent=1) + "\n")


def source_sha256(path: Path, qualname: str) -> str:
    """Return the hash of one test's source, with its decorators; changes elsewhere do not count."""
    try:
        found = _sources(str(path), path.stat().st_mtime_ns).get(qualname, "")
    except (OSError, SyntaxError, UnicodeDecodeError):
        found = ""
    return hashlib.sha256(found.encode()).hexdigest()


@lru_cache(maxsize=64)
def _sources(path: str, _changed: int) -> dict[str, str]:
    text = Path(path).read_text(encoding="utf-8")
    lines = [line.rstrip() for line in text.split("\n")]
    found: dict[str, str] = {}
    for name, node in functions(ast.parse(text)):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        found[name] = textwrap.dedent("\n".join(lines[first - 1 : node.end_lineno]))
    return found


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Yield every function outside of functions with its dotted name: `TestNotes.test_add`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield prefix + child.name, child
        else:
            inner = f"{child.name}." if isinstance(child, ast.ClassDef) else ""
            yield from functions(child, prefix + inner)
