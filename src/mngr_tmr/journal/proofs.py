"""What a check or a gate showed, as the journal keeps it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Proof:
    """One command that verification or a gate ran."""

    what: str
    command: str
    exit_code: int
    commit: str = ""
    log: str = ""
    """Relative to the run's folder."""
    sandboxed: bool = False
    finding: str = ""
    """The result in words, if the exit code alone would mislead."""
    may_fail: bool = False
    """Whether a failure is expected or allowed."""


@dataclass(frozen=True)
class GateResult:
    """One gate of a candidate of the branch."""

    passed: bool
    unsteady: tuple[str, ...] = ()
    """Flaky tests: they failed first, and evicted nothing."""
    proofs: tuple[Proof, ...] = ()
