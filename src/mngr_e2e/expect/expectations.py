"""The classes that `expect` returns: claims about a command, text, JSON or a file."""

from __future__ import annotations

import json
import re
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Concatenate, Generic, ParamSpec, Self, TypeVar

from mngr_e2e.commands.results import PATIENCE, CommandResult
from mngr_e2e.expect import json_matchers, matchers
from mngr_e2e.expect.failures import fail
from mngr_e2e.expect.matchers import ClaimCheck, Json, JsonLike, shown

__tracebackhide__ = True  # pytest then shows the line of the test

T_co = TypeVar("T_co", covariant=True)
E = TypeVar("E", bound="Expectation[object]")
P = ParamSpec("P")
INTERVAL = 0.02


@dataclass(frozen=True)
class Expectation(Generic[T_co]):
    """A value to make claims about. It is read for every check, so that `eventually` can wait."""

    read: Callable[[], T_co]
    subject: str = ""
    source: CommandResult | None = None
    timeout: float = 0
    void: bool = False
    """Skip all claims, because the value comes from a claim that failed within `soft`."""
    wanted: bool = True
    """Whether the next claim must hold; False for `not_to_…`."""

    def eventually(self, timeout: float = PATIENCE) -> Self:
        """Check again until the claim holds, for at most `timeout` seconds."""
        return replace(self, timeout=timeout)

    def _holds(self, judge: Callable[[T_co], ClaimCheck]) -> Self:
        after = replace(self, wanted=True)
        if self.void:
            return after
        check, value = self._judged(judge)
        if check.holds is self.wanted:
            return after
        plain = self.wanted or check.holds is None
        claim = check.claim if plain else f"not {check.claim}"
        waited = f" within {self.timeout:g} s" if self.timeout else ""
        source, subject = self._origin(value)
        fail(f"expected {subject} {claim}{waited}", check.detail if plain else "", source)
        return replace(after, void=True)

    def _judged(self, judge: Callable[[T_co], ClaimCheck]) -> tuple[ClaimCheck, T_co | None]:
        deadline = time.monotonic() + self.timeout
        while True:
            check, value = self._look(judge)
            if check.holds is self.wanted or time.monotonic() >= deadline:
                return check, value
            time.sleep(INTERVAL)

    def _look(self, judge: Callable[[T_co], ClaimCheck]) -> tuple[ClaimCheck, T_co | None]:
        """Return the check and the value; the content of a missing file cannot be checked."""
        try:
            value = self.read()
        except (LookupError, OSError, ValueError) as error:
            return ClaimCheck(None, "to exist", _said(error)), None
        try:
            return judge(value), value
        except OSError as error:
            return ClaimCheck(None, "to be readable", str(error)), value

    def _origin(self, value: object) -> tuple[CommandResult | None, str]:
        """Return the command to show, and a name for the value."""
        return self.source, self.subject or (shown(value) if isinstance(value, str) else "it")


def _said(error: Exception) -> str:
    """Return an error's message; str of a KeyError would add quotes."""
    return str(error.args[0] if isinstance(error, LookupError) and error.args else error)


def negated(claim: Callable[Concatenate[E, P], E]) -> Callable[Concatenate[E, P], E]:
    """Return the method `not_to_…` for a method `to_…`."""

    def method(self: E, /, *args: P.args, **kwargs: P.kwargs) -> E:
        return claim(replace(self, wanted=False), *args, **kwargs)

    return method


class ResultExpectation(Expectation[CommandResult]):
    """Claims about a command that has ended."""

    def to_succeed(self) -> ResultExpectation:
        return self._holds(lambda result: _ended(result, result.exit_code == 0, "to succeed"))

    def to_fail(self) -> ResultExpectation:
        return self._holds(lambda result: _ended(result, result.exit_code != 0, "to fail"))

    def to_have_exit_code(self, code: int) -> ResultExpectation:
        claim = f"to have exit code {code}"
        return self._holds(lambda result: _ended(result, result.exit_code == code, claim))

    def to_time_out(self) -> ResultExpectation:
        return self._holds(
            lambda result: ClaimCheck(
                result.timed_out, "to time out", f"it exited with {result.exit_code}"
            )
        )

    not_to_succeed = negated(to_succeed)
    not_to_fail = negated(to_fail)
    not_to_have_exit_code = negated(to_have_exit_code)
    not_to_time_out = negated(to_time_out)

    def _origin(self, value: object) -> tuple[CommandResult | None, str]:
        found = value if isinstance(value, CommandResult) else None
        return found, f"`{found.command}`" if found else "the command"


def _ended(result: CommandResult, holds: bool, claim: str) -> ClaimCheck:
    """Return a check of an exit code; after a timeout the claim cannot be checked."""
    if result.timed_out:
        return ClaimCheck(None, claim, f"it timed out after {result.seconds:.2f} s")
    return ClaimCheck(holds, claim, f"it exited with {result.exit_code}")


class JsonExpectation(Expectation[Json]):
    """Claims about a value, compared as JSON."""

    def at(self, path: str) -> JsonExpectation:
        """Return the expectation for the value at `a.b[0]`."""
        json_matchers.steps(path)  # a malformed path is the test's mistake, and raised as one
        inner = JsonExpectation(
            lambda: json_matchers.at(self.read(), path), path, self.source, self.timeout, self.void
        )
        return inner._holds(lambda _: ClaimCheck(True, "to exist"))

    def to_equal(self, wanted: JsonLike) -> JsonExpectation:
        return self._holds(lambda value: json_matchers.same_json(value, wanted))

    def to_include_json(self, wanted: JsonLike) -> JsonExpectation:
        return self._holds(lambda value: json_matchers.includes_json(value, wanted))

    def to_match_schema(self, schema: Mapping[str, object]) -> JsonExpectation:
        return self._holds(lambda value: json_matchers.matches_schema(value, schema))

    not_to_equal = negated(to_equal)
    not_to_include_json = negated(to_include_json)
    not_to_match_schema = negated(to_match_schema)


class TextExpectation(Expectation[str]):
    """Claims about text, which may be JSON."""

    def to_contain(self, wanted: str) -> TextExpectation:
        return self._holds(lambda text: matchers.contains(text, wanted))

    def to_match(self, pattern: str | re.Pattern[str]) -> TextExpectation:
        return self._holds(lambda text: matchers.matches(text, pattern))

    def to_equal(self, wanted: str) -> TextExpectation:
        return self._holds(lambda text: matchers.equals(text, wanted))

    def to_start_with(self, wanted: str) -> TextExpectation:
        return self._holds(lambda text: matchers.starts_with(text, wanted))

    def to_end_with(self, wanted: str) -> TextExpectation:
        return self._holds(lambda text: matchers.ends_with(text, wanted))

    def to_be_empty(self) -> TextExpectation:
        return self._holds(matchers.is_empty)

    def to_have_line_count(self, count: int) -> TextExpectation:
        return self._holds(lambda text: matchers.has_line_count(text, count))

    not_to_contain = negated(to_contain)
    not_to_match = negated(to_match)
    not_to_equal = negated(to_equal)
    not_to_start_with = negated(to_start_with)
    not_to_end_with = negated(to_end_with)
    not_to_be_empty = negated(to_be_empty)
    not_to_have_line_count = negated(to_have_line_count)

    def to_be_json(self) -> JsonExpectation:
        """Return the expectation for the value, for `.at("a.b[0]")` or `.to_include_json({…})`."""
        judged = self._holds(json_matchers.is_json)
        return JsonExpectation(
            lambda: json.loads(self.read()), self.subject, self.source, self.timeout, judged.void
        )

    def not_to_be_json(self) -> TextExpectation:
        return replace(self, wanted=False)._holds(json_matchers.is_json)

    def at(self, path: str) -> JsonExpectation:
        return self.to_be_json().at(path)

    def to_include_json(self, wanted: JsonLike) -> JsonExpectation:
        return self.to_be_json().to_include_json(wanted)

    def not_to_include_json(self, wanted: JsonLike) -> JsonExpectation:
        return self.to_be_json().not_to_include_json(wanted)

    def to_match_schema(self, schema: Mapping[str, object]) -> JsonExpectation:
        return self.to_be_json().to_match_schema(schema)

    def not_to_match_schema(self, schema: Mapping[str, object]) -> JsonExpectation:
        return self.to_be_json().not_to_match_schema(schema)


class FileExpectation(Expectation[Path]):
    """Claims about a file, as it is when the claim is checked."""

    def to_exist(self) -> FileExpectation:
        return self._holds(_exists)

    def to_have_content(self, wanted: str | bytes) -> FileExpectation:
        return self._holds(lambda path: matchers.equals(_content(path), decoded(wanted)))

    def to_contain(self, wanted: str | bytes) -> FileExpectation:
        return self._holds(lambda path: matchers.contains(_content(path), decoded(wanted)))

    def to_have_mode(self, mode: int) -> FileExpectation:
        return self._holds(lambda path: _has_mode(path, mode))

    not_to_exist = negated(to_exist)
    not_to_have_content = negated(to_have_content)
    not_to_contain = negated(to_contain)
    not_to_have_mode = negated(to_have_mode)


def _exists(path: Path) -> ClaimCheck:
    """Return a check that a path exists; a dangling symbolic link does."""
    there = path.exists() or path.is_symlink()
    if there or not path.parent.is_dir():
        return ClaimCheck(there, "to exist", "" if there else f"{path.parent} does not exist")
    beside = sorted(entry.name for entry in path.parent.iterdir())[:20]
    return ClaimCheck(
        False, "to exist", f"its directory contains: {', '.join(beside) or 'no files'}"
    )


def _has_mode(path: Path, wanted: int) -> ClaimCheck:
    mode = stat.S_IMODE(path.stat().st_mode)
    return ClaimCheck(mode == wanted, f"to have mode {wanted:04o}", f"it has {mode:04o}")


def _content(path: Path) -> str:
    return decoded(path.read_bytes())


def decoded(content: str | bytes) -> str:
    return content if isinstance(content, str) else content.decode("utf-8", "surrogateescape")
