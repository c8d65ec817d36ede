from __future__ import annotations

import pytest

from mngr_e2e import E2eSession, expect


@pytest.mark.usefixtures("notes")
def test_tags_can_be_added_and_taken_away(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # add tags to a note that exists, and take one away again
    jot tag 1 shop weekly
    jot tag 1 --remove weekly
    """)
    added = e2e.run("jot tag 1 shop weekly", comment="one it has, one it has not")
    expect(added).to_succeed()
    expect(added.stdout).to_equal("note 1: #shop #weekly\n")
    removed = e2e.run("jot tag 1 --remove weekly", comment="take one away again")
    expect(removed).to_succeed()
    expect(removed.stdout).to_equal("note 1: #shop\n")


@pytest.mark.usefixtures("notes")
def test_tag_alone_counts_all_tags(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # see which tags you use, most used first
    jot tag
    """)
    result = e2e.run("jot tag", comment="most used first")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("  2 home\n  1 garden\n  1 shop\n")


@pytest.mark.usefixtures("notes")
def test_edit_replaces_the_text_and_keeps_the_rest(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # replace the text of a note
    jot edit 1 'buy oat milk and bread'
    """)
    result = e2e.run("jot edit 1 'buy oat milk and bread'", comment="replace the text")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("changed note 1\n")
    listed = e2e.run("jot list --tag shop", comment="day and tag are the same")
    expect(listed.stdout).to_equal("1 2026-02-28 buy oat milk and bread #shop\n")


@pytest.mark.usefixtures("notes")
def test_edit_opens_the_editor(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # or open it in your editor; any program that changes a file will do
    EDITOR='sed -i.bak s/oat/soy/' jot edit 1
    """)
    result = e2e.run("EDITOR='sed -i.bak s/oat/soy/' jot edit 1", comment="sed is the editor")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("changed note 1\n")
    listed = e2e.run("jot search milk", comment="what the editor wrote")
    expect(listed.stdout).to_contain("buy soy milk")


@pytest.mark.usefixtures("notes")
def test_remove_drops_one_note_and_leaves_the_numbers_alone(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # drop a note you no longer need
    jot remove 2
    """)
    result = e2e.run("jot remove 2", comment="drop a note")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("removed note 2: call the plumber\n")
    listed = e2e.run("jot list | cut -d' ' -f1", comment="the others keep their numbers")
    expect(listed.stdout).to_equal("1\n3\n4\n")


@pytest.mark.parametrize("command", ["jot edit 9 text", "jot tag 9 home", "jot remove 9"])
@pytest.mark.usefixtures("notes")
def test_a_note_that_does_not_exist_is_named(e2e: E2eSession, command: str) -> None:
    result = e2e.run(command, comment="there are only four")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_contain("there is no note 9")


@pytest.mark.usefixtures("notes")
def test_remove_drops_all_of_its_notes_or_none(e2e: E2eSession) -> None:
    result = e2e.run("jot remove 1 9", comment="one of them does not exist")
    expect(result).to_have_exit_code(1)
    expect(e2e.run("jot list", comment="all four").stdout).to_have_line_count(4)


@pytest.mark.usefixtures("notes")
def test_a_failing_editor_changes_nothing(e2e: E2eSession) -> None:
    result = e2e.run("EDITOR=false jot edit 1", comment="the editor gives up")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_contain("nothing was changed")
    expect(e2e.run("jot search milk", comment="as before").stdout).to_contain("buy oat milk")


@pytest.mark.usefixtures("notes")
def test_a_missing_editor_is_named(e2e: E2eSession) -> None:
    result = e2e.run("EDITOR=no-such-editor jot edit 1", comment="not installed")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_equal("jot: cannot find the editor no-such-editor; set EDITOR\n")


@pytest.mark.usefixtures("notes")
def test_leaving_the_editor_without_a_change_says_so(e2e: E2eSession) -> None:
    result = e2e.run("EDITOR=true jot edit 1", comment="look, but do not touch")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("note 1 is unchanged\n")


def test_taking_a_tag_away_needs_a_note(e2e: E2eSession) -> None:
    result = e2e.run("jot tag --remove home", comment="from which note?")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_equal("jot: which note? Put its number first\n")


@pytest.mark.usefixtures("notes")
def test_a_tag_the_note_does_not_have_cannot_be_taken_away(e2e: E2eSession) -> None:
    result = e2e.run("jot tag 1 --remove garden", comment="it is not there")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_equal("jot: note 1 has no tag garden\n")
