"""Assign tests to workers: tests that share an expensive fixture run together."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

SHARED = 'scope="module"'


class Together(LoadScopeScheduling):  # type: ignore[misc]
    """A file whose tests share a fixture goes to one worker, early; the marks that xdist has for
    this are lost on newer versions of pytest."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return path if shares(self.config.rootpath / path) else nodeid


@cache
def shares(path: Path) -> bool:
    places = (path, path.with_name("conftest.py"))
    return any(place.is_file() and SHARED in place.read_text() for place in places)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Together:
    return Together(config, log)
