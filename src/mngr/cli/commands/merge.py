"""`mngr merge`: merge the commits of agents into the current branch."""

from __future__ import annotations

import os
import sys

from mngr.api import Mngr
from mngr.cli.app import output, targets
from mngr.cli.app.output import many, rows, warn
from mngr.errors import MngrError, PartialFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.api import Agent, Merged, Place
    from mngr.cli.app.parser import Namespace, Parser
    from mngr.model.struct import Json

DESCRIPTION = """\
Merge the commits of agents into the branch that is checked out in the current directory, one \
agent after the other, with `git merge`. Uncommitted changes of an agent are listed and not \
merged.

After a conflict, resolve it and run `git commit`, or run `git merge --abort`; the remaining \
agents are not merged. With --check, CMD runs through sh at the top of the repository after each \
merge; if it fails, that merge is undone and the next agent is merged. Your own uncommitted \
changes are kept."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    targets.add_targets(parser, "agents to merge, in this order")
    add = parser.add_argument
    add("--squash", action="store_true", help="make one commit per agent")
    help = "shell command to run after each merge; undo the merge if it fails"
    add("--check", metavar="CMD", help=help)
    parser.add_dry_run()
    parser.examples = [
        ("merge an agent's commits", "mngr merge foo"),
        ("merge them as one commit", "mngr merge foo --squash"),
        ("merge only if the tests pass", "mngr merge foo bar baz --check 'make test'"),
        ("show what would be merged", "mngr merge foo --dry-run"),
    ]
    parser.see_also = ["mngr-diff", "mngr-pull"]


def run(args: Namespace) -> int:
    from mngr.api import Conflict

    api = Mngr(args.config, args.registry)
    chosen = targets.all_agents(args, api)
    here = api.merge_place(os.getcwd())
    failures: list[MngrError] = []
    done: list[Merged] = []
    for at, agent in enumerate(chosen):
        try:
            done.append(_merged(args, api, here, agent))
        except Conflict as error:
            failures.append(error)
            warn(str(error))
            _name_others(chosen[at + 1 :])
            break
        except MngrError as error:
            failures.append(error)
            warn(f"{agent.name}: {error}" if len(chosen) > 1 else str(error))
    if args.format != "human":
        errors: list[Json] = [{"message": str(error)} for error in failures]
        table = [each.to_json() for each in done]
        rows(args, table, [], "agents", errors if args.format == "json" else ())
    return _code(done, failures)


def _merged(args: Namespace, api: Mngr, here: Place, agent: Agent) -> Merged:
    from mngr.api import summary

    tip = api.merge_tip(agent, here)
    if behind := api.left_behind(agent):
        warn(f"{agent.name} has uncommitted changes that are not merged: {summary(behind)}")
    check = (lambda folder: _check(args.check, folder)) if args.check else None
    result = api.merge(agent, here, tip, squash=args.squash, check=check, dry_run=args.dry_run)
    if args.dry_run:
        _told(args, agent.id, f"Would merge {many(result.commits, 'commit')} of {agent.name}.")
    else:
        _tell(args, result)
    return result


def _tell(args: Namespace, result: Merged) -> None:
    if result.undone:
        warn(f"{result.name}: {result.undone}; the merge was undone")
    elif result.before == result.after:
        _told(args, result.id, f"Merged 0 commits of {result.name}: nothing to merge.")
    else:
        made = f"Merged {many(result.commits, 'commit')} of {result.name} ({result.after[:12]})."
        _told(args, result.id, made)


def _told(args: Namespace, agent_id: str, human: str) -> None:
    """Print each result at once; JSON follows at the end."""
    if args.format == "human":
        output.print_result(args, {"id": agent_id}, human)


def _check(command: str, folder: str) -> int:
    """Run the check. Its output goes to stderr, because stdout is for results."""
    from mngr.api import call

    sys.stderr.flush()
    there = 'cd "$1" && exec sh -c "$2" </dev/null >&2'
    return call(["sh", "-c", there, "mngr", folder, command])


def _name_others(others: Sequence[Agent]) -> None:
    if others:
        warn(f"not merged after the conflict: {', '.join(agent.name for agent in others)}")


def _code(done: Sequence[Merged], failures: Sequence[MngrError]) -> int:
    bad = [each for each in done if each.undone]
    if not failures and not bad:
        return 0
    if len(done) > len(bad):
        return PartialFailure.exit_code
    return failures[0].exit_code if len(failures) == 1 and not bad else 1
