"""`mngr push`: copy commits or files from this machine to an agent's work directory."""

from __future__ import annotations

import os

from mngr.cli.app import targets
from mngr.cli.app.output import many, print_result
from mngr.cli.commands.pull import report_files
from mngr.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.api import Agent, Mngr, Pushed
    from mngr.cli.app.parser import Namespace, Parser
    from mngr.model.struct import Json

DESCRIPTION = """\
Without LOCAL, update the agent's branch and files to the current commit of the repository the \
agent was created from. Only fast-forwards are possible: if the agent has its own commits, merge \
them first (`mngr pull`, `git merge`). If uncommitted changes of the agent are in the way, nothing \
is updated.

With LOCAL, copy that file or directory into the work directory: to the same relative path, or to \
PATH, or into PATH if that is a directory. Existing files that differ are replaced only with \
--force."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    add = parser.add_argument
    targets.add_target(parser, "the agent")
    help = "file or directory to copy"
    add("local", nargs="?", metavar="LOCAL", help=help, completes="file")
    add("path", nargs="?", metavar="PATH", help="destination in the work directory")
    add("--rev", metavar="REV", help="push this commit instead of the current one")
    add("-f", "--force", action="store_true", help="replace files that differ")
    parser.add_dry_run()
    parser.examples = [
        ("push the current commit", "mngr push foo"),
        ("copy a file", "mngr push foo notes.md"),
        ("copy it to another path", "mngr push foo /tmp/data.csv fixtures/big.csv"),
    ]
    parser.see_also = ["mngr-pull", "mngr-merge"]


def run(args: Namespace) -> int:
    if args.local is not None and args.rev:
        raise UsageError("--rev applies to commits and cannot be used with LOCAL")
    api, agent = targets.one(args)
    if args.local is None:
        if args.force:
            raise UsageError("--force applies to files; commits are never replaced")
        pushed = api.push(agent, rev=args.rev or "HEAD", dry_run=args.dry_run)
        return _report(args, agent, pushed)
    local = os.path.expanduser(args.local)
    if not os.path.lexists(local):
        raise UsageError(f"{args.local!r} does not exist")
    path = destination(api, agent, local, args.path)
    copied = api.push_files(agent, local, path, force=args.force, dry_run=args.dry_run)
    return report_files(args, agent, copied)


def destination(api: Mngr, agent: Agent, local: str, path: str | None) -> str:
    """Return the destination as cp does; without PATH, the same relative path or the name."""
    from mngr.api import inside_work_dir

    name = os.path.basename(os.path.normpath(local))
    name = "" if name in (".", "..") else name
    if path is None:
        relative = os.path.relpath(os.path.abspath(local), os.getcwd())
        return name if relative == ".." or relative.startswith("../") else relative
    goal = inside_work_dir(path)
    if name and (path.endswith("/") or api.is_directory(agent, goal)):
        return os.path.join(goal, name)
    return goal


def _report(args: Namespace, agent: Agent, pushed: Pushed) -> int:
    row: dict[str, Json] = {
        "id": agent.id,
        "name": agent.name,
        "branch": pushed.branch or None,
        "commit": pushed.tip,
        "commits": pushed.commits,
    }
    where = pushed.branch or "its detached HEAD"
    if not pushed.commits:
        print_result(args, row, f"{agent.name} is up to date: {where} is at {pushed.tip[:12]}.")
        return 0
    done = f"{'Would push' if args.dry_run else 'Pushed'} {many(pushed.commits, 'commit')}"
    print_result(args, row, f"{done} to {agent.name}: {where} is now at {pushed.tip[:12]}.")
    return 0
