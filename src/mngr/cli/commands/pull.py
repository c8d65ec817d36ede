"""`mngr pull`: copy an agent's commits, or files of its work directory, to this machine."""

from __future__ import annotations

import os

from mngr.cli.app import targets
from mngr.cli.app.output import many, print_result, say, warn
from mngr.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.api import Agent, Copied, Pulled
    from mngr.cli.app.parser import Namespace, Parser
    from mngr.model.struct import Json

DESCRIPTION = """\
Without PATH, fetch the agent's branch into the repository the agent was created from, under the \
same name. Nothing is checked out and HEAD does not move. A branch that is checked out, or that \
has commits the agent does not have, is not updated; with --force the latter is replaced, and its \
old tip is kept as a ref. An agent in a worktree commits directly into that repository, so there \
is nothing to fetch.

With PATH, copy a file or directory from the work directory, committed or not: to the same \
relative path below the current directory, or to LOCAL, or into LOCAL if that is a directory. \
Existing files that differ are replaced only with --force.

The agent need not be stopped. If a pull is interrupted, run it again."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    add = parser.add_argument
    targets.add_target(parser, "the agent; AGENT:PATH is the same as AGENT PATH")
    add("path", nargs="?", metavar="PATH", help="path in the work directory; `.` is all of it")
    add("local", nargs="?", metavar="LOCAL", help="destination", completes="file")
    add("--branch", metavar="NAME", help="fetch into this branch")
    help = "replace a diverged branch, or files that differ"
    add("-f", "--force", action="store_true", help=help)
    parser.add_dry_run()
    parser.examples = [
        ("fetch the commits of an agent", "mngr pull foo"),
        ("fetch into another branch", "mngr pull foo --branch review/foo"),
        ("copy a file", "mngr pull foo src/parser.py"),
        ("copy a directory", "mngr pull foo reports /tmp/"),
    ]
    parser.see_also = ["mngr-push", "mngr-diff", "mngr-merge"]


def run(args: Namespace) -> int:
    words = [args.target, *(word for word in (args.path, args.local) if word is not None)]
    name, path, local = targets.with_path(words)
    if path is not None and args.branch:
        raise UsageError("--branch applies to commits and cannot be used with PATH")
    if args.branch == "":
        raise UsageError("--branch is empty", "leave it out to use the agent's branch")
    api, agent = targets.one(args, name)
    if path is None:
        found = api.pull(agent, branch=args.branch or "", force=args.force, dry_run=args.dry_run)
        return _report_commits(args, agent, found)
    goal = destination(path, local)
    copied = api.pull_files(agent, path, goal, force=args.force, dry_run=args.dry_run)
    return report_files(args, agent, copied)


def destination(path: str, local: str | None) -> str:
    """Return the destination as cp does; without LOCAL, the same relative path."""
    from mngr.api import inside_work_dir

    path = inside_work_dir(path)
    if local is None:
        return os.path.normpath(os.path.join(os.getcwd(), path))
    goal = os.path.abspath(local)
    if (os.path.isdir(goal) or local.endswith("/")) and path != ".":
        return os.path.join(goal, os.path.basename(path))
    return goal


def _report_commits(args: Namespace, agent: Agent, found: Pulled) -> int:
    row: dict[str, Json] = {
        "id": agent.id,
        "name": agent.name,
        "branch": found.branch,
        "commit": found.tip,
        "commits": found.commits,
        "repository": found.repository,
        "replaced": found.replaced or None,
        "uncommitted": found.uncommitted,
    }
    print_result(args, row, _told(args, agent, found))
    if found.uncommitted:
        files = many(found.uncommitted, "uncommitted file")
        say(args, f"Note: {agent.name} also has {files}; see `mngr diff {agent.name}`.")
    if found.elsewhere:
        warn(f"HEAD of {agent.name} is at {found.elsewhere}, which is not on {found.branch}")
    return 0


def _told(args: Namespace, agent: Agent, found: Pulled) -> str:
    tip = found.tip[:12]
    if found.there:
        return f"{found.branch} is up to date, at {tip}."
    done = "Would fetch" if args.dry_run else "Fetched"
    commits = many(found.commits, "commit")
    kept = f"; the old tip is kept as {found.replaced}" if found.replaced else ""
    return f"{done} {commits} of {agent.name} into {found.branch}, now at {tip}{kept}."


def report_files(args: Namespace, agent: Agent, found: Copied) -> int:
    for name in found.skipped:
        is_git = os.path.basename(name).lower() == ".git"
        kind = "a git repository" if is_git else "neither a file, a directory nor a link"
        warn(f"{name} is {kind}; skipped")
    row: dict[str, Json] = {
        "id": agent.id,
        "name": agent.name,
        "target": found.target,
        "files": list(found.files),
        "same": found.same,
    }
    files = many(len(found.files), "file")
    same = f" ({found.same} unchanged)" if found.same else ""
    verb = "Would copy" if args.dry_run else "Copied"
    print_result(args, row, f"{verb} {files} to {found.target}{same}.")
    return 0
