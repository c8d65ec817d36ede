"""A test is changed only if its own block contradicts it, never to hide a defect."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from mngr_mechanic.program import citations
from mngr_mechanic.program.stale import corrected
from tests.mngr_mechanic.garage import Garage
from tests.support.cli import ROOT

BLOCK = "# quotes are optional\njot add call the plumber about the tap"


def test_words_of_the_block_replace_words_that_it_does_not_have() -> None:
    new = corrected(
        " call the painter about the tap\n", "1 call the plumber about the tap\n", BLOCK
    )
    assert new == " call the plumber about the tap\n"


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        pytest.param("call the plumber", "CALL THE PLUMBER", id="the program changed the words"),
        pytest.param("call the plumber about the tap", "call the plumber", id="words were lost"),
        pytest.param("added note 1", "added note 2", id="a number is wrong"),
        pytest.param("added note 1", "call the plumber about the tap", id="something else came"),
        pytest.param("added note 1", "added tap 1", id="a word of the block at the wrong place"),
        pytest.param("call the plumber about the tap", "call the tap about the tap", id="a mix-up"),
        pytest.param("two lines\ncall the plumber", "call the plumber", id="a line is missing"),
        pytest.param("one note", "one nope", id="a word that is not in the block"),
        pytest.param("saved the plumber", "", id="nothing came"),
    ],
)
def test_an_expectation_that_the_program_fails_is_left_alone(expected: str, actual: str) -> None:
    assert corrected(expected, actual, BLOCK) is None


CITING = '''
def test_it(e2e):
    """It lists the newest.

    Tutorial block:
        # three notes
        jot list --last 3

    Only the number of notes matters.
    """
    e2e.write_tutorial_block("""
    # all
    jot list
    """)
    e2e.write_tutorial_block(block="jot show 1")
'''


def test_every_cited_block_counts_and_words_around_it_do_not() -> None:
    test = citations.function(ast.parse(CITING), "tests/test_it.py::test_it")
    assert test is not None
    cited = "# three notes\njot list --last 3\n\n# all\njot list\n\njot show 1"
    assert citations.block(test) == cited


CLI = "src/jot/cli.py"
NOTES = "src/jot/notes.py"
# Bugs too big for a small repair, in what a cited test looks at.
BUGS = [
    (
        "tests/test_getting_started.py::test_words_without_quotes_become_one_note",
        CLI,
        'text = (sys.stdin.read() if args.text == ["-"] else " ".join(args.text)).strip()',
        'text = "".join(reversed(" ".join(args.text).strip()))',
    ),
    pytest.param(
        "tests/test_getting_started.py::test_words_without_quotes_become_one_note",
        CLI,
        "note = notes.Note(notes.next_number(kept), text, day,",
        'note = notes.Note(notes.next_number(kept), text.replace("tap", "call"), day,',
        marks=pytest.mark.soak,
    ),
]


@pytest.mark.parametrize(("test", "file", "old", "new"), BUGS, ids=["reversed", "mixed up"])
def test_a_bug_that_it_cannot_repair_leaves_the_test_as_it_is(
    tmp_path: Path, test: str, file: str, old: str, new: str
) -> None:
    ignored = shutil.ignore_patterns("__pycache__", ".*_cache", ".mngr-e2e")
    root = Path(shutil.copytree(ROOT / "examples" / "jot", tmp_path / "jot", ignore=ignored))
    text = (root / file).read_text()
    assert text.count(old) == 1
    (root / file).write_text(text.replace(old, new))
    garage = Garage(root, tmp_path / "state")
    outcome = garage.work("fix", test, budget="6")
    assert not [name for name in garage.changed() if name.startswith("tests/")], garage.output
    assert outcome.blocked is not None or garage.passing(test)
