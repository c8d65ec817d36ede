"""The gate of every commit: all that passed before and all that the branch claims has to pass."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mngr.api import Repo
from mngr.errors import MngrError
from mngr.model.struct import Json
from mngr_outcome.codec import to_json
from mngr_tmr.journal.model import Proof, Run
from mngr_tmr.verify import patches
from mngr_tmr.verify.bench import Bench, Checked

Note = Callable[[str, Mapping[str, Json]], None]
FEW = 20
"""So many failing tests are also tried at the base: more are hardly all flaky."""


class Gate:
    def __init__(self, run: Run, repo: Repo, bench: Bench, note: Note) -> None:
        self._run, self._repo, self._bench, self._note = run, repo, bench, note
        self._shaky: dict[str, tuple[str, ...]] = {}

    def shaky(self, tree: str) -> tuple[str, ...]:
        """Tests that failed at its gate first, and were not held against it."""
        return self._shaky.get(tree, ())

    def failing(self, tree: str, claimed: set[str]) -> list[str]:
        """What fails of all that passed at the baseline and all that the branch claims."""
        tests = sorted(claimed | {n for n, b in self._run.baseline.items() if _passed(b.standing)})
        key = f"{tree} {hashlib.sha256(chr(0).join(tests).encode()).hexdigest()[:16]}"
        if self._run.gates.get(key):
            self._shaky[tree] = self._run.shaky.get(key, ())
            return []
        commit = patches.commit(self._repo, tree, [self._run.base], "A candidate\n")
        self._repo.git("update-ref", f"refs/mngr/tmr/{self._run.name}/candidate", commit)
        looked = self._looked("gate", commit, tests)
        proofs, failing = [*looked.proofs], looked.failing
        if failing and not looked.errors:
            failing = self._again(commit, failing, claimed, proofs)
        unsteady = [each for each in looked.failing if each not in failing]
        self._shaky[tree] = tuple(unsteady[:50])
        passed = not failing and not looked.errors
        told: dict[str, Json] = {"key": key, "passed": passed, "failing": [*failing[:50]]}
        told |= {"unsteady": [*unsteady[:50]], "errors": [*looked.errors[:10]]}
        self._note("gated", {**told, "proofs": [to_json(proof) for proof in proofs]})
        return looked.errors or failing

    def _looked(self, what: str, commit: str, tests: Sequence[str]) -> Look:
        """Run a session again if it did not finish; this alone evicts no change."""
        checks = self._bench.check_all(what, commit, tests)
        if not _finished(checks):
            checks = self._bench.check_all(f"{what}, after one that did not finish", commit, tests)
        looked = Look.at(checks, tests)
        if _finished(checks) or any(checked.timed_out for checked in checks):
            return looked
        if commit != self._run.base:
            control = f"{what}, at the base, because it did not finish"
            if _finished(self._bench.check_all(control, self._run.base, tests)):
                return replace(looked, errors=["pytest itself, which ends before its tests do"])
        raise MngrError(f"pytest did not finish: {what}, {commit[:12]}")

    def _again(
        self, commit: str, failing: Sequence[str], claimed: set[str], proofs: list[Proof]
    ) -> list[str]:
        """Return the tests that fail every time, and only with the candidate."""
        second = self._looked("gate, once more", commit, failing)
        proofs += second.proofs
        # What the branch claims is its own doing: the base says nothing about that.
        asked = [each for each in second.failing if each not in claimed]
        if not asked or len(asked) > FEW:
            return second.failing
        base = self._looked("gate, at the base", self._run.base, asked)
        proofs += base.proofs
        return [each for each in second.failing if each not in base.failing]


@dataclass(frozen=True)
class Look:
    """What several checks of one commit say together."""

    failing: list[str]
    errors: list[str]
    proofs: list[Proof]

    @classmethod
    def at(cls, checks: Sequence[Checked], tests: Sequence[str]) -> Look:
        outcomes: dict[str, str] = {}
        for checked in checks:
            outcomes |= {node: run.outcome for node, run in checked.runs.items()}
        errors = [error for checked in checks for error in checked.errors]
        if any(checked.timed_out for checked in checks):
            errors.append("the time limit of a check")
        failing = [each for each in tests if _worst(outcomes, each) != "passed"]
        return cls(failing, errors, [checked.proof for checked in checks])


def _finished(checks: Sequence[Checked]) -> bool:
    return all(checked.finished or checked.timed_out for checked in checks)


def _passed(standing: str) -> bool:
    return standing == "passed"


def _worst(outcomes: Mapping[str, str], test: str) -> str:
    if test in outcomes:
        return outcomes[test]
    mine = [kind for node, kind in outcomes.items() if node.partition("[")[0] == test]
    return next((kind for kind in mine if kind != "passed"), "passed" if mine else "missing")
