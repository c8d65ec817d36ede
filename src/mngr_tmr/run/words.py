"""Format counts and reasons for people."""

from __future__ import annotations

from collections.abc import Sequence

from mngr_tmr.journal.model import Ruling, Task, Verdict
from mngr_tmr.journal.proofs import Proof


def counted(number: int, noun: str) -> str:
    """Return `1 test`, `2,000 tests`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def span(seconds: float) -> str:
    """Return a limit as people write it: `1 s`, `90 s`, `30 min`, `3 h`."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def few(names: Sequence[str], most: int) -> str:
    """Return the first names, and the number of all others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def reason_of(task: Task) -> str:
    """Return the reason for the result of a task, for a place that names its test."""
    test = task.node_id
    return _reason(task).removeprefix(f"{test} ").removeprefix(f"{test.partition('[')[0]} ")


def _reason(task: Task) -> str:
    if task.passes_with:
        return f"passes with {task.passes_with[:12]}"
    if task.evicted or task.skipped:
        return task.evicted or task.skipped
    ended, verdict = task.latest.ended if task.latest else None, task.verdict
    if verdict is not None and remark_of(verdict):
        return remark_of(verdict)
    if ended is not None:
        return ended.reason or ended.summary.strip().partition("\n")[0]
    return f"waits for its canary {task.canary}" if task.canary else ""


def remark_of(verdict: Verdict) -> str:
    """Return the reason; "" if a fix or a test change was accepted, which requires none."""
    plain = verdict.ruling is Ruling.ACCEPTED and not verdict.expectation
    return "" if plain else verdict.reason


def result_of(proof: Proof) -> str:
    """Return `passed`, `failed (exit code 1)` or `no new failures (exit code 1)`."""
    failed = f"{proof.finding or 'failed'} (exit code {proof.exit_code})"
    return failed if proof.exit_code else "passed"
