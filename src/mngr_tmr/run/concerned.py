"""Which tests a change of files concerns."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mngr.api import Repo
from mngr_tmr.journal.model import Run
from mngr_tmr.verify import assertions, patches
from mngr_tmr.verify.cases import Refusal
from mngr_tmr.verify.checks import function
from mngr_tmr.verify.parts import Parts

NEAR = 40
"""Of tests that a change concerns only through a helper, so many run; the gate runs all."""


@dataclass(frozen=True)
class Touched:
    """Functions of tests, as `file::name`, that a change of files concerns."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    """Not changed themselves, but something is that they stand on."""
    around: tuple[str, ...] = ()
    """Files in which something else than the body of a test differs."""
    before: Mapping[str, assertions.Function] = field(default_factory=dict)
    after: Mapping[str, assertions.Function] = field(default_factory=dict)

    @property
    def old(self) -> tuple[str, ...]:
        return (*self.changed, *self.near)

    @property
    def new(self) -> tuple[str, ...]:
        return (*self.changed, *self.near, *self.added)


class Concerned:
    def __init__(self, run: Run, repo: Repo, parts: Parts) -> None:
        self._run, self._repo, self._parts = run, repo, parts

    def touched(
        self, base: str, commit: str, changes: Sequence[patches.Change], seed: str
    ) -> Touched:
        """A Refusal where a test is removed or pytest is told how to judge."""
        changed: list[str] = []
        added: list[str] = []
        around: list[str] = []
        before: dict[str, assertions.Function] = {}
        after: dict[str, assertions.Function] = {}
        for each in changes:
            path = each.path
            old, new = (patches.show(self._repo, one, path) or "" for one in (base, commit))
            if not path.endswith(".py"):
                around.append(path)
                continue
            _refuse_lost(path, old, new)
            names, fresh = assertions.changed_tests(old, new)
            before |= {f"{path}::{name}": f for name, f in assertions.functions(old).items()}
            after |= {f"{path}::{name}": f for name, f in assertions.functions(new).items()}
            changed += [f"{path}::{name}" for name in names]
            added += [f"{path}::{name}" for name in fresh]
            around += [path] if assertions.changes_around(old, new) else []
        near = sorted(self._standing_on(around) - {*changed, *added})
        some = random.Random(seed).sample(near, min(NEAR, len(near)))
        return Touched(tuple(changed), tuple(added), tuple(some), tuple(around), before, after)

    def _standing_on(self, paths: Iterable[str]) -> set[str]:
        files = {file for path in paths for file in self._parts.test_files(path)}
        return {function(n) for n, test in self._run.tests.items() if test.file in files}


def _refuse_lost(path: str, old: str, new: str) -> None:
    removed = assertions.removed_tests(old, new)
    if removed:
        raise Refusal(f"removes the test {path}::{removed[0]}")
    hooks = assertions.changed_hooks(old, new)
    if hooks:
        raise Refusal(f"changes how pytest runs tests: {path}::{hooks[0]}")
