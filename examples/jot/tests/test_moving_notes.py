from __future__ import annotations

import pytest

from mngr_e2e import E2eSession, expect


@pytest.mark.usefixtures("notes")
def test_export_writes_one_note_per_line(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # make a backup, one note per line
    jot export --output backup.jsonl
    """)
    result = e2e.run("jot export --output backup.jsonl", comment="make a backup")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("wrote 4 notes to backup.jsonl\n")
    backup = e2e.run("cat backup.jsonl", comment="one note per line")
    expect(backup.stdout).to_have_line_count(4)
    expect(backup.stdout).to_start_with('{"number": 1, "day": "2026-02-28", "text": "buy oat milk"')


@pytest.mark.usefixtures("notes")
def test_export_makes_a_spreadsheet(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # open your notes in a spreadsheet
    jot export --format csv --output notes.csv
    """)
    result = e2e.run("jot export --format csv --output notes.csv", comment="a spreadsheet")
    expect(result).to_succeed()
    sheet = e2e.run("cat notes.csv", comment="a head and four rows")
    expect(sheet.stdout).to_have_line_count(5)
    expect(sheet.stdout).to_start_with("number,day,text,tags\n1,2026-02-28,buy oat milk,shop\n")


@pytest.mark.usefixtures("notes")
def test_export_makes_a_page(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # read them as a page
    jot export --format markdown | head -n 5
    """)
    result = e2e.run("jot export --format markdown | head -n 5", comment="read them as a page")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("# Notes\n\n## 2026-02-28\n\n- buy oat milk `#shop`\n")


@pytest.mark.usefixtures("notes")
def test_import_brings_back_what_is_missing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # bring a backup back; notes that are already here stay as they are
    jot import backup.jsonl
    """)
    e2e.run("jot export --output backup.jsonl && jot remove 2 3", comment="lose two notes")
    result = e2e.run("jot import backup.jsonl", comment="bring a backup back")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("imported 2 notes, 2 already here\n")
    listed = e2e.run("jot list", comment="all four again, two of them under new numbers")
    expect(listed.stdout).to_have_line_count(4)
    expect(listed.stdout).to_contain("5 2026-03-01 call the plumber #home")


@pytest.mark.usefixtures("notes")
def test_import_can_be_tried_first(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # look before you import
    jot import --dry-run backup.jsonl
    """)
    e2e.run("jot export --output backup.jsonl && jot remove 2", comment="lose a note")
    result = e2e.run("jot import --dry-run backup.jsonl", comment="look before you import")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("would import 1 notes, 3 already here\n")
    expect(e2e.run("jot list", comment="still three").stdout).to_have_line_count(3)


def test_another_home_keeps_notes_apart(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # keep work and private notes apart
    JOT_HOME=~/work-notes jot add 'prepare the review'
    """)
    result = e2e.run(
        "JOT_HOME=~/work-notes jot add 'prepare the review'", comment="notes for work only"
    )
    expect(result).to_succeed()
    private = e2e.run("jot list", comment="nothing among the private notes")
    expect(private.stdout).to_be_empty()
    work = e2e.run("JOT_HOME=~/work-notes jot list", comment="it is with the others for work")
    expect(work.stdout).to_contain("prepare the review")


def test_text_with_commas_and_lines_survives_the_spreadsheet(e2e: E2eSession) -> None:
    e2e.run(r"""printf 'eggs, "large"\nflour\n' | jot add --date 2026-05-01 -""", comment="quotes")
    result = e2e.run("jot export --format csv", comment="quoted as spreadsheets want it")
    expect(result).to_succeed()
    expect(result.stdout).to_end_with('1,2026-05-01,"eggs, ""large""\nflour",\n')


@pytest.mark.usefixtures("notes")
def test_json_goes_out_and_in_through_a_pipe(e2e: E2eSession) -> None:
    result = e2e.run(
        "jot export --format json --tag home | JOT_HOME=~/copy jot import -",
        comment="from one home to another",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("imported 2 notes, 0 already here\n")


@pytest.mark.usefixtures("notes")
def test_a_file_with_one_bad_line_imports_nothing(e2e: E2eSession) -> None:
    e2e.run(
        """echo '{"text": "fine", "day": "2026-01-01"}' > mixed.jsonl
        echo '{"day": "2026-01-02"}' >> mixed.jsonl""",
        comment="the second line has no text",
    )
    result = e2e.run("jot import mixed.jsonl", comment="all or nothing")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_equal("jot: mixed.jsonl, line 2 is not a note: it has no text\n")
    expect(e2e.run("jot list", comment="as before").stdout).to_have_line_count(4)


def test_a_file_that_does_not_exist_is_named(e2e: E2eSession) -> None:
    result = e2e.run("jot import nothing.jsonl", comment="no such file")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_equal("jot: nothing.jsonl: No such file or directory\n")


def test_a_place_that_cannot_be_written_is_named(e2e: E2eSession) -> None:
    result = e2e.run("jot export --output nowhere/notes.jsonl", comment="no such directory")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_match(r"^jot: .*nowhere/notes\.jsonl: No such file or directory$")


@pytest.mark.usefixtures("notes")
def test_export_keeps_a_link_and_writes_to_where_it_leads(e2e: E2eSession) -> None:
    e2e.run("mkdir safe && ln -s safe/real.jsonl backup.jsonl", comment="a link")
    result = e2e.run("jot export --output backup.jsonl", comment="through the link")
    expect(result).to_succeed()
    kept = e2e.run("readlink backup.jsonl && wc -l < safe/real.jsonl", comment="still a link")
    expect(kept.stdout).to_match(r"^safe/real\.jsonl\n *4\n")


def test_a_format_that_does_not_exist_is_refused(e2e: E2eSession) -> None:
    result = e2e.run("jot export --format pdf", comment="not one of the formats")
    expect(result).to_have_exit_code(2)
    expect(result.stdout).to_be_empty()
    expect(result.stderr).to_contain("invalid choice: 'pdf'")
