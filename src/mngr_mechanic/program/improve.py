"""Assertions for a passing test that does not check what the commands of its block do.

This is measured: the test runs with the result of one command changed. If it still passes, it does
not check that part of the result.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Optional

from mngr_mechanic.program import assertions, citations
from mngr_mechanic.program.clock import Stopwatch
from mngr_mechanic.program.lab import Lab
from mngr_mechanic.program.reports import Invocation, Result
from mngr_mechanic.program.source import SourceFile, parses

SECONDS = 60.0


@dataclass
class Improvement:
    text: str = ""
    """The improved file of the test; empty if nothing is to be improved."""
    added: tuple[str, ...] = ()
    remark: str = ""
    weak: bool = False
    """Whether it passed before even if its commands did nothing."""


@dataclass
class Spot:
    """A command whose result the test does not check completely."""

    at: int
    """The number of the command in the test."""
    statement: ast.stmt
    name: str
    assign: bool
    """Whether its result is not assigned to a variable yet."""
    parts: list[str]


class Improver:
    def __init__(self, lab: Lab, source: SourceFile, runs: list[Result], clock: Stopwatch) -> None:
        self.lab, self.source, self.clock = lab, source, clock
        self.runs = runs
        """Several runs of the test, all passing."""
        self.test = runs[0].test
        self.noop_passes = False

    def improve(self) -> Improvement:
        function = citations.function(self.source.tree, self.test)
        sequences = {tuple(command.text for command in run.commands) for run in self.runs}
        if function is None or not self.runs[0].commands:
            return Improvement(remark="it runs no commands whose result could be checked")
        self.noop_passes = self._passes(noop=True)
        if len(sequences) > 1:
            return self._nothing("it runs different commands each time")
        spots = self._spots(function)
        return (
            self._written(spots)
            if spots
            else self._nothing("it checks everything that its block does")
        )

    def _nothing(self, remark: str) -> Improvement:
        return Improvement(remark=remark, weak=self.noop_passes)

    def _passes(self, noop: bool = False, bend: "dict[str, object] | None" = None) -> bool:
        run = self.lab.run([self.test], seconds=SECONDS, noop=noop, bend=bend)
        return run.passed([self.test])

    # find the gaps

    def _spots(self, function: citations.Function) -> list[Spot]:
        found = []
        calls = citations.runs(function)
        for at, command in enumerate(self.runs[0].commands):
            call = calls.get(command.line)
            if call is None or not self._in_scope(function, command):
                continue
            if sum(other.line == command.line for other in self.runs[0].commands) > 1:
                continue  # in a loop, or a line with several commands
            spot = self._spot(at, call)
            if spot is not None and self.clock.left > 0:
                spot.parts = self._unseen(at, command)
                found += [spot] if spot.parts else []
        return found

    def _in_scope(self, function: citations.Function, command: Invocation) -> bool:
        """Return whether the block has the command; without a block, whether the test is weak."""
        if not command.file.endswith(self.source.path):
            return False
        block = citations.block(function)
        if not block:
            return self.noop_passes
        return " ".join(command.text.split()) in " ".join(block.replace("\\\n", " ").split())

    def _spot(self, at: int, call: ast.Call) -> Optional[Spot]:
        statement = self.source.statement(call)
        if isinstance(statement, ast.Assign) and statement.value is call:
            target = statement.targets[0]
            if isinstance(target, ast.Name):
                return Spot(at, statement, target.id, False, [])
        if isinstance(statement, ast.Expr) and statement.value is call:
            return Spot(at, statement, self._free_name(), True, [])
        return None

    def _free_name(self) -> str:
        taken = {token.text for token in self.source.tokens}
        free = [name for name in ("result", "outcome", "ran") if name not in taken]
        return [*free, "result_2"][0]

    def _unseen(self, at: int, command: Invocation) -> list[str]:
        """Return the parts of the result that the test does not check."""
        parts = ["exit_code"]
        parts += [part for part in ("stdout", "stderr") if getattr(command, part)]
        return [part for part in parts if self._passes(bend={"command": at, "part": part})]

    # insert assertions

    def _written(self, spots: list[Spot]) -> Improvement:
        pieces = [(spot, self._statements(spot)) for spot in spots]
        # A command that does nothing has an exit code as well.
        telling = [
            (spot, lines)
            for spot, lines in pieces
            if any("exit" not in line and "to_succeed" not in line for line in lines)
            or self._code(spot)
        ]
        if not telling:
            return self._nothing("its output is different each time")
        text = self.source.text
        for spot, lines in reversed(telling):
            text = self._inserted(text, spot, lines)
        added = tuple(line.strip() for _, lines in telling for line in lines)
        problem = self._problem(text)
        if problem:
            return self._nothing(problem)
        return Improvement(text, added, weak=self.noop_passes)

    def _code(self, spot: Spot) -> int:
        return self.runs[0].commands[spot.at].exit_code

    def _statements(self, spot: Spot) -> list[str]:
        indent = " " * spot.statement.col_offset
        style = (
            "expect" if any(token.text == "expect" for token in self.source.tokens) else "assert"
        )
        commands = [run.commands[spot.at] for run in self.runs]
        lines: list[str] = []
        if "exit_code" in spot.parts and len({command.exit_code for command in commands}) == 1:
            lines.append(assertions.about_exit(spot.name, self._code(spot), style, indent))
        for part in ("stdout", "stderr"):
            if part in spot.parts:
                stable, whole = assertions.stable_lines(commands, part)
                subject = f"{spot.name}.{part}"
                lines += assertions.about_text(subject, stable, whole, style, indent)
        return lines

    def _inserted(self, text: str, spot: Spot, lines: list[str]) -> str:
        """Return the text with lines inserted after each spot, the last one first."""
        after = self._last_about(spot)
        end = self.source.span(after)[1]
        text = text[:end] + "".join(f"\n{line}" for line in lines) + text[end:]
        if spot.assign:
            start = self.source.span(spot.statement)[0]
            text = text[:start] + f"{spot.name} = " + text[start:]
        return text

    def _last_about(self, spot: Spot) -> ast.stmt:
        body = getattr(self.source.parents[spot.statement], "body", [spot.statement])
        if spot.statement not in body:
            return spot.statement
        last = spot.statement
        for statement in body[body.index(spot.statement) + 1 :]:
            named = any(
                isinstance(each, ast.Name) and each.id == spot.name for each in ast.walk(statement)
            )
            if not named or not isinstance(statement, (ast.Expr, ast.Assert)):
                break
            last = statement
        return last

    def _problem(self, text: str) -> str:
        """Return why the text is no improvement: it must pass, and fail if nothing is run."""
        if not parses(text):
            return "the new assertions are not valid Python"
        self.lab.write(self.source.path, text)
        try:
            for _ in self.runs:
                if not self.lab.passes_anew(self.test):
                    return "it does not pass every time with more assertions"
            if self.lab.passes_anew(self.test, noop=True):
                return "it passes with more assertions even if its commands do nothing"
        finally:
            self.lab.write(self.source.path, self.source.text)
        return ""
