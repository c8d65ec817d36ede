from __future__ import annotations

import pytest

from mngr_e2e import E2eSession, expect


@pytest.mark.usefixtures("notes")
def test_search_wants_all_words_in_any_order_and_case(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # all words must occur, in any order; case does not matter
    jot search TREE apple
    """)
    result = e2e.run("jot search TREE apple", comment="two words, one note")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("3 2026-03-31 prune the apple tree #home #garden\n")


@pytest.mark.usefixtures("notes")
def test_search_any_counts_notes_with_one_of_the_words(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # one of the words is enough, and only the count is wanted
    jot search --any --count tree milk
    """)
    result = e2e.run("jot search --any --count tree milk", comment="one word is enough")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("2\n")


@pytest.mark.usefixtures("notes")
def test_search_tells_by_its_status_that_nothing_was_found(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # like grep, search exits with 1 when it finds nothing
    jot search unicorn || echo 'no unicorns here'
    """)
    result = e2e.run("jot search unicorn || echo 'no unicorns here'", comment="nothing found")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("no unicorns here\n")
    alone = e2e.run("jot search unicorn", comment="the status itself")
    expect(alone).to_have_exit_code(1)
    expect(alone.stderr).to_be_empty()


def test_search_without_words_explains_itself(e2e: E2eSession) -> None:
    result = e2e.run("jot search", comment="search for what?")
    expect(result).to_have_exit_code(2)
    expect(result.stdout).to_be_empty()
    expect(result.stderr).to_contain("required: words")
