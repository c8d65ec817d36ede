"""The cache of the hosts that tests run."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tests.support.lab import machines


def test_what_an_interrupted_build_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    mark = hashlib.sha256((machines.HERE / "root.sh").read_bytes()).hexdigest()[:12]
    built = machines.cache() / f"root-{mark}"
    built.mkdir()
    (machines.cache() / f"{built.name}.tar.zst").touch()
    (machines.cache() / ".root.Ab3xYz" / "root" / "proc").mkdir(parents=True)
    assert machines.root() == built
    assert sorted(os.listdir(machines.cache())) == ["lock", built.name, f"{built.name}.tar.zst"]
