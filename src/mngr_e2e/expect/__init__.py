"""`expect(…)`: expectations of a command, its output, a file or a JSON value.

    expect(result).to_succeed()
    expect(result.stdout).to_contain("milk")
    expect(result.stdout).to_be_json().at("notes[0].text").to_equal("milk")
    expect(Path("notes.db")).not_to_exist()
    expect(lambda: log.read_text()).eventually(timeout=5).to_contain("ready")

Every `to_…` has a `not_to_…`. If a claim cannot be checked, both fail: `not_to_include_json` does
not hold for text that is not JSON.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar, cast, overload

from mngr_e2e.commands.results import PATIENCE, CommandResult
from mngr_e2e.expect.expectations import (
    INTERVAL,
    FileExpectation,
    JsonExpectation,
    ResultExpectation,
    TextExpectation,
    decoded,
)
from mngr_e2e.expect.failures import ExpectationFailed, origin, soft
from mngr_e2e.expect.matchers import Json, shown

__all__ = ["ExpectationFailed", "Json", "expect", "soft"]
__tracebackhide__ = True  # pytest then shows the line of the test

T_co = TypeVar("T_co", covariant=True)
Value: TypeAlias = None | bool | int | float | Sequence[object] | Mapping[str, object]
"""A JSON value, except text, which has its own claims."""


@dataclass(frozen=True)
class Pending(Generic[T_co]):
    """A value that is computed for each check: call `.eventually()` and then a claim."""

    read: Callable[[], T_co]

    @overload
    def eventually(
        self: Pending[CommandResult], timeout: float = PATIENCE
    ) -> ResultExpectation: ...
    @overload
    def eventually(self: Pending[Path], timeout: float = PATIENCE) -> FileExpectation: ...
    @overload
    def eventually(  # type: ignore[overload-overlap]  # text is a sequence too; it comes first
        self: Pending[str] | Pending[bytes], timeout: float = PATIENCE
    ) -> TextExpectation: ...
    @overload
    def eventually(self: Pending[Value], timeout: float = PATIENCE) -> JsonExpectation: ...

    def eventually(self, timeout: float = PATIENCE) -> object:
        """Check again until the claim holds, for at most `timeout` seconds."""
        return _about(self._first(timeout), self.read).eventually(timeout)

    def _first(self, timeout: float) -> T_co:
        """Return the first value that can be read: its type decides which claims there are."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                return self.read()
            except (LookupError, OSError, ValueError):
                if time.monotonic() >= deadline:
                    raise
            time.sleep(INTERVAL)


@overload
def expect(actual: CommandResult) -> ResultExpectation: ...
@overload
def expect(  # type: ignore[overload-overlap]  # text is a sequence too; it comes first
    actual: str | bytes,
) -> TextExpectation: ...
@overload
def expect(actual: Path) -> FileExpectation: ...
@overload
def expect(actual: Value) -> JsonExpectation: ...
@overload
def expect(actual: Callable[[], T_co]) -> Pending[T_co]: ...


def expect(actual: object) -> object:
    """Return the claims that can be made about a value; pass a function for `.eventually()`."""
    if callable(actual):
        return Pending(actual)
    source, stream = origin(actual)
    if isinstance(actual, str | bytes):
        text = decoded(actual)
        return TextExpectation(lambda: text, stream or shown(text), source)
    return _about(actual, lambda: actual, source)


def _about(
    value: object, read: Callable[[], object], source: CommandResult | None = None
) -> ResultExpectation | FileExpectation | TextExpectation | JsonExpectation:
    """Return the expectation for the type of the value."""
    if isinstance(value, CommandResult):
        return ResultExpectation(cast("Callable[[], CommandResult]", read))
    if isinstance(value, Path):
        return FileExpectation(cast("Callable[[], Path]", read), str(value), source)
    if isinstance(value, str | bytes):
        return TextExpectation(lambda: decoded(cast("str | bytes", read())))
    return JsonExpectation(cast("Callable[[], Json]", read), "", source)
