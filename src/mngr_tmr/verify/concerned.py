"""Find the tests that a change of test files and their helpers concerns."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from mngr.api import Repo
from mngr_tmr.journal.model import Run
from mngr_tmr.verify import assertions, patches
from mngr_tmr.verify.cases import Refusal
from mngr_tmr.verify.checks import function
from mngr_tmr.verify.parts import Parts

NEAR = 40
"""Maximum number of tests to run that use only a changed helper; the gate runs all."""


@dataclass(frozen=True)
class Touched:
    """Functions of tests, as `file::name`, that a change of files concerns."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    """Unchanged tests that use something changed, such as a helper."""
    around: tuple[str, ...] = ()
    """Files in which something other than a test differs."""
    before: Mapping[str, assertions.Function] = field(default_factory=dict)
    after: Mapping[str, assertions.Function] = field(default_factory=dict)

    @property
    def old(self) -> tuple[str, ...]:
        return (*self.changed, *self.near)

    @property
    def new(self) -> tuple[str, ...]:
        return (*self.changed, *self.near, *self.added)


def touched(run: Run, repo: Repo, parts: Parts, base: str, commit: str, seed: str) -> Touched:
    """Return what base..commit touches; raise a Refusal if it removes a test or changes a hook."""
    changed: list[str] = []
    added: list[str] = []
    around: list[str] = []
    before: dict[str, assertions.Function] = {}
    after: dict[str, assertions.Function] = {}
    for path in [each.path for each in patches.changes(repo, base, commit)]:
        if not path.endswith(".py"):
            around.append(path)
            continue
        old, new = (patches.show(repo, one, path) or "" for one in (base, commit))
        _refuse_lost(path, old, new)
        names, fresh = assertions.changed_tests(old, new)
        before |= {f"{path}::{name}": f for name, f in assertions.functions(old).items()}
        after |= {f"{path}::{name}": f for name, f in assertions.functions(new).items()}
        changed += [f"{path}::{name}" for name in names]
        added += [f"{path}::{name}" for name in fresh]
        around += [path] if assertions.changes_around(old, new) else []
    files = {file for path in around for file in parts.test_files(path)}
    users = {function(n) for n, test in run.tests.items() if test.file in files}
    near = sorted(users - {*changed, *added})
    some = random.Random(seed).sample(near, min(NEAR, len(near)))
    return Touched(tuple(changed), tuple(added), tuple(some), tuple(around), before, after)


def _refuse_lost(path: str, old: str, new: str) -> None:
    removed = assertions.removed_tests(old, new)
    if removed:
        raise Refusal(f"removes the test {path}::{removed[0]}")
    hooks = assertions.changed_hooks(old, new)
    if hooks:
        raise Refusal(f"changes how pytest runs tests: {path}::{hooks[0]}")
