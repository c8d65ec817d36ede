"""The defects of examples/jot-defects.patch, and the tests that fail because of them."""

from __future__ import annotations

from dataclasses import dataclass

GETTING_STARTED = "tests/test_getting_started.py"
LOOKING = "tests/test_looking_at_notes.py"
FINDING = "tests/test_finding_notes.py"
CHANGING = "tests/test_changing_notes.py"
MOVING = "tests/test_moving_notes.py"


@dataclass(frozen=True)
class Defect:
    name: str
    file: str
    tests: tuple[str, ...]
    """The tests that it breaks, or the weak test itself."""
    needs: str = ""
    """The program that a blocked test requires."""


BUGS = (
    Defect(  # `list --since DAY` leaves out the notes of that very day
        "since-leaves-out-its-day",
        "src/jot/notes.py",
        (
            f"{LOOKING}::test_list_by_day_includes_both_days",
            f"{LOOKING}::test_list_since_a_day_includes_that_day",
        ),
    ),
    Defect(  # `list --last N` shows N - 1 notes
        "last-shows-one-too-few",
        "src/jot/notes.py",
        (
            f"{LOOKING}::test_list_last_shows_only_the_newest",
            f"{LOOKING}::test_list_last_goes_by_day_not_by_number",
        ),
    ),
    Defect(  # `export --format csv` ends with a traceback
        "csv-is-never-returned",
        "src/jot/formats.py",
        (
            f"{MOVING}::test_export_makes_a_spreadsheet",
            f"{MOVING}::test_text_with_commas_and_lines_survives_the_spreadsheet",
        ),
    ),
)
STALE = (
    Defect(  # the test expects text that differs from its block
        "plumber-became-electrician",
        GETTING_STARTED,
        (f"{GETTING_STARTED}::test_words_without_quotes_become_one_note",),
    ),
)
WEAK = (
    Defect(  # the test checks only the exit status
        "list-by-tag-only-succeeds", LOOKING, (f"{LOOKING}::test_list_by_tag_leaves_out_the_rest",)
    ),
    Defect(  # the output is compared with the empty text, which everything contains
        "search-count-contains-nothing",
        FINDING,
        (f"{FINDING}::test_search_any_counts_notes_with_one_of_the_words",),
    ),
    Defect(  # the test accepts the exit statuses 0 and 1
        "tag-counts-may-fail", CHANGING, (f"{CHANGING}::test_tag_alone_counts_all_tags",)
    ),
    Defect(  # the test detects only a crash
        "dry-run-only-has-no-traceback", MOVING, (f"{MOVING}::test_import_can_be_tried_first",)
    ),
)
BLOCKED = (
    Defect(  # the block and its test pipe a page into a program that is not installed
        "page-needs-lowdown", MOVING, (f"{MOVING}::test_export_makes_a_page",), needs="lowdown"
    ),
)
DEFECTS = (*BUGS, *STALE, *WEAK, *BLOCKED)
FAILING = sorted(test for defect in (*BUGS, *STALE, *BLOCKED) for test in defect.tests)
