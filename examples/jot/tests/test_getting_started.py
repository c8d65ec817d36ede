from __future__ import annotations

from mngr_e2e import E2eSession, expect


def test_help_names_every_command(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # see what jot can do
    jot --help
    """)
    result = e2e.run("jot --help", comment="see what jot can do")
    expect(result).to_succeed()
    expect(result.stdout).to_start_with("usage: jot")
    for command in ("add", "list", "search", "tag", "edit", "remove", "export", "import"):
        expect(result.stdout).to_match(rf"^ +{command} ")


def test_the_first_note_gets_number_1(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # write your first note
    jot add 'buy oat milk'
    """)
    result = e2e.run("jot add 'buy oat milk'", comment="write your first note")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("added note 1\n")
    listed = e2e.run("jot list", comment="it is there, with today's date")
    expect(listed.stdout).to_match(r"^1 \d{4}-\d\d-\d\d buy oat milk$")


def test_words_without_quotes_become_one_note(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # quotes are optional as long as your shell leaves the words alone
    jot add call the plumber about the tap
    """)
    result = e2e.run("jot add call the plumber about the tap", comment="no quotes")
    expect(result).to_succeed()
    listed = e2e.run("jot list", comment="one note, all words")
    expect(listed.stdout).to_have_line_count(1)
    expect(listed.stdout).to_end_with(" call the plumber about the tap\n")


def test_a_piped_note_keeps_its_lines(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
    # a longer note can come from a pipe
    printf 'packing list\ntent\nstove\n' | jot add -
    """)
    result = e2e.run(
        r"printf 'packing list\ntent\nstove\n' | jot add -", comment="a note from a pipe"
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("added note 1\n")
    listed = e2e.run("jot list --json", comment="the whole text")
    expect(listed.stdout).at("[0].text").to_equal("packing list\ntent\nstove")


def test_a_note_can_have_tags_and_another_day(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # give a note tags and another day than today
    jot add --tag home --tag garden --date 2026-03-14 'prune the apple tree'
    """)
    result = e2e.run(
        "jot add --tag home --tag garden --date 2026-03-14 'prune the apple tree'",
        comment="tags and another day",
    )
    expect(result).to_succeed()
    listed = e2e.run("jot list", comment="day, text, tags")
    expect(listed.stdout).to_equal("1 2026-03-14 prune the apple tree #home #garden\n")


def test_a_note_without_text_is_refused(e2e: E2eSession) -> None:
    result = e2e.run("jot add '  '", comment="nothing but blanks")
    expect(result).to_have_exit_code(1)
    expect(result.stdout).to_be_empty()
    expect(result.stderr).to_equal("jot: a note needs some text\n")


def test_a_day_that_does_not_exist_is_refused(e2e: E2eSession) -> None:
    result = e2e.run("jot add --date 2026-02-30 'leap'", comment="no such day")
    expect(result).to_have_exit_code(2)
    expect(result.stderr).to_contain("2026-02-30 is not a date such as 2026-03-01")
    expect(e2e.run("jot list", comment="nothing was added").stdout).to_be_empty()


def test_a_tag_with_a_space_is_refused(e2e: E2eSession) -> None:
    result = e2e.run("jot add -t 'two words' 'a note'", comment="a tag is one word")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_contain("'two words' cannot be a tag")


def test_notes_added_at_the_same_time_are_all_kept(e2e: E2eSession) -> None:
    """Scope: only one jot writes at a time, and no number is given out twice."""
    result = e2e.run(
        "for n in 1 2 3 4 5 6; do jot add note $n & done; wait", comment="six writers at once"
    )
    expect(result).to_succeed()
    listed = e2e.run("jot list | cut -d' ' -f1", comment="six numbers")
    expect(listed.stdout).to_equal("1\n2\n3\n4\n5\n6\n")


def test_a_damaged_file_is_named_and_left_alone(e2e: E2eSession) -> None:
    e2e.run("mkdir ~/.jot && echo oops > ~/.jot/notes.jsonl", comment="not a note")
    result = e2e.run("jot add 'one more'", comment="nothing is written over it")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_contain("notes.jsonl, line 1 is not a note")
    expect(e2e.run("cat ~/.jot/notes.jsonl", comment="as it was").stdout).to_equal("oops\n")
