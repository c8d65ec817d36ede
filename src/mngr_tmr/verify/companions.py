"""Tests that pass only after other tests of their file, which leave something that they need. Pure.

At the baseline and at the gates whole files run, so such a test passes there. Elsewhere it runs by
itself, and then fails in another way than it did at the baseline.
"""

from __future__ import annotations

from collections.abc import Collection

from mngr_tmr.journal.model import Baseline, Run, TestRun


def fails_otherwise(run: Run, node_id: str, now: TestRun | None) -> bool:
    """Whether it fails now, and failed at the baseline, but for another reason."""
    before = run.baseline.get(node_id, Baseline()).signature
    return now is not None and now.outcome == "failed" and before not in ("", now.signature)


def of_files(run: Run, tests: Collection[str]) -> tuple[str, ...]:
    """All tests of the files of these, in the order in which they were collected."""
    files = {node_id.partition("::")[0] for node_id in tests}
    return tuple(node_id for node_id, test in run.tests.items() if test.file in files)
