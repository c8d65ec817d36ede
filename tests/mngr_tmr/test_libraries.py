"""Libraries of other people with defects of one token: repaired to the byte, by few agents."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from mngr_tmr.run import runs
from tests.support import foreign
from tests.support.cli import Cli

PATIENCE = 3000
"""Seconds; two idle cores need a tenth of it."""


@dataclass(frozen=True)
class Library:
    package: str
    file: str
    defects: dict[str, str]
    """What the authors wrote, and what is there instead."""
    failing: int
    agents: int
    """At most."""


INFLECTION = Library(
    "inflection==0.5.1",
    "inflection/__init__.py",
    {
        "number % 100 in (11, 12, 13)": "number % 100 in (11, 12, 14)",
        "if not word or word.lower()": "if not word and word.lower()",
        "camelize(string)[1:]": "camelize(string)[2:]",
        "word.replace('_', '-')": "word.replace('_', '_')",
    },
    failing=26,
    agents=8,
)
TABULATE = Library(
    "tabulate==0.10.0",
    "tabulate/__init__.py",
    {"maxwidth = max(max(_flat_list": "maxwidth = min(max(_flat_list"},
    failing=221,
    agents=4,
)


def source(package: str) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache, "mngr-tests", f"library-{package.partition('=')[0]}")
    folder.mkdir(parents=True, exist_ok=True)
    return foreign.source(package, folder)


def plant(cli: Cli, library: Library) -> str:
    """The commit without the defects."""
    ignore = shutil.ignore_patterns("*.egg-info", foreign.COMPLETE, ".git*")
    shutil.copytree(source(library.package), cli.repo, dirs_exist_ok=True, ignore=ignore)
    sound = cli.commit("as its authors released it")
    place = cli.repo / library.file
    text = place.read_text()
    for right, wrong in library.defects.items():
        assert text.count(right) == 1, right
        text = text.replace(right, wrong)
    place.write_text(text)
    cli.commit("with defects")
    return sound


@pytest.mark.soak
@pytest.mark.parametrize("library", [INFLECTION, TABULATE], ids=lambda each: str(each.package))
def test_a_library_is_repaired_to_the_byte_by_few_agents(local: Cli, library: Library) -> None:
    sound = plant(local, library)
    words = ("--name", "l", "--type", "mechanic", "--only", "failing", "--yes")
    done = local("tmr", "run", *words, timeout=PATIENCE).ok()
    run = runs.load(local.home / "tmr" / "l")
    assert len(run.tasks) >= library.failing, "the defects are not what they were"
    assert local.git("diff", sound, "tmr/l") == "", done.out
    assert run.tries <= library.agents, done.out
