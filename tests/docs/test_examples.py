"""Every example in the documents is run, unless it is marked as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import ROOT
from tests.support.guide import RUN, SHOWN, Block, Reader, blocks, commands, matches

DOCUMENTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
]
# Attaching requires a terminal.
CONNECT = {"MNGR__COMMANDS__CONNECT__CONNECT_COMMAND": "echo attached to $MNGR_AGENT_NAME"}
# An agent with conversations, without an account.
SCRIBE = {"MNGR__PLUGINS__MODULES": '["tests.support.scribe"]'}
NEEDS: dict[str, dict[str, str]] = {"README.md": CONNECT, "docs/conversations.md": SCRIBE}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.close()
    assert not reader.processes(), "the examples left processes running"


def runnable(document: Path) -> list[Block]:
    return [block for block in blocks(document) if block.language in RUN]


def name(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if runnable(d)], ids=name)
def test_the_examples_do_what_they_say(document: Path, reader: Reader) -> None:
    reader.env |= NEEDS.get(name(document), {})
    if "mngr-hello" in document.read_text():
        reader.install_example()
    for block in runnable(document):
        reader.run(block)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_block_says_what_it_is_and_no_command_hides_in_one_that_is_not_run(
    document: Path,
) -> None:
    for block in blocks(document):
        assert block.language in RUN + SHOWN, f"{block}: mark it as one of {RUN + SHOWN}"
        if block.language == "text":
            hidden = [x for x in block.text.splitlines() if x.startswith(("$ ", "mngr "))]
            assert not hidden, f"{block}: can be run, so mark it sh or console: {hidden[0]}"


def test_the_documents_hold_many_examples() -> None:
    """So that a parser that finds none of them is not taken for success."""
    assert sum(len(runnable(document)) for document in DOCUMENTS) >= 30
    assert len(runnable(ROOT / "README.md")) >= 5


def test_output_is_compared_line_by_line_and_dots_stand_for_anything() -> None:
    assert matches(["NAME   STATE"], ["NAME STATE"])
    assert matches(["a ... c"], ["a b c"])
    assert matches(["a", "...", "z"], ["a", "b", "c", "z"])
    assert matches(["...", "z"], ["z"])
    assert not matches(["a"], ["a", "b"])
    assert not matches([], ["a"])
    assert not matches(["a.c"], ["abc"])
    assert not matches(["a ... c"], ["a", "c"])


def test_blocks_are_found_with_their_language_also_in_comments(tmp_path: Path) -> None:
    document = tmp_path / "some.md"
    document.write_text(
        "a\n```console\n$ x\n````\n```\n<!-- a note -->\n<!-- sh\ny\n-->\n"
        "  ~~~~ text\nz\n  ~~~~\n```\n"
    )
    assert [(b.line, b.language, b.text) for b in blocks(document)] == [
        (2, "console", "$ x\n````\n"),
        (7, "sh", "y\n"),
        (10, "text", "z\n"),
        (13, "", ""),
    ]


def test_commands_and_what_they_print_are_told_apart() -> None:
    text = "$ one 'a\n> b'\nprinted\n> quoted\n$ two\n"
    assert commands(text) == [("one 'a\nb'", ["printed", "> quoted"]), ("two", [])]


def test_a_wrong_example_is_noticed(tmp_path: Path, reader: Reader) -> None:
    document = ROOT / "wrong.md"
    for language, text in (
        ("console", "$ echo a\nb\n"),
        ("console", "$ false\n"),
        ("console", "$ echo 'mngr: no'\n"),
        ("sh", "false\ntrue\n"),
        ("sh", "echo $unset\n"),
        ("python", "1/0\n"),
    ):
        with pytest.raises(AssertionError, match=r"wrong\.md:7"):
            reader.run(Block(document, 7, language, text))
