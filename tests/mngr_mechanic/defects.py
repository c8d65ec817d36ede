"""Plant one wrong token: a seeded choice among all tokens of a project's own code.

    python -m tests.mngr_mechanic.defects PROJECT COUNT SEED   # prints JSON, one per line

It does not use the edits that the mechanic tries: it replaces a token by another of its kind, and
keeps the defects that at least one test detects.
"""

from __future__ import annotations

import ast
import io
import json
import random
import shutil
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from mngr_mechanic.program.lab import Lab
from tests.support import foreign

ROOT = Path(__file__).resolve().parents[2]
PROBE = ROOT / "src/mngr_mechanic/program/probe"
LEFT_OUT = shutil.ignore_patterns("__pycache__", ".*_cache", ".mngr-e2e")
PROJECTS = {"jot": "src/jot", "sheet": "sheet", "humanize": "src/humanize"}
"""Ours; one the mechanic was written beside; and one of other people. And where their code is."""
HUMANIZE = "humanize==4.9.0"
OPERATORS = (
    ("<", "<=", ">", ">=", "==", "!="),
    ("+", "-", "*", "/", "//", "%"),
    ("+=", "-=", "*="),
)
WORDS = (
    ("and", "or"),
    ("True", "False"),
    ("break", "continue"),
    ("min", "max"),
    ("any", "all"),
    ("lower", "upper", "casefold"),
    ("startswith", "endswith"),
    ("strip", "lstrip", "rstrip"),
    ("append", "extend"),
    ("ljust", "rjust"),
    ("match", "fullmatch", "search"),
)


@dataclass(frozen=True)
class Defect:
    file: str
    line: int
    start: int
    """Offset in the file."""
    old: str
    new: str
    test: str = ""
    """A test that fails because of it."""

    def planted(self, text: str) -> str:
        assert text[self.start : self.start + len(self.old)] == self.old, self
        return text[: self.start] + self.new + text[self.start + len(self.old) :]


def place(project: str) -> Path:
    if project == "humanize":
        return foreign.source(HUMANIZE, _others())
    return {"jot": ROOT / "examples" / "jot", "sheet": Path(__file__).parent / "second"}[project]


def _others() -> Path:
    wanted = [HUMANIZE, "freezegun==1.5.5", "pytest==9.2.0"]
    return foreign.environment("humanize", wanted, deps=True)


def copied(project: str, out: Path) -> Path:
    shutil.copytree(place(project), out, ignore=LEFT_OUT)
    if project == "humanize":
        (out / ".venv").symlink_to(_others())
    return out


def possible(file: str, text: str, chance: random.Random) -> Iterator[Defect]:
    """Return every token that can be made wrong, each in one way."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    left_out = _not_code(text)
    names = sorted(_names(text))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        row, column = token.start
        if row in left_out or token.start[0] != token.end[0]:
            continue
        for new in _wrong(token, names, chance):
            defect = Defect(file, row, starts[row - 1] + column, token.string, new)
            if _means_something_else(text, defect.planted(text)):
                yield defect


def _not_code(text: str) -> set[int]:
    """Return lines of imports and docstrings, and of heads that contain mostly types."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        skipped = isinstance(node, ast.Import | ast.ImportFrom | ast.AnnAssign)
        if isinstance(node, ast.Expr):
            skipped = isinstance(node.value, ast.Constant)
        if skipped and isinstance(node, ast.stmt):
            found |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found |= set(range(node.lineno, node.body[0].lineno))
    return found


def _names(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def _wrong(token: tokenize.TokenInfo, names: list[str], chance: random.Random) -> list[str]:
    text = token.string
    for family in (*OPERATORS, *WORDS):
        if text in family:
            return [chance.choice([each for each in family if each != text])]
    if token.type == tokenize.NUMBER and text.isdigit():
        return [str(chance.choice([int(text) + 1, max(int(text) - 1, 0), int(text) * 10]))]
    if token.type == tokenize.STRING:
        return _misspelt(text, chance)
    if text in ("not", "return"):
        return [""]
    if token.type == tokenize.NAME and text in names:
        return [chance.choice(names)]
    return []


def _misspelt(literal: str, chance: random.Random) -> list[str]:
    """Return the word with one letter left out, doubled, or in the other case."""
    inside = [
        at
        for at, sign in enumerate(literal)
        if sign.isalpha() and literal[:at].count("{") == literal[:at].count("}")
    ]
    inside = [at for at in inside if any(quote in literal[:at] for quote in "'\"")]
    if not inside:
        return []
    at = chance.choice(inside)
    letter = literal[at]
    changed = chance.choice(["", letter + letter, letter.swapcase()])
    return [literal[:at] + changed + literal[at + 1 :]]


def _means_something_else(old: str, new: str) -> bool:
    try:
        return ast.dump(ast.parse(old)) != ast.dump(ast.parse(new))
    except SyntaxError:
        return False


def noticed(project: str, count: int, seed: int) -> Iterator[Defect]:
    """Return defects that at least one test detects, chosen by the seed."""
    base = Path(tempfile.mkdtemp(prefix="plant-"))
    root, package = copied(project, base / "project"), PROJECTS[project]
    chance = random.Random(seed)
    found: list[Defect] = []
    for path in sorted((root / package).glob("*.py")):
        found += possible(str(path.relative_to(root)), path.read_text(), chance)
    chance.shuffle(found)
    (base / "lab").mkdir()
    own = root / ".venv" / "bin" / "python"
    python = str(own) if own.exists() else sys.executable
    lab = Lab(str(root), str(base / "lab"), str(PROBE), python, [])
    try:
        sound = lab.run([], seconds=300)
        assert sound.results and not sound.failed, f"{project} is not sound: {sound}"
        for defect in found:
            test = _first_failing(lab, defect)
            if test:
                yield Defect(**(asdict(defect) | {"test": test}))
                count -= 1
            if not count:
                return
    finally:
        lab.discard()
        shutil.rmtree(base)


def _first_failing(lab: Lab, defect: Defect) -> str:
    text = lab.read(defect.file)
    lab.write(defect.file, defect.planted(text))
    failed = lab.run([], seconds=120, stop=True).failed[:1]
    # Run it again, because on a busy machine a test may fail for other reasons.
    really = bool(failed) and bool(lab.run(failed, seconds=120).failed)
    lab.write(defect.file, text)
    return failed[0] if really else ""


if __name__ == "__main__":
    for made in noticed(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])):
        print(json.dumps(asdict(made)), flush=True)
