"""The task: which test, what to do with it, and the limits."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

NODE_ID = re.compile(r"[\w./+-]+\.py::[\w:]+(?:\[[^\]\n]*\])?")
TEST = re.compile(r"^Test: (\S.*::.*)$", re.MULTILINE)
MODES = ("auto", "fix", "improve")
IMPROVE = re.compile(r"\b(improve|strengthen)\b", re.IGNORECASE)
FIX = re.compile(r"\b(fix|repair)\b", re.IGNORECASE)

SUSPECT = re.compile(
    r"^\s*([01]\.\d+)  (\S.*?):([\d,-]+)  run by \d+ failing and (\d+) ", re.MULTILINE
)
PYTHON = re.compile(r"^Run it with: (.+) -m pytest ", re.MULTILINE)
LONGEST = 10_000
EXAMPLE = "fix tests/test_x.py::test_y"


class Unclear(Exception):
    """No test is named."""


@dataclass(frozen=True)
class Assignment:
    test: str
    mode: str = "auto"
    """auto: fix a failing test, improve a passing one."""
    budget: float = 60.0
    """Seconds."""
    other_tests: tuple[str, ...] = ()
    """Paths of the tests that must not break; by default all that pytest finds."""
    test_command: str = ""
    """A command that runs pytest; NODEID in it is replaced by the tests to run."""
    repeat: int = 3
    """Runs per test."""
    suspects: tuple[tuple[str, int, float], ...] = ()
    """Suspicious lines given with the task: path, line, score."""
    unused: frozenset[tuple[str, int]] = frozenset()
    """Those of these lines that no passing test runs, so that a change breaks none."""
    jobs: int = 0
    """Tests at the same time; 0 means one per idle core."""
    python: str = ""
    """The Python that the prompt runs pytest with."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="mechanic",
        description="Fix what makes a test fail, or improve a test that passes.",
        allow_abbrev=False,
    )
    add = made.add_argument
    add("--test", metavar="NODEID", default="", help="the test to fix or to improve")
    add("--mode", choices=MODES, default="auto", help="auto: fix a failing test, else improve it")
    add("--budget", type=float, default=60.0, metavar="SECONDS", help="time limit (60)")
    add("--other-tests", nargs="+", default=[], metavar="PATH", help="tests that must not break")
    add("--test-command", default="", metavar="COMMAND", help="runs pytest; NODEID is replaced")
    add("--repeat", type=int, default=3, metavar="TIMES", help="runs per test (3)")
    add("--jobs", type=int, default=0, metavar="N", help="tests at the same time")
    add("--prompt-file", default="", metavar="FILE", help="a file with the task in words")
    add("words", nargs="*", metavar="WORD", help=f"the task in words: {EXAMPLE}")
    return made


def from_arguments(args: argparse.Namespace, prompt: str) -> Assignment:
    """Return the task of the options, or of the words on the command line or in the prompt."""
    text = " ".join(args.words) or prompt
    test = args.test or named_test(text)
    if not test:
        raise Unclear(f"which test? For example: {EXAMPLE}")
    suspects = list(_suspects(prompt))
    return Assignment(
        test=test,
        mode=args.mode if args.mode != "auto" else asked_mode(text),
        budget=max(1.0, args.budget),
        other_tests=tuple(args.other_tests),
        test_command=args.test_command,
        repeat=max(1, args.repeat),
        jobs=args.jobs,
        suspects=tuple((path, line, score) for path, line, score, _ in suspects),
        unused=frozenset((path, line) for path, line, _, passing in suspects if not passing),
        python=_python(prompt),
    )


def _python(prompt: str) -> str:
    found = PYTHON.search(prompt)
    words = shlex.split(found.group(1)) if found else []
    return words[0] if len(words) == 1 else ""


def named_test(text: str) -> str:
    """Return the node id that a prompt starts with, or the first one in a text."""
    given = TEST.search(text)
    if given:
        return str(given.group(1))
    found: Optional[re.Match[str]] = NODE_ID.search(text)
    return found.group(0).rstrip(":") if found else ""


def _suspects(text: str) -> Iterator[tuple[str, int, float, int]]:
    """Yield path, line, score and number of passing tests of each suspicious line in a prompt."""
    for score, path, ranges, passing in SUSPECT.findall(text):
        for first, _, last in (part.partition("-") for part in ranges.split(",")):
            if first.isdigit() and (last or first).isdigit():
                end = min(int(last or first), int(first) + LONGEST)
                for line in range(int(first), end + 1):
                    yield path, line, float(score), int(passing)


def asked_mode(text: str) -> str:
    """Return the mode that a text asks for; longer prompts mention both, which is auto."""
    improve, fix = IMPROVE.search(text), FIX.search(text)
    if bool(improve) == bool(fix):
        return "auto"
    return "improve" if improve else "fix"
