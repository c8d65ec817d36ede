"""The gate of every commit: all tests that passed before and all that the branch claims pass."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mngr.api import Repo
from mngr.errors import MngrError
from mngr.model.struct import Json
from mngr_outcome.codec import to_json
from mngr_tmr.dispatch.roles import Note
from mngr_tmr.journal.model import Run
from mngr_tmr.journal.proofs import GateResult, Proof
from mngr_tmr.verify import patches
from mngr_tmr.verify.bench import Bench
from mngr_tmr.verify.checks import Checked, outcome

FEW = 20
"""At most this many failing tests also run at the base: more are unlikely to be all flaky."""


class Gate:
    def __init__(self, run: Run, repo: Repo, bench: Bench, note: Note) -> None:
        self._run, self._repo, self._bench, self._note = run, repo, bench, note

    def failing(self, tree: str, claimed: set[str]) -> list[str]:
        """Return the failing tests among those that passed at the baseline or the branch claims."""
        tests = sorted(
            claimed | {n for n, b in self._run.baseline.items() if b.standing == "passed"}
        )
        key = hashlib.sha256(chr(0).join(tests).encode()).hexdigest()[:16]
        known = self._run.gates.get(tree, {}).get(key)
        if known is not None and known.passed:
            return []
        commit = patches.commit(self._repo, tree, [self._run.base], "A candidate\n")
        self._repo.git("update-ref", f"refs/mngr/tmr/{self._run.name}/candidate", commit)
        looked = self._looked("gate", commit, tests)
        proofs, failing = [*looked.proofs], looked.failing
        if failing and not looked.errors:
            failing = self._again(commit, failing, claimed, proofs)
        unsteady = [each for each in looked.failing if each not in failing]
        broken = looked.errors or failing
        result = GateResult(not broken, tuple(unsteady[:50]), tuple(proofs))
        told: dict[str, Json] = {"tree": tree, "tests": key, "broken": [*broken[:50]]}
        self._note("gated", {**told, "gate": to_json(result)})
        return broken

    def _looked(self, what: str, commit: str, tests: Sequence[str]) -> Session:
        """Run a session. One that does not finish evicts a change only if it does at the base."""
        checks = self._bench.check_all(what, commit, tests)
        looked = Session.of(checks, tests)
        if _finished(checks) or any(checked.timed_out for checked in checks):
            return looked
        if commit != self._run.base:
            control = f"{what}, at the base, because it did not finish"
            if _finished(self._bench.check_all(control, self._run.base, tests)):
                return replace(
                    looked, errors=["pytest itself, which ends before its tests have run"]
                )
        raise MngrError(f"pytest did not finish: {what}, {commit[:12]}")

    def _again(
        self, commit: str, failing: Sequence[str], claimed: set[str], proofs: list[Proof]
    ) -> list[str]:
        """Return the tests that fail every time, and only with the candidate."""
        second = self._looked("gate, again", commit, failing)
        proofs += second.proofs
        # Tests that the branch claims may fail at the base.
        asked = [each for each in second.failing if each not in claimed]
        if not asked or len(asked) > FEW:
            return second.failing
        base = self._looked("gate, at the base", self._run.base, asked)
        proofs += base.proofs
        return [each for each in second.failing if each not in base.failing]


@dataclass(frozen=True)
class Session:
    """The results of several checks of one commit."""

    failing: list[str]
    errors: list[str]
    proofs: list[Proof]

    @classmethod
    def of(cls, checks: Sequence[Checked], tests: Sequence[str]) -> Session:
        runs = {node: run for checked in checks for node, run in checked.runs.items()}
        errors = [error for checked in checks for error in checked.errors]
        if any(checked.timed_out for checked in checks):
            errors.append("the time limit of a check")
        failing = [each for each in tests if outcome(runs, each) != "passed"]
        return cls(failing, errors, [checked.proof for checked in checks])


def _finished(checks: Sequence[Checked]) -> bool:
    return all(checked.ended for checked in checks)
