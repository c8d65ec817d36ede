from __future__ import annotations

import pytest

from mngr_e2e import E2eSession, expect


@pytest.mark.usefixtures("notes")
def test_list_shows_one_line_per_note(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list everything, oldest entry first
    jot list
    """)
    result = e2e.run("jot list", comment="list everything")
    expect(result).to_succeed()
    expect(result.stdout).to_equal(
        "1 2026-02-28 buy oat milk #shop\n"
        "2 2026-03-01 call the plumber #home\n"
        "3 2026-03-31 prune the apple tree #home #garden\n"
        "4 2026-04-02 plan the summer\n"
    )


@pytest.mark.usefixtures("notes")
def test_list_last_shows_only_the_newest(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # only the two newest
    jot list --last 2
    """)
    result = e2e.run("jot list --last 2", comment="only the two newest")
    expect(result).to_succeed()
    expect(result.stdout).to_equal(
        "3 2026-03-31 prune the apple tree #home #garden\n4 2026-04-02 plan the summer\n"
    )


@pytest.mark.usefixtures("notes")
def test_list_by_day_includes_both_days(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # only what belongs to March; both days are included
    jot list --since 2026-03-01 --until 2026-03-31
    """)
    result = e2e.run("jot list --since 2026-03-01 --until 2026-03-31", comment="all of March")
    expect(result).to_succeed()
    expect(result.stdout).to_equal(
        "2 2026-03-01 call the plumber #home\n3 2026-03-31 prune the apple tree #home #garden\n"
    )


@pytest.mark.usefixtures("notes")
def test_list_by_tag_leaves_out_the_rest(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # only one tag
    jot list --tag home
    """)
    result = e2e.run("jot list --tag home", comment="only one tag")
    expect(result).to_succeed()
    expect(result.stdout).to_have_line_count(2)
    expect(result.stdout).to_contain("call the plumber")
    expect(result.stdout).to_contain("prune the apple tree")


@pytest.mark.usefixtures("notes")
def test_list_as_json_has_every_field(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # the same for scripts, with the whole text of each note
    jot list --json
    """)
    result = e2e.run("jot list --json", comment="for scripts")
    expect(result).to_succeed()
    expect(result.stdout).at("[2]").to_equal(
        {
            "number": 3,
            "day": "2026-03-31",
            "text": "prune the apple tree",
            "tags": ["home", "garden"],
        }
    )


def test_list_without_notes_prints_nothing(e2e: E2eSession) -> None:
    result = e2e.run("jot list && jot list --json", comment="no notes yet")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("[]\n")


@pytest.mark.usefixtures("notes")
def test_list_last_goes_by_day_not_by_number(e2e: E2eSession) -> None:
    e2e.run("jot add --date 2025-12-31 'an old one'", comment="entered late, but older")
    result = e2e.run("jot list --last 1", comment="the newest by day")
    expect(result.stdout).to_equal("4 2026-04-02 plan the summer\n")


@pytest.mark.usefixtures("notes")
def test_list_since_a_day_includes_that_day(e2e: E2eSession) -> None:
    result = e2e.run("jot list --since 2026-04-02", comment="the very day of a note")
    expect(result.stdout).to_equal("4 2026-04-02 plan the summer\n")


def test_list_last_wants_a_number_from_1_up(e2e: E2eSession) -> None:
    result = e2e.run("jot list --last 0", comment="none is not a number of notes")
    expect(result).to_have_exit_code(2)
    expect(result.stderr).to_contain("0 is not a number from 1 up")
