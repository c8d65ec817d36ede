"""One try under verification: what was found out so far, and the checks that found it out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mngr.errors import MngrError
from mngr_tmr.journal.model import Ended, Proof, Task, Try
from mngr_tmr.verify.bench import Bench, Check, Checked


class Refusal(Exception):
    """Why the work, or a part of it, is not taken."""


@dataclass
class Case:
    task: Task
    each: Try
    ended: Ended
    bench: Bench
    limit: float = 900.0
    """Seconds that a check may take."""
    proofs: list[Proof] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    artifacts: str = ""
    companions: tuple[str, ...] = ()
    """The tests of its file, its own among them, where that passes only after others."""

    @property
    def session(self) -> tuple[str, ...]:
        """What runs when its own test does."""
        return self.companions or (self.own,)

    @property
    def base(self) -> str:
        return self.each.base

    @property
    def head(self) -> str:
        return self.ended.head

    @property
    def own(self) -> str:
        return self.task.node_id

    def check(self, check: Check, *, collects: bool = True) -> Checked:
        """A finished session, or a Refusal if only the agent's work keeps it from finishing.

        Where it need not collect, a test that is missing is as good as red.
        """
        checked = self._tried(check)
        if checked.timed_out and check.commit == self.base:
            raise MngrError(f"{check.what}: timed out after {self.limit:g} s, at the base")
        if checked.timed_out:
            raise Refusal(f"{check.what}: timed out after {self.limit:g} s")
        if not checked.finished:
            self._blame(check)
        if checked.errors and collects:
            raise Refusal(f"it does not collect: {checked.errors[0]}")
        return checked

    def _tried(self, check: Check) -> Checked:
        """Twice if need be: a session that does not finish says nothing about its tests."""
        checked = self.bench.check(check)
        if not _ended(checked):
            checked = self.bench.check(check)
        self.proofs.append(checked.proof)
        return checked

    def _blame(self, check: Check) -> None:
        """The work is at fault if the same session finishes at the base; else nobody knows."""
        what = f"{check.what}, at the base"
        if check.commit != self.base:
            at_base = self._tried(replace(check, what=what, commit=self.base, keep=""))
            if _ended(at_base):
                raise Refusal(
                    f"{check.what}: pytest ended before its tests did, but not at the base"
                )
        raise MngrError(f"pytest did not finish: {check.what}, {check.commit[:12]}")


def _ended(checked: Checked) -> bool:
    return checked.finished or checked.timed_out


def outcome(checked: Checked, test: str) -> str:
    """Of a test, or of all that one function stands for."""
    if test in checked.runs:
        return checked.runs[test].outcome
    runs = [run for node, run in checked.runs.items() if function(node) == test]
    if not runs:
        return "missing"
    return next((run.outcome for run in runs if run.outcome != "passed"), "passed")


def function(node_id: str) -> str:
    """The node id without its parameters."""
    return node_id.partition("[")[0]


def failure(checked: Checked, test: str, what: str = "with its work") -> str:
    kind = outcome(checked, test)
    runs = [run for node, run in checked.runs.items() if test in (node, function(node))]
    run = next((each for each in runs if each.message.strip()), None)
    if run is None:
        return f"{test} is {kind} {what}"
    return f"{test} is {kind} {what}: {run.exception}: {run.message.strip().splitlines()[0][:200]}"
