"""Verify one attempt: run its checks, collect their results, and refuse it with a reason."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from mngr.errors import MngrError
from mngr_tmr.journal.model import Ended, Run, Task, TestRun, Try
from mngr_tmr.journal.proofs import Proof
from mngr_tmr.verify.bench import Bench
from mngr_tmr.verify.checks import Check, Checked, function


class Refusal(Exception):
    """Why a change, or a part of it, is not accepted."""


@dataclass
class Case:
    task: Task
    each: Try
    ended: Ended
    bench: Bench
    limit: float = 900.0
    """Time limit of a check, in seconds."""
    proofs: list[Proof] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    artifacts: str = ""
    companions: tuple[str, ...] = ()
    """All tests of its file, if its test passes only after others."""

    @property
    def session(self) -> tuple[str, ...]:
        """Return the tests that run together with its own test."""
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

    def kept(self) -> str:
        """Return the folder for the artifacts of a check.

        It is not below the folder that came from the agent, which could put files there itself.
        """
        self.artifacts = f"verified/{self.task.id}/{self.each.number}"
        return self.artifacts

    def check(self, check: Check, *, collects: bool = True) -> Checked:
        """Return a finished session; raise a Refusal if it finishes only without the change.

        If it need not collect, a missing test counts as failed.
        """
        checked = self._checked(check)
        if checked.timed_out and check.commit == self.base:
            raise MngrError(f"{check.what}: timed out after {self.limit:g} s, at the base")
        if checked.timed_out:
            raise Refusal(f"{check.what}: timed out after {self.limit:g} s")
        if not checked.finished:
            self._blame(check)
        if checked.errors and collects:
            raise Refusal(f"pytest cannot collect it: {checked.errors[0]}")
        return checked

    def _checked(self, check: Check) -> Checked:
        checked = self.bench.check(check)
        self.proofs.append(checked.proof)
        return checked

    def _blame(self, check: Check) -> None:
        """Raise a Refusal if the session finishes at the base, otherwise a MngrError."""
        what = f"{check.what}, at the base"
        if check.commit != self.base:
            at_base = self._checked(replace(check, what=what, commit=self.base, keep=""))
            if at_base.ended:
                raise Refusal(f"{check.what}: pytest ended before its tests, but not at the base")
        raise MngrError(f"pytest did not finish: {check.what}, {check.commit[:12]}")


def failure(checked: Checked, test: str, what: str) -> str:
    """Return a sentence about how a test failed."""
    kind = checked.outcome(test)
    became = "failed" if kind == "failed" else f"is {kind}"
    runs = [run for node, run in checked.runs.items() if test in (node, function(node))]
    run = next((each for each in runs if each.message.strip()), None)
    if run is None:
        return f"{test} {became} {what}"
    return f"{test} {became} {what}: {run.exception}: {run.message.strip().splitlines()[0][:200]}"


def is_doctest(node_id: str) -> bool:
    """Return whether it is a doctest in a module, such as `shop/cart.py::shop.cart.total`.

    The name of a test function has no dot, and may be that of its module.
    """
    path, _, name = function(node_id).partition("::")
    place = PurePosixPath(path)
    module = place.parent.name if place.name == "__init__.py" else place.stem
    return place.suffix == ".py" and "." in name and module in name.split(".")


# Some tests pass only after other tests of their file, which leave something that they require. In
# the baseline and at the gates whole files run, so such a test passes there. Elsewhere it runs
# alone, and then fails in another way than in the baseline.


def fails_otherwise(run: Run, node_id: str, now: TestRun | None) -> bool:
    """Return whether a test fails now, and failed at the baseline for another reason."""
    before = run.before(node_id).signature
    return now is not None and now.outcome == "failed" and before not in ("", now.signature)


def of_files(run: Run, tests: Collection[str]) -> tuple[str, ...]:
    """Return all tests of the files of these tests, in the order of their collection."""
    files = {node_id.partition("::")[0] for node_id in tests}
    return tuple(node_id for node_id, test in run.tests.items() if test.file in files)
