"""Diffs, and the blocks that tests cite, from the repository of a run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from mngr.api import local_repository
from mngr_tmr.verify import assertions, patches

LIMIT, TOTAL_LIMIT = 400_000, 64 << 20
# Agents may have committed gigabytes, so sizes are limited, and no diff programs of the user run.
DIFF = """
git -C "$1" -c core.bigFileThreshold=1m diff-tree --stdin -r -p --no-renames --no-ext-diff \\
  --no-textconv | head -c "$2"
"""
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class RunRepository:
    """Reads everything once: commits do not change. A missing repository is empty."""

    def __init__(self, path: str) -> None:
        self._repo = local_repository(path) if path and os.path.isdir(path) else None
        self._diffs: dict[str, str] = {}
        self._cited: dict[tuple[str, str], dict[str, str]] = {}

    def fetch(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Read the diffs of these (base, commit) pairs in one call."""
        self._ask({commit: base for base, commit in pairs}, TOTAL_LIMIT)

    def diff(self, base: str, commit: str) -> str:
        self._ask({commit: base}, LIMIT)
        return self._diffs.get(commit, "")

    def _ask(self, bases: Mapping[str, str], limit: int) -> None:
        wanted = {
            commit: base
            for commit, base in bases.items()
            if commit not in self._diffs and COMMIT.fullmatch(base) and COMMIT.fullmatch(commit)
        }
        if not wanted or self._repo is None:
            return
        told = "".join(f"{commit} {base}\n" for commit, base in wanted.items()).encode()
        argv = ["sh", "-c", DIFF, "mngr", self._repo.path, str(limit)]
        done = self._repo.run(argv, input=told, timeout=self._repo.timeout)
        # Each diff begins with a line that is only its commit; no line of a diff looks like that.
        self._diffs |= dict.fromkeys(wanted, "") | _split(done.stdout.decode("utf-8", "replace"))

    def block(self, commit: str, node_id: str) -> str:
        """Return the block that a test cites in this commit."""
        file, _, name = node_id.partition("::")
        if (commit, file) not in self._cited:
            self._cited[commit, file] = self._blocks(commit, file)
        return self._cited[commit, file].get(name.partition("[")[0], "")

    def _blocks(self, commit: str, file: str) -> dict[str, str]:
        if self._repo is None or not COMMIT.fullmatch(commit) or not file:
            return {}
        found = assertions.functions(patches.show(self._repo, commit, file) or "")
        return {name: assertions.blocks(function) for name, function in found.items()}


def _split(text: str) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.split("\n"):
        if COMMIT.fullmatch(line):
            lines = found.setdefault(line, [])
        else:
            lines.append(line)
    return {commit: "\n".join(each).strip("\n") for commit, each in found.items()}
