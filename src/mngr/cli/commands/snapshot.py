"""`mngr snapshot`: save and restore the state of an agent's work directory."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.cli.app import targets
from mngr.cli.app.options import count
from mngr.cli.app.output import many, one, print_result, rows, say, warn
from mngr.errors import MngrError, NotFound, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.api import Agent, Saved, Snapshot
    from mngr.cli.app.output import Column, Row
    from mngr.cli.app.parser import Namespace, Parser

COLUMNS: list[Column] = ["agent", "number", "name", "time", "note", ("short", "COMMIT")]

DESCRIPTION = """\
A snapshot is a copy of an agent's work directory: committed, changed, deleted and untracked \
files. It is stored as a git commit outside all branches, so taking one affects neither the agent \
nor its index. The agent need not be stopped. Ignored files are not included; their number is \
printed.

`create` takes a snapshot of each TARGET. `list` lists the snapshots of one agent or of all \
agents, newest first. `restore` replaces the files of the work directory with those of a snapshot; \
the branch, HEAD and the index do not change. Files that would be lost are saved as another \
snapshot first. `destroy` deletes snapshots; git keeps their commits for about two weeks.

SNAPSHOT is a number or a name. `mngr create --from AGENT/SNAPSHOT` creates an agent from a \
snapshot."""

NOTES = """\
Files are stored as git commits them: line endings and filters of .gitattributes apply; \
permissions other than the executable bit, and empty directories, are not stored. A submodule is \
stored as its commit. A work directory that contains another git repository is refused."""


SCREENS = {
    "create": ("TARGET...", "take a snapshot of each agent", ["--name", "--stdin", "--dry-run"]),
    "list": ("[TARGET]", "list snapshots, newest first", ["--limit"]),
    "restore": ("TARGET SNAPSHOT", "restore the files of a snapshot", ["--dry-run"]),
    "destroy": ("TARGET SNAPSHOT...", "delete snapshots", ["--all-snapshots", "--dry-run"]),
}
"""What `-h` shows about each verb: its arguments, what it does, and its options."""


def configure(parser: Parser) -> None:
    parser.description, parser.notes, parser.verbs = DESCRIPTION, NOTES, SCREENS
    add = parser.add_argument
    add("verb", choices=tuple(_VERBS), metavar="VERB", help="create, list, restore or destroy")
    help, word = "the agent, and the number or name of a snapshot", "TARGET [SNAPSHOT]"
    targets.add_target(parser, help, nargs="*", metavar=word, kind="snapshot")
    targets.add_stdin(parser)
    add("--name", default="", help="`create`: name of the snapshot")
    help = "`list`: show only the newest N"
    add("--limit", type=lambda text: count(text, 1), metavar="N", help=help)
    help = "`destroy`: delete all snapshots of the agent"
    add("--all-snapshots", action="store_true", help=help)
    parser.add_dry_run()
    parser.examples = [
        ("take a snapshot", "mngr snapshot create foo --name before-refactoring"),
        ("list snapshots", "mngr snapshot list foo"),
        ("restore a snapshot", "mngr snapshot restore foo before-refactoring"),
        ("create an agent from a snapshot", "mngr create bar --from foo/before-refactoring"),
        ("snapshot every running agent", "mngr list --running --ids | mngr snapshot create -"),
        ("delete a snapshot", "mngr snapshot destroy foo 3"),
    ]
    parser.see_also = ["mngr-diff", "mngr-clone", "mngr-restore"]


def run(args: Namespace) -> int:
    for option, verb in (("name", "create"), ("limit", "list"), ("all_snapshots", "destroy")):
        if getattr(args, option) and args.verb != verb:
            raise UsageError(f"--{option.replace('_', '-')} is an option of `mngr snapshot {verb}`")
    return _VERBS[args.verb](args, Mngr(args.config, args.registry))


def _create(args: Namespace, api: Mngr) -> int:
    from mngr.api import check_name

    check_name(args.name)
    chosen = targets.agents(args, api, look=False)
    if args.dry_run:
        return targets.each(args, chosen, api.preview_snapshot, _would_create)
    return targets.each(args, chosen, lambda agent: api.snapshot(agent, args.name), _created)


def _would_create(agent: Agent, tree: str) -> tuple[Row, str]:
    row: Row = {"agent": agent.name, "agent_id": agent.id, "tree": tree}
    return row, f"Would take a snapshot of {agent.name}."


def _created(agent: Agent, saved: Saved) -> tuple[Row, str]:
    made, left = saved.snapshot, list(saved.ignored)
    row: Row = {**made.to_json(), "ignored": [*left]}
    note = f"Snapshot {made.label} ({made.commit[:12]})"
    if left:
        from mngr.api import summary

        note += f", without {many(len(left), 'ignored path')}: {summary(left, 3)}"
    return row, f"{note}."


def _list(args: Namespace, api: Mngr) -> int:
    args.failures = []
    chosen = targets.agents(args, api) if args.target or args.stdin else api.list()
    readable = [agent for agent in chosen if agent.evidence.record is not None]
    found = [each for agent in readable for each in api.snapshots(agent)]
    found.sort(key=lambda each: (each.time, each.number), reverse=True)
    table = [_row(each) for each in found[: args.limit]]
    fields = "agent agent_id number name note time commit short parent branch ref".split()
    errors, empty = targets.errors(args), "No snapshots found"
    rows(args, table, COLUMNS, "snapshots", errors, empty, fields)
    return targets.warn_failures(args)


def _row(each: Snapshot) -> Row:
    row = each.to_json()
    return {**row, "time": f"{str(row['time'])[:19]}Z", "short": each.commit[:12]}


def _words(args: Namespace, api: Mngr) -> tuple[Agent, list[str]]:
    """Return the agent TARGET and the words after it."""
    if args.stdin:
        raise UsageError(
            f"`mngr snapshot {args.verb}` takes one agent", "give the name of one agent"
        )
    if not args.target:
        raise UsageError("no agent given", "see `mngr list`")
    return targets.agents(args, api, args.target[:1])[0], args.target[1:]


def _restore(args: Namespace, api: Mngr) -> int:
    agent, names = _words(args, api)
    if len(names) != 1:
        problem = "name the snapshot to restore" if not names else f"unexpected {names[1]!r}"
        raise UsageError(problem, f"see `mngr snapshot list {agent.name}`")
    wanted = api.find_snapshot(agent, names[0])
    if args.dry_run:
        one(args, wanted.to_json(), f"Would restore {wanted.label} in {agent.record.work_dir}")
        return 0
    done = api.restore_snapshot(agent, wanted)
    if done.saved is not None:
        say(args, f"The current state was saved as {done.saved.label}.")
    for remark in done.remarks:
        say(args, f"Note: {remark}; check it out yourself.")
    note = f"Restored {wanted.label}: {many(done.files, 'file')} changed."
    note = note if done.files else "No file differs from the snapshot."
    saved = done.saved.to_json() if done.saved else None
    print_result(args, {**wanted.to_json(), "files_changed": done.files, "saved": saved}, note)
    return 0


def _destroy(args: Namespace, api: Mngr) -> int:
    agent, names = _words(args, api)
    if bool(names) == args.all_snapshots:
        raise UsageError("name the snapshots to destroy, or use --all-snapshots")
    found, failures = _meant(api, agent, names)
    done = []
    for each in found:
        if not args.dry_run:
            api.destroy_snapshot(each)
        done.append(each.to_json())
        if args.format == "human":
            word = "Would destroy" if args.dry_run else "Destroyed"
            print_result(args, each.to_json(), f"{word} {each.label} (commit {each.commit}).")
    if args.format != "human":
        rows(args, done, [], "snapshots")
    for error in failures:
        warn(str(error))
    if args.all_snapshots and not found:
        say(args, f"{agent.name} has no snapshots.")
    return (3 if done else 4) if failures else 0


def _meant(api: Mngr, agent: Agent, names: list[str]) -> tuple[list[Snapshot], list[MngrError]]:
    """Return the named snapshots; all names are resolved before anything is deleted."""
    if not names:
        return list(api.snapshots(agent)), []
    found: dict[str, Snapshot] = {}
    failures: list[MngrError] = []
    for name in names:
        try:
            each = api.find_snapshot(agent, name)
            found[each.ref] = each
        except NotFound as error:
            failures.append(error)
    if not found and len(failures) == 1:
        raise failures[0]
    return list(found.values()), failures


_VERBS = {"create": _create, "list": _list, "restore": _restore, "destroy": _destroy}
