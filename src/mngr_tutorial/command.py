"""`mngr tutorial`: parse the options, run a verb and print its result."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from mngr.cli.app.output import Column, Row, one, rows, say
from mngr.cli.app.parser import Namespace, Parser
from mngr.cli.commands.limit_values import seconds
from mngr.errors import Refused, UsageError
from mngr_e2e.artifacts import write_whole
from mngr_e2e.expect.matchers import plural
from mngr_tutorial import installing, scaffolding
from mngr_tutorial.checking import CheckResult, check, show_problems
from mngr_tutorial.manual import DESCRIPTION, EXAMPLES, NOTES, SCREENS
from mngr_tutorial.project import Project, find_project


def configure(parser: Parser) -> None:
    parser.description, parser.notes = DESCRIPTION, NOTES
    parser.examples, parser.verbs = EXAMPLES, SCREENS
    parser.see_also = ["mngr-create", "mngr-merge", "mngr-diff"]
    add = parser.add_argument
    add("verb", choices=tuple(_VERBS), metavar="VERB", help=", ".join(_VERBS))
    help = "directory or file with the tests; repeatable"
    add("--tests", action="append", default=[], metavar="PATH", help=help, completes="file")
    help = "`check`: compare only the texts, not the commands that tests ran"
    add("--no-results", action="store_true", help=help)
    help = "`install-commands`: install for all projects, in your home directory"
    add("--user", action="store_true", help=help)
    help = "`install-commands`: replace an edited file"
    add("--force", action="store_true", help=help)
    _agents(parser)
    parser.add_dry_run()


def _agents(parser: Parser) -> None:
    add = parser.add_argument_group("Agents (fill and sync)").add_argument
    help = "agent type (default: as for `mngr create`)"
    add("--type", metavar="TYPE", help=help, completes="type")
    help = "argument for the agent's program; repeatable"
    add("--agent-arg", action="append", default=[], metavar="WORD", help=help)
    help = "time limit for an agent (default 30m)"
    add("--timeout", type=seconds, default=1800.0, metavar="DURATION", help=help)
    help = "time limit for each block, or for the tests in `sync` (default 60s; `sync`: 10m)"
    add("--block-timeout", type=seconds, default=0.0, metavar="DURATION", help=help)
    help = "process only the block at this line; repeatable"
    add("--line", type=_line, action="append", default=[], metavar="N", help=help)
    help = "`fill`: keep every proposal that passes, without asking"
    add("--yes-if-passing", action="store_true", help=help)


def _line(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise UsageError(f"{text[:40]!r} is not a line number")
    return int(text)


def run(args: Namespace) -> int:
    args.parser.require_own(args, args.verb)
    return _VERBS[args.verb](args, find_project(Path(os.getcwd()), args.tests))


def _check(args: Namespace, project: Project) -> int:
    report = check(project, evidence=not args.no_results)
    counts: Row = {"blocks": len(report.blocks), "citations": len(report.citations)}
    show_problems(args, report.problems, counts)
    if args.format == "human":
        say(args, _summary(report))
    return 1 if report.problems else 0


def _summary(report: CheckResult) -> str:
    counted = f"{plural(len(report.blocks), 'block')}, {plural(len(report.citations), 'citation')}"
    found = plural(len(report.problems), "problem") if report.problems else "no problems"
    hint = "; `mngr tutorial scaffold` writes the missing tests" if report.uncovered else ""
    return f"{counted}: {found}{hint}."


def _scaffold(args: Namespace, project: Project) -> int:
    tests = scaffolding.plan(project, check(project, evidence=False))
    if not args.dry_run:
        scaffolding.write(tests)
    found: list[Row] = [
        {"path": project.named(test.path), "test": test.name, "line": test.block.line}
        for test in tests
    ]
    columns: list[Column] = ["path", "test", ("line", "TUTORIAL LINE")]
    rows(
        args,
        found,
        columns,
        "tests",
        empty="Every block has a test",
        fields=["path", "test", "line"],
    )
    if tests:
        word = "Would add" if args.dry_run else "Added"
        say(args, f"{word} {plural(len(tests), 'test')}.")
    return 0


def _install(args: Namespace, project: Project) -> int:
    path = installing.place(project, user=args.user)
    text = installing.text(project, user=args.user)
    before = installing.state(path, text)
    if before == "changed" and not args.force:
        told = f"{path} was edited, or was not written by mngr"
        raise Refused(told, "use --force to replace it")
    needed = before != "current"
    if needed and not args.dry_run:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    row: Row = {"path": str(path), "before": before, "written": needed and not args.dry_run}
    word = ("Would write" if args.dry_run else "Wrote") if needed else "Up to date:"
    one(args, row, f"{word} {path}")
    return 0


def _fill(args: Namespace, project: Project) -> int:
    from mngr_tutorial import fill

    args.block_timeout = args.block_timeout or 60.0
    return fill.run(args, project)


def _sync(args: Namespace, project: Project) -> int:
    from mngr_tutorial import sync

    args.block_timeout = args.block_timeout or 600.0
    return sync.run(args, project)


_VERBS: dict[str, Callable[[Namespace, Project], int]] = {
    "check": _check,
    "scaffold": _scaffold,
    "fill": _fill,
    "sync": _sync,
    "install-commands": _install,
}
