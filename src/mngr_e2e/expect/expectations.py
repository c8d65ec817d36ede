"""What `expect` gives: claims about a command, text or JSON, that hold or fail."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from mngr_e2e.commands.results import PATIENCE, CommandResult
from mngr_e2e.expect import json_matchers, matchers
from mngr_e2e.expect.failures import fail
from mngr_e2e.expect.matchers import Check, Json, JsonLike, shown

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping

__tracebackhide__ = True  # pytest then shows the line of the test, not ours

T = TypeVar("T")
INTERVAL = 0.02


@dataclass(frozen=True)
class Expectation(Generic[T]):
    """Something to judge. It is read anew for every look, so that `eventually` can wait."""

    read: Callable[[], T]
    subject: str = ""
    source: CommandResult | None = None
    timeout: float = 0
    void: bool = False
    """It stands on something that failed softly: there is nothing to judge."""

    def eventually(self, timeout: float = PATIENCE) -> Self:
        """Look again until the claim holds, for at most `timeout` seconds."""
        return replace(self, timeout=timeout)

    def _holds(self, judge: Callable[[T], Check], wanted: bool = True) -> Self:
        if self.void:
            return self
        check, value = self._judged(judge, wanted)
        if check.holds is wanted:
            return self
        claim = check.claim if wanted or check.holds is None else f"not {check.claim}"
        waited = f" within {self.timeout:g} s" if self.timeout else ""
        source, subject = self._origin(value)
        detail = check.detail if wanted or check.holds is None else ""
        fail(f"expected {subject} {claim}{waited}", detail, source)
        return replace(self, void=True)

    def _judged(self, judge: Callable[[T], Check], wanted: bool) -> tuple[Check, T | None]:
        deadline = time.monotonic() + self.timeout
        while True:
            check, value = self._look(judge)
            if check.holds is wanted or time.monotonic() >= deadline:
                return check, value
            time.sleep(INTERVAL)

    def _look(self, judge: Callable[[T], Check]) -> tuple[Check, T | None]:
        """A file that is not there has no content: neither this nor any other."""
        try:
            value = self.read()
        except (LookupError, OSError, ValueError) as error:
            return Check(None, "to be there", _said(error)), None
        try:
            return judge(value), value
        except OSError as error:
            return Check(None, "to be readable", str(error)), value

    def _origin(self, value: T | None) -> tuple[CommandResult | None, str]:
        """The command to show, and what to call the value."""
        return self.source, self.subject or (shown(value) if isinstance(value, str) else "it")


def _said(error: Exception) -> str:
    """A KeyError would quote itself."""
    return str(error.args[0] if isinstance(error, LookupError) and error.args else error)


class ResultExpectation(Expectation[CommandResult]):
    """What is said of a command that ran."""

    def to_succeed(self) -> Self:
        return self._holds(_succeeds)

    def not_to_succeed(self) -> Self:
        return self._holds(_succeeds, False)

    def to_fail(self) -> Self:
        return self._holds(_fails)

    def not_to_fail(self) -> Self:
        return self._holds(_fails, False)

    def to_have_exit_code(self, code: int) -> Self:
        return self._holds(lambda result: _exits(result, code))

    def not_to_have_exit_code(self, code: int) -> Self:
        return self._holds(lambda result: _exits(result, code), False)

    def to_time_out(self) -> Self:
        return self._holds(_times_out)

    def not_to_time_out(self) -> Self:
        return self._holds(_times_out, False)

    def _origin(self, value: CommandResult | None) -> tuple[CommandResult | None, str]:
        return value, f"`{value.command}`" if value else "the command"


def _ended(result: CommandResult, holds: bool, claim: str) -> Check:
    """A command that had to be ended tells nothing by its exit code."""
    if result.timed_out:
        return Check(None, claim, f"it was ended after {result.seconds:.2f} s")
    return Check(holds, claim, f"it exited with {result.exit_code}")


def _succeeds(result: CommandResult) -> Check:
    return _ended(result, result.exit_code == 0, "to succeed")


def _fails(result: CommandResult) -> Check:
    return _ended(result, result.exit_code != 0, "to fail")


def _exits(result: CommandResult, code: int) -> Check:
    return _ended(result, result.exit_code == code, f"to have exit code {code}")


def _times_out(result: CommandResult) -> Check:
    return Check(result.timed_out, "to time out", f"it exited with {result.exit_code}")


class JsonExpectation(Expectation[Json]):
    """What is said of a value, as JSON sees it."""

    def at(self, path: str) -> JsonExpectation:
        """The value at `a.b[0]`."""
        json_matchers.steps(path)  # a malformed path is the test's mistake, and raised as one
        inner = JsonExpectation(
            lambda: json_matchers.at(self.read(), path), path, self.source, self.timeout, self.void
        )
        return inner._holds(lambda _: Check(True, "to be there"))

    def to_equal(self, wanted: JsonLike) -> Self:
        return self._holds(lambda value: json_matchers.same_json(value, wanted))

    def not_to_equal(self, wanted: JsonLike) -> Self:
        return self._holds(lambda value: json_matchers.same_json(value, wanted), False)

    def to_include_json(self, wanted: JsonLike) -> Self:
        return self._holds(lambda value: json_matchers.includes_json(value, wanted))

    def not_to_include_json(self, wanted: JsonLike) -> Self:
        return self._holds(lambda value: json_matchers.includes_json(value, wanted), False)

    def to_match_schema(self, schema: Mapping[str, object]) -> Self:
        return self._holds(lambda value: json_matchers.matches_schema(value, schema))

    def not_to_match_schema(self, schema: Mapping[str, object]) -> Self:
        return self._holds(lambda value: json_matchers.matches_schema(value, schema), False)


class TextExpectation(Expectation[str]):
    """What is said of text."""

    def to_contain(self, wanted: str) -> Self:
        return self._holds(lambda text: matchers.contains(text, wanted))

    def not_to_contain(self, wanted: str) -> Self:
        return self._holds(lambda text: matchers.contains(text, wanted), False)

    def to_match(self, pattern: str | re.Pattern[str]) -> Self:
        return self._holds(lambda text: matchers.matches(text, pattern))

    def not_to_match(self, pattern: str | re.Pattern[str]) -> Self:
        return self._holds(lambda text: matchers.matches(text, pattern), False)

    def to_equal(self, wanted: str) -> Self:
        return self._holds(lambda text: matchers.equals(text, wanted))

    def not_to_equal(self, wanted: str) -> Self:
        return self._holds(lambda text: matchers.equals(text, wanted), False)

    def to_start_with(self, wanted: str) -> Self:
        return self._holds(lambda text: matchers.starts_with(text, wanted))

    def not_to_start_with(self, wanted: str) -> Self:
        return self._holds(lambda text: matchers.starts_with(text, wanted), False)

    def to_end_with(self, wanted: str) -> Self:
        return self._holds(lambda text: matchers.ends_with(text, wanted))

    def not_to_end_with(self, wanted: str) -> Self:
        return self._holds(lambda text: matchers.ends_with(text, wanted), False)

    def to_be_empty(self) -> Self:
        return self._holds(matchers.is_empty)

    def not_to_be_empty(self) -> Self:
        return self._holds(matchers.is_empty, False)

    def to_have_line_count(self, count: int) -> Self:
        return self._holds(lambda text: matchers.has_line_count(text, count))

    def not_to_have_line_count(self, count: int) -> Self:
        return self._holds(lambda text: matchers.has_line_count(text, count), False)

    def to_be_json(self) -> JsonExpectation:
        """Further claims are about the value: `.at("a.b[0]")`, `.to_include_json({…})`."""
        judged = self._holds(json_matchers.is_json)
        return JsonExpectation(
            lambda: json.loads(self.read()), self.subject, self.source, self.timeout, judged.void
        )

    def not_to_be_json(self) -> Self:
        return self._holds(json_matchers.is_json, False)

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
