"""What the mechanic is asked to do."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

NODE_ID = re.compile(r"[\w./+-]+\.py::[\w:]+(?:\[[^\]\n]*\])?")
MODES = ("auto", "fix", "improve")
IMPROVE = re.compile(r"\b(improve|strengthen)\b", re.IGNORECASE)
FIX = re.compile(r"\b(fix|repair)\b", re.IGNORECASE)

SUSPECT = re.compile(r"^\s*([01]\.\d+)  (\S.*?):([\d,-]+)  run by ", re.MULTILINE)
UNUSED = re.compile(r"^\s*[01]\.\d+  (\S.*?):([\d,-]+)  run by \d+ failing and 0 ", re.MULTILINE)

LONGEST = 10_000

EXAMPLE = "fix tests/test_x.py::test_y"


class Unclear(Exception):
    """The words do not say which test is meant."""


@dataclass(frozen=True)
class Task:
    test: str
    mode: str = "auto"
    """auto: what the test does decides."""
    budget: float = 60.0
    """Seconds."""
    other_tests: tuple[str, ...] = ()
    """Where the tests are that must not break; by default wherever pytest finds them."""
    test_command: str = ""
    """Has to run pytest; NODEID in it is replaced by the tests to run."""
    repeat: int = 3
    """Runs per test."""
    suspects: tuple[tuple[str, int, float], ...] = ()
    """Suspicious lines given with the task: path, line, score."""
    unused: frozenset[tuple[str, int]] = frozenset()
    """Of these lines, those that no passing test runs: a change there breaks none."""
    jobs: int = 0
    """Tests at the same time; 0: as many as there are idle cores."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="mechanic",
        description="Repair what makes a test fail, or strengthen a test that passes.",
        allow_abbrev=False,
    )
    made.add_argument("--test", metavar="NODEID", default="")
    made.add_argument("--mode", choices=MODES, default="auto")
    made.add_argument("--budget", type=float, default=60.0, metavar="SECONDS")
    made.add_argument("--other-tests", nargs="+", default=[], metavar="PATH")
    made.add_argument("--test-command", default="", metavar="COMMAND")
    made.add_argument("--repeat", type=int, default=3, metavar="TIMES")
    made.add_argument("--jobs", type=int, default=0, metavar="N")
    made.add_argument("--prompt-file", default="", metavar="FILE")
    made.add_argument("words", nargs="*", metavar="WORD", help="such as: " + EXAMPLE)
    return made


def from_arguments(args: argparse.Namespace, prompt: str) -> Task:
    """Options say it, or else the words do, on the command line or in the first message."""
    text = " ".join(args.words) or prompt
    test = args.test or named_test(text)
    if not test:
        raise Unclear(f"which test? Say for example: {EXAMPLE}")
    return Task(
        test=test,
        mode=args.mode if args.mode != "auto" else asked_mode(text),
        budget=max(1.0, args.budget),
        other_tests=tuple(args.other_tests),
        test_command=args.test_command,
        repeat=max(1, args.repeat),
        jobs=args.jobs,
        suspects=suspicious_lines(prompt),
        unused=unused_lines(prompt),
    )


def named_test(text: str) -> str:
    """The first node id in a text."""
    found: Optional[re.Match[str]] = NODE_ID.search(text)
    return found.group(0).rstrip(":") if found else ""


def suspicious_lines(text: str) -> tuple[tuple[str, int, float], ...]:
    return tuple(
        (path, line, float(score))
        for score, path, lines in SUSPECT.findall(text)
        for line in _lines(lines)
    )


def unused_lines(text: str) -> frozenset[tuple[str, int]]:
    found = UNUSED.findall(text)
    return frozenset((path, line) for path, lines in found for line in _lines(lines))


def _lines(text: str) -> Iterator[int]:
    """`1-3,7`"""
    for part in text.split(","):
        yield from _range(part)


def _range(text: str) -> range:
    """`7` or `7-9`."""
    first, _, last = text.partition("-")
    if not first.isdigit() or not (last or first).isdigit():
        return range(0)
    return range(int(first), min(int(last or first), int(first) + LONGEST) + 1)


def asked_mode(text: str) -> str:
    """Only a text that asks for one thing limits us to it: longer prompts mention both."""
    improve, fix = IMPROVE.search(text), FIX.search(text)
    if bool(improve) == bool(fix):
        return "auto"
    return "improve" if improve else "fix"
