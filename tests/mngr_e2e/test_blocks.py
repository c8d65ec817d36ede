"""A tutorial read as blocks, and blocks as commands."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr_e2e import blocks
from mngr_e2e.blocks import Block, dedented, parse

TOUR = """\
#!/bin/sh
# A tour.

# === First steps ===

# see what it can do
jot --help

  # write a note
  jot add \\
    'buy milk'\t

# LOOKING AT NOTES

jot list

############
# The rest
############

# nothing to run here yet
"""

LINE = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)
RUN = st.lists(LINE, min_size=1, max_size=4)
GAP = st.lists(st.sampled_from(["", "  ", "\t"]), min_size=1, max_size=3)


def test_blocks_have_line_numbers_and_sections() -> None:
    assert [(block.line, block.section) for block in parse(TOUR)] == [
        (1, ""),
        (4, "First steps"),
        (6, "First steps"),
        (9, "First steps"),
        (13, "LOOKING AT NOTES"),
        (15, "LOOKING AT NOTES"),
        (17, "The rest"),
        (21, "The rest"),
    ]


def test_a_block_is_kept_without_indentation_and_trailing_blanks() -> None:
    assert parse(TOUR)[3].text == "# write a note\njot add \\\n  'buy milk'"
    assert parse(TOUR)[3].caption == "write a note"
    assert parse(TOUR)[5].caption == "jot list"


def test_only_blocks_with_commands_need_a_test() -> None:
    assert [block.line for block in parse(TOUR) if block.needs_test] == [6, 9, 15]
    assert not Block("#!/bin/sh\nexit", 1).needs_test


@given(st.lists(st.tuples(RUN, GAP), max_size=6))
def test_parsing_finds_every_run_of_lines_where_it_stands(
    runs: list[tuple[list[str], list[str]]],
) -> None:
    lines = [line for run, gap in runs for line in [*run, *gap]]
    found = parse("\n".join(lines))
    assert [block.text for block in found] == [dedented("\n".join(run)) for run, _ in runs]
    for block in found:
        assert lines[block.line - 1].strip() == block.lines[0].strip()


@given(RUN, st.sampled_from(["", "    ", "\t"]), st.sampled_from(["", " ", "\t  "]))
def test_indentation_and_trailing_blanks_do_not_matter(
    run: list[str], left: str, right: str
) -> None:
    moved = "\n".join(f"{left}{line}{right}" for line in run)
    assert [block.text for block in parse(moved)] == [dedented("\n".join(run))]
    assert dedented(f"\n{moved}\n{left}") == dedented("\n".join(run))


def test_identical_blocks_are_named_with_their_first_occurrence() -> None:
    twice = parse("jot list\n\n# other\njot add x\n\njot list\n")
    found = [(first.line, again.line) for first, again in blocks.repeated(twice)]
    assert found == [(1, 6)]
    prose = parse("# same\n\n# same\n\njot list")
    assert list(blocks.repeated(prose)) == []


def test_a_docstring_cites_the_block_up_to_the_next_empty_line() -> None:
    docstring = """It works.

        Tutorial block:
            # see it
            jot list

        Scope: only this.
    """
    assert list(blocks.in_docstring(docstring)) == [Block("# see it\njot list", 4)]
    assert list(blocks.in_docstring("nothing")) == list(blocks.in_docstring("")) == []


def test_a_block_is_compared_without_indentation_and_trailing_blanks() -> None:
    assert dedented("\n    # a  \n    b\n      c\n    ") == "# a\nb\n  c"
    assert dedented(textwrap.indent("x", "\t")) == "x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# a\njot list\njot add x # why", ["jot list", "jot add x # why"]),
        ("jot add \\\n  x\njot list", ["jot add \\\n  x", "jot list"]),
        ("cat <<EOF \\\n  | jot add\nx\nEOF\nls", ["cat <<EOF \\\n  | jot add\nx\nEOF", "ls"]),
        ("jot add <<< 'x' \\\n  --tag y\nls", ["jot add <<< 'x' \\\n  --tag y", "ls"]),
        ("jot list |\n  wc -l\nls", ["jot list |\n  wc -l", "ls"]),
        ("jot add x &&\n  jot list ||\n  ls", ["jot add x &&\n  jot list ||\n  ls"]),
        ("jot add x # a slash: \\\njot list", ["jot add x # a slash: \\", "jot list"]),
        ("jot add 'two\nlines'\njot list", ["jot add 'two\nlines'", "jot list"]),
        ("cat > x <<EOF\nit's\nEOF\njot list", ["cat > x <<EOF\nit's\nEOF", "jot list"]),
    ],
)
def test_a_command_keeps_the_lines_that_belong_to_it(text: str, expected: list[str]) -> None:
    assert blocks.commands(text) == expected


@pytest.mark.parametrize(
    ("command", "texts"),
    [
        ("jot list", ["jot list --last 2"]),
        ("jot list --last 2", ["jot list"]),
        ("jot --help", ["jot --version"]),  # an option does not count
        ("jot add 'buy milk'", ["jot add other"]),
        ("jot list | wc -l", ["jot list"]),
        ("JOT_HOME=/x jot list", ["jot list"]),
        ("jot list", ["cd notes && jot list"]),
        ("cd notes && jot list", ["jot list"]),
        ("cd notes", []),
        ("jot add \\\n  x", ["jot add y"]),
    ],
)
def test_a_command_was_run_when_the_first_words_agree(command: str, texts: list[str]) -> None:
    assert blocks.ran(command, texts)


@pytest.mark.parametrize(
    ("command", "texts"),
    [
        ("jot list", []),
        ("jot list", ["jot add list"]),
        ("jot list", ["echo jot list"]),
        ("jot list", ["jot --help"]),
        ("cd notes && jot list", ["cd notes"]),
        ("cat > x <<EOF\njot list\nEOF", ["jot list"]),
        ("jot list", ["cat > x <<EOF\njot list\nEOF"]),
        ("jot list", ["cat > x <<EOF\none; jot list\nEOF"]),
    ],
)
def test_a_command_was_not_run_by_something_else(command: str, texts: list[str]) -> None:
    assert not blocks.ran(command, texts)


@given(st.text(max_size=60))
def test_a_command_that_was_run_as_it_stands_was_run(text: str) -> None:
    for command in blocks.commands(text):
        assert blocks.ran(command, [text])


def test_a_quotation_without_an_end_is_split_at_its_blanks() -> None:
    assert blocks.asked("jot add 'half a note") == ("jot", "add")
