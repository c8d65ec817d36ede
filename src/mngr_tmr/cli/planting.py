"""Create the demo's jot: a new git repository with known defects, from examples/jot.

The defects and the tests that fail are returned and are not in the repository, so agents
have to find them. The same jot gives the same commit everywhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

# In an installed package, and in a checkout.
PLACES = (Path(__file__).parents[1] / "example/jot", Path(__file__).parents[3] / "examples/jot")
JOT = next((place for place in PLACES if place.is_dir()), PLACES[0])
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache", ".mngr-e2e", ".venv")
GETTING_STARTED = "tests/test_getting_started.py"
LOOKING = "tests/test_looking_at_notes.py"
FINDING = "tests/test_finding_notes.py"
CHANGING = "tests/test_changing_notes.py"
MOVING = "tests/test_moving_notes.py"


class CannotPlant(Exception):
    """An edit does not fit jot, or the directory is not empty."""


@dataclass(frozen=True)
class Replacement:
    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Defect:
    name: str
    kind: str
    """bug, stale test, weak test or blocked test"""
    what: str
    edits: tuple[Replacement, ...]
    tests: tuple[str, ...]
    """The tests that it breaks, or the weak test itself."""
    needs: str = ""
    """The program that a blocked test requires."""


BUGS = (
    Defect(
        "since-leaves-out-its-day",
        "bug",
        "wrong comparison: `list --since DAY` leaves out the notes of that very day",
        (Replacement("src/jot/notes.py", "if note.day >= since]", "if note.day > since]"),),
        (
            f"{LOOKING}::test_list_by_day_includes_both_days",
            f"{LOOKING}::test_list_since_a_day_includes_that_day",
        ),
    ),
    Defect(
        "last-shows-one-too-few",
        "bug",
        "off by one: `list --last N` shows N - 1 notes",
        (
            Replacement(
                "src/jot/notes.py",
                "ordered[max(len(ordered) - count, 0) :]",
                "ordered[max(len(ordered) - count + 1, 0) :]",
            ),
        ),
        (
            f"{LOOKING}::test_list_last_shows_only_the_newest",
            f"{LOOKING}::test_list_last_goes_by_day_not_by_number",
        ),
    ),
    Defect(
        "csv-is-never-returned",
        "bug",
        "missing return: `export --format csv` ends with a traceback",
        (Replacement("src/jot/formats.py", "    return table.getvalue()\n", ""),),
        (
            f"{MOVING}::test_export_makes_a_spreadsheet",
            f"{MOVING}::test_text_with_commas_and_lines_survives_the_spreadsheet",
        ),
    ),
)

STALE = (
    Defect(
        "plumber-became-electrician",
        "stale test",
        "the test expects text that differs from its block",
        (
            Replacement(
                GETTING_STARTED,
                'to_end_with(" call the plumber about the tap\\n")',
                'to_end_with(" call the electrician about the lamp\\n")',
            ),
        ),
        (f"{GETTING_STARTED}::test_words_without_quotes_become_one_note",),
    ),
)

WEAK = (
    Defect(
        "list-by-tag-only-succeeds",
        "weak test",
        "the test checks only the exit status",
        (
            Replacement(
                LOOKING,
                """\
    expect(result.stdout).to_have_line_count(2)
    expect(result.stdout).to_contain("call the plumber")
    expect(result.stdout).to_contain("prune the apple tree")
""",
                "",
            ),
        ),
        (f"{LOOKING}::test_list_by_tag_leaves_out_the_rest",),
    ),
    Defect(
        "search-count-contains-nothing",
        "weak test",
        "the output is compared with the empty text, which everything contains",
        (Replacement(FINDING, 'to_equal("2\\n")', 'to_contain("")'),),
        (f"{FINDING}::test_search_any_counts_notes_with_one_of_the_words",),
    ),
    Defect(
        "tag-counts-may-fail",
        "weak test",
        "the test accepts the exit statuses 0 and 1",
        (
            Replacement(
                CHANGING,
                """\
    expect(result).to_succeed()
    expect(result.stdout).to_equal("  2 home\\n  1 garden\\n  1 shop\\n")
""",
                "    assert result.exit_code in (0, 1)\n",
            ),
        ),
        (f"{CHANGING}::test_tag_alone_counts_all_tags",),
    ),
    Defect(
        "dry-run-only-has-no-traceback",
        "weak test",
        "the test detects only a crash",
        (
            Replacement(
                MOVING,
                """\
    expect(result.stdout).to_equal("would import 1 notes, 3 already here\\n")
    expect(e2e.run("jot list", comment="still three").stdout).to_have_line_count(3)
""",
                '    expect(result.stderr).not_to_contain("Traceback")\n',
            ),
        ),
        (f"{MOVING}::test_import_can_be_tried_first",),
    ),
)

PAGE = "jot export --format markdown | head -n 5"
WEB_PAGE = "jot export --format markdown | lowdown"
BLOCKED = (
    Defect(
        "page-needs-lowdown",
        "blocked test",
        "the block and its test pipe a page into a program that is not installed",
        (
            Replacement(
                "tutorial.sh",
                f"# read them as a page\n{PAGE}\n",
                f"# read them as a web page\n{WEB_PAGE}\n",
            ),
            Replacement(
                MOVING,
                f"    # read them as a page\n    {PAGE}\n",
                f"    # read them as a web page\n    {WEB_PAGE}\n",
            ),
            Replacement(
                MOVING,
                f'"{PAGE}", comment="read them as a page"',
                f'"{WEB_PAGE}", comment="read them as a web page"',
            ),
            Replacement(
                MOVING,
                'to_equal("# Notes\\n\\n## 2026-02-28\\n\\n- buy oat milk `#shop`\\n")',
                'to_contain("<li>buy oat milk <code>#shop</code></li>")',
            ),
        ),
        (f"{MOVING}::test_export_makes_a_page",),
        needs="lowdown",
    ),
)

DEFECTS = (*BUGS, *STALE, *WEAK, *BLOCKED)


def planted(files: Mapping[str, str], defects: Iterable[Defect]) -> dict[str, str]:
    """Return the changed files. The old text of every edit must occur exactly once."""
    changed: dict[str, str] = {}
    for defect in defects:
        for edit in defect.edits:
            text = changed.get(edit.file, files.get(edit.file, ""))
            if (found := text.count(edit.old)) != 1:
                raise CannotPlant(f"{defect.name}: {edit.file} has {edit.old!r} {found} times")
            changed[edit.file] = text.replace(edit.old, edit.new)
    return changed


def read(root: Path, defects: Iterable[Defect]) -> dict[str, str]:
    names = {edit.file for defect in defects for edit in defect.edits}
    try:
        return {name: (root / name).read_text(encoding="utf-8") for name in names}
    except FileNotFoundError as error:
        raise CannotPlant(f"there is no {error.filename}") from None


def commit(root: Path) -> str:
    """Commit everything; the hash depends only on the files. Return it."""
    who = {"NAME": "jot", "EMAIL": "jot@example.com", "DATE": "2026-01-01T12:00:00Z"}
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {f"GIT_{role}_{key}": who[key] for role in ("AUTHOR", "COMMITTER") for key in who}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*args: str) -> str:
        done = subprocess.run(["git", *args], cwd=root, env=env, check=True, capture_output=True)
        return done.stdout.decode().strip()

    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message=jot: short notes from the command line")
    return git("rev-parse", "HEAD")


def manifest(head: str, defects: Iterable[Defect]) -> dict[str, object]:
    failing = (test for defect in defects if defect.kind != "weak test" for test in defect.tests)
    return {
        "schema": 1,
        "commit": head,
        "failing": sorted(failing),
        "defects": [
            {
                "name": defect.name,
                "kind": defect.kind,
                "what": defect.what,
                "files": sorted({edit.file for edit in defect.edits}),
                "tests": list(defect.tests),
                "needs": defect.needs or None,
            }
            for defect in defects
        ],
    }


def plant(out: Path) -> dict[str, object]:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CannotPlant(f"{out} is not empty")
    changed = planted(read(JOT, DEFECTS), DEFECTS)
    shutil.copytree(JOT, out, ignore=LEFT_OUT, dirs_exist_ok=True)
    for name, text in changed.items():
        (out / name).write_text(text, encoding="utf-8")
    return manifest(commit(out), DEFECTS)
