"""`mngr tutorial`: is every block of the tutorial a test, and every test's block in it?"""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from mngr.cli.output import one, rows, say
from mngr.cli.parser import Parser
from mngr.errors import UsageError
from mngr_e2e.matchers import plural
from mngr_tutorial import scaffolding
from mngr_tutorial.checking import Report, check
from mngr_tutorial.project import Project, find_project

if TYPE_CHECKING:
    from mngr.cli.output import Column, Row

DESCRIPTION = """\
A tutorial is a shell script in blocks: runs of lines with an empty line between them. Each block \
that holds a command is cited, word for word, by at least one end-to-end test, in a call of \
write_tutorial_block or in the docstring after `Tutorial block:`.

`check` compares both directions: every block is cited, every citation is in the tutorial, no two \
blocks are the same, and the citing test ran the block's commands when it last ran. It says where \
each difference stands, and exits with 1 if there is one.

`scaffold` adds a plain test for every block that has none: it cites the block, runs it and \
expects success. A test goes to the file that cites most blocks of its section, else to a new \
file named after the section."""

NOTES = """\
The project is the nearest folder upwards with a pyproject.toml or a tutorial.sh; the tutorial is \
the one that `tutorial` in [tool.mngr_e2e] names, else tutorial.sh. Citations are looked for in \
tests/e2e, else in tests. What tests ran is read from .mngr-e2e, of each test the newest result; \
one from before the test was changed does not count. A section begins with a comment by itself: \
`## Title`, `# === Title ===` or `# TITLE`."""

FIELDS = ["kind", "path", "line", "message", "test"]


def configure(parser: Parser) -> None:
    parser.description, parser.notes = DESCRIPTION, NOTES
    add = parser.add_argument
    add("verb", choices=tuple(_VERBS), metavar="VERB", help="check or scaffold")
    help = "look for citations here instead; may be repeated"
    parser.completes(add("--tests", action="append", default=[], metavar="PATH", help=help), "file")
    help = "`check`: compare only the texts, not what tests ran"
    add("--no-results", action="store_true", help=help)
    parser.add_dry_run()
    parser.examples = [
        ("is every block tested?", "mngr tutorial check"),
        ("the same, before any test has run", "mngr tutorial check --no-results"),
        ("write the tests that are missing", "mngr tutorial scaffold"),
    ]
    parser.exit_status = [("1", "`check` found a difference")]


def run(args: argparse.Namespace) -> int:
    if args.no_results and args.verb != "check":
        raise UsageError("--no-results goes with `mngr tutorial check`")
    return _VERBS[args.verb](args, find_project(Path(os.getcwd()), args.tests))


def _check(args: argparse.Namespace, project: Project) -> int:
    report = check(project, evidence=not args.no_results)
    if args.format == "human":
        for problem in report.problems:
            one(args, {}, str(problem))
        say(args, _summary(report))
    elif args.format == "json":
        one(args, _as_json(report), "")
    else:
        rows(args, [asdict(problem) for problem in report.problems], [], fields=FIELDS)
    return 1 if report.problems else 0


def _as_json(report: Report) -> Row:
    return {
        "blocks": len(report.blocks),
        "citations": len(report.citations),
        "problems": [asdict(problem) for problem in report.problems],
    }


def _summary(report: Report) -> str:
    counted = f"{plural(len(report.blocks), 'block')}, {plural(len(report.citations), 'citation')}"
    found = plural(len(report.problems), "problem") if report.problems else "no problems"
    hint = "; `mngr tutorial scaffold` writes the missing tests" if report.uncovered else ""
    return f"{counted}: {found}{hint}."


def _scaffold(args: argparse.Namespace, project: Project) -> int:
    tests = scaffolding.plan(project, check(project, evidence=False))
    if not args.dry_run:
        scaffolding.write(tests)
    found: list[Row] = [
        {"path": project.named(test.path), "test": test.name, "line": test.block.line}
        for test in tests
    ]
    columns: list[Column] = ["path", "test", ("line", "TUTORIAL LINE")]
    rows(args, found, columns, empty="Every block has a test", fields=["path", "test", "line"])
    if tests:
        word = "Would add" if args.dry_run else "Added"
        say(args, f"{word} {plural(len(tests), 'test')}.")
    return 0


_VERBS = {"check": _check, "scaffold": _scaffold}
