"""What `mngr tutorial` says to agents, and what it takes from them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.errors import BadRecord, MngrError, UsageError
from mngr_e2e import blocks
from mngr_e2e.blocks import Block
from mngr_tutorial import comments, confusing, prompts, proposals
from mngr_tutorial.fill import render as render_fill
from mngr_tutorial.project import Project
from mngr_tutorial.proposals import Proposal
from mngr_tutorial.sync import render as render_sync
from mngr_tutorial.trials import ProposalResult
from mngr_tutorial.verifying import SyncTask

ASKED = [Block("# shout it", 3), Block("# two\n# lines", 5)]
PROJECT = Project(
    Path("/p/inner"), Path("/p/inner/tour.sh"), (Path("/p/inner/checks"),), Path("/p")
)
NAMES = sorted(path.stem for path in prompts.FOLDER.glob("*.md"))


# prompts


def test_every_prompt_has_a_version_and_is_rendered_strictly() -> None:
    assert NAMES == ["fill", "sync", prompts.SYNC]
    for name in NAMES:
        prompt = prompts.load(name)
        assert prompt.version >= 1 and prompt.fields
        values = dict.fromkeys(prompt.fields, "VALUE")
        text = prompt.render(**values)
        assert text.count("VALUE") >= len(values) and "version" not in text[:20]
        with pytest.raises(MngrError, match=f"{name}.*extra"):
            prompt.render(**values, extra="")
        with pytest.raises(MngrError, match=values.popitem()[0]):
            prompt.render(**values)


def test_the_text_of_a_version_does_not_change_unnoticed() -> None:
    """Raise the version in the first line of what you changed, then its entry here."""
    texts = {name: prompts.load(name) for name in NAMES}
    digests = {name: hashlib.sha256(each.text.encode()) for name, each in texts.items()}
    assert {name: (texts[name].version, digests[name].hexdigest()[:8]) for name in texts} == {
        "fill": (2, "2b9378d4"),
        "sync": (2, "c6e1b57b"),
        prompts.SYNC: (2, "c098d5c4"),
    }


def test_what_an_agent_is_told_holds_the_blocks_as_they_are() -> None:
    odd = Block("# costs $5 and ${x} $$ \\n", 7, "Money")
    told = render_fill(PROJECT, [odd])
    assert "\n    # costs $5 and ${x} $$ \\n\n" in told and "“Money”" in told
    assert "$MNGR_AGENT_STATE_DIR/proposals.json" in told and "`tour.sh`" in told
    told = render_sync(PROJECT, SyncTask([odd], []))
    assert "\n    # costs $5 and ${x} $$ \\n\n" in told and "`checks`" in told
    assert '"$MNGR_AGENT_STATE_DIR/publish" --attempted' in told


# proposals


def parsed(**what: object) -> proposals.Proposals:
    return proposals.parse(json.dumps({"schema": 1, **what}).encode(), ASKED)


def test_proposals_are_read_as_they_are_meant() -> None:
    found = parsed(
        proposals=[
            {"block": "  # shout it ", "commands": "echo A\n", "setup": " ", "more": 1},
            {"block": "# shout it", "commands": "echo B", "comment": "## again"},
        ],
        confusing=[{"command": "x\x1b[31m", "tried": "y"}],
    )
    assert found.proposals == (
        Proposal("# shout it", "", "echo A"),
        Proposal("# shout it", "# again", "echo B"),
    )
    assert found.confusing[0].command == "x[31m" and found.confusing[0].happened == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block": "# other"}, "not asked about"),
        ({"block": 3}, "'block' is int"),
        ({"commands": ""}, "not commands"),
        ({"commands": "# only words"}, "not commands"),
        ({"commands": "a\n\nb"}, "without empty lines"),
        ({"commands": "a\n \nb"}, "without empty lines"),
        ({"commands": "a\x07"}, "control characters"),
        ({"commands": "a\r\nb"}, "control characters"),
        ({"commands": "a\n" * 60}, "longer than 40 lines"),
        ({"setup": "x" * 9000}, "longer than"),
        ({"comment": "a\nb"}, "one plain line"),
        ({"comment": "\u202eevil"}, "one plain line"),
    ],
)
def test_a_proposal_that_cannot_be_meant_is_refused(
    change: dict[str, object], message: str
) -> None:
    good = {"block": "# shout it", "commands": "echo A"}
    assert len(parsed(proposals=[good]).proposals) == 1
    with pytest.raises(BadRecord, match=message):
        parsed(proposals=[{**good, **change}])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not an object"),
        (b"{}", "schema"),
        (b'{"schema": true}', "schema"),
        (b'{"schema": 1, "proposals": {}}', "not a list"),
        (b'{"schema": 1, "proposals": [7]}', "not an object"),
        (b" " * 300_000, "larger than"),
        (b'{"schema": 1, "proposals": [%s]}' % b",".join([b"{}"] * 501), "more than 500"),
    ],
)
def test_a_file_that_is_no_such_thing_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(BadRecord, match=message):
        proposals.parse(data, ASKED)


def test_two_proposals_cannot_stand_in_the_same_place() -> None:
    good = {"block": "# shout it", "commands": "echo A"}
    with pytest.raises(BadRecord, match="same comment"):
        parsed(proposals=[good, {**good, "commands": "echo B"}])
    with pytest.raises(BadRecord, match="made twice"):
        parsed(proposals=[{**good, "comment": "x"}, {**good, "comment": "# x"}])


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_whatever_is_in_the_file_is_taken_or_refused(value: object) -> None:
    for data in (value, {"schema": 1, "proposals": [value]}, {"schema": 1, "confusing": value}):
        try:
            proposals.parse(json.dumps(data).encode(), ASKED)
        except BadRecord as error:
            assert str(error)


# where they go

TUTORIAL = """\
#!/bin/sh
# A script.

# === Speaking ===

# say hello
echo hello

# shout it

## Files

# two
# lines

# shout it

# THE END
"""


def test_comments_ask_but_headings_and_the_scripts_head_do_not() -> None:
    everything = blocks.parse(TUTORIAL)
    asked = comments.without_commands(everything, [])
    assert [(block.line, block.text) for block in asked] == [
        (9, "# shout it"),
        (13, "# two\n# lines"),
    ]
    assert comments.without_commands(everything, [14]) == asked[1:]
    with pytest.raises(UsageError, match="line 6 is not"):
        comments.without_commands(everything, [6])


WORDS = st.text("abc $|'\"\\#-", min_size=1, max_size=8).map(str.strip).filter(bool)
COMMANDS = st.lists(WORDS, min_size=1, max_size=3).map("\n".join)


@given(st.lists(st.tuples(st.sampled_from(["# shout it", "# two\n# lines"]), WORDS, COMMANDS)))
def test_only_what_is_kept_changes_and_each_becomes_a_block(
    given_: list[tuple[str, str, str]],
) -> None:
    kept: dict[str, Proposal] = {}
    for number, (block, comment, commands) in enumerate(given_):
        try:
            data = {"block": block, "comment": f"{number} {comment}", "commands": commands}
            if block not in {each.block for each in kept.values()}:
                data["comment"] = ""
            (one,) = parsed(proposals=[data]).proposals
            kept[one.text] = one
        except BadRecord:
            continue
    new = comments.filled(TUTORIAL, list(kept.values()))
    left = [block.text for block in blocks.parse(new)]
    for text in kept:
        left.remove(text)
    direct = [each.block for each in kept.values() if not each.comment]
    before = [block.text for block in blocks.parse(TUTORIAL)]
    for text in direct:
        before.remove(text)
    assert sorted(left) == sorted(before)


def test_commands_stand_as_far_in_as_their_comment() -> None:
    text = "a\n\n   # x\n\nb\n"
    new = comments.filled(text, [Proposal("# x", "", "c\nd"), Proposal("# x", "# y", "e")])
    assert new == "a\n\n   # x\n   c\n   d\n\n   # y\n   e\n\nb\n"
    with pytest.raises(UsageError, match="the tutorial has changed"):
        comments.filled("b\n", [Proposal("# x", "", "c")])


# confusing.md


def test_confusing_spots_cannot_break_out_of_their_quotation(tmp_path: Path) -> None:
    trial = ProposalResult(
        Proposal("# x", "", "l`s"), 2, 0.1, "```\n# Heading\n\x1b]0;title\x07<b>\n"
    )
    path = tmp_path / confusing.NAME
    assert confusing.write(path, [confusing.of_trial(trial)])
    lines = path.read_text().split("\n")
    assert "## 1. `l's`" in lines and "    # Heading" in lines and "    <b>" in lines
    assert not any(line.startswith(("# Heading", "```")) for line in lines)
    confusing.refuse_foreign(path)
    assert not confusing.write(path, [])
    assert not path.exists()
