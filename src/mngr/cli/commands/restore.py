"""`mngr restore`: list and restore destroyed agents."""

from __future__ import annotations

import time

from mngr.api import Mngr
from mngr.cli.app.output import confirm, print_result, rows, say, warn
from mngr.cli.app.targets import add_target, concluded, footnotes
from mngr.errors import MngrError, NotFound, Refused, Taken, UsageError
from mngr.model.durations import parse_duration
from mngr.model.events import iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.api import Returned, Trashed
    from mngr.cli.app.output import Column, Row
    from mngr.cli.app.parser import Namespace, Parser

COLUMNS: list[Column] = ["name", "id", "destroyed", "branch", "work_dir"]

DESCRIPTION = """\
Restore destroyed agents: their work directories with all files, branches and records. A \
restored agent is not running; `mngr start` starts it. If several destroyed agents have the same \
name, the most recently destroyed one is restored; use an id to choose another one. Without NAME, \
list the trash.

With --purge, delete agents from the trash for good: NAME, or those selected by --older-than."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    add = parser.add_argument
    kind = "mngr.cli.app.complete:trash"
    add_target(parser, "names or ids of destroyed agents", dest="name", nargs="*", kind=kind)
    add("--list", action="store_true", help="list the trash")
    add("--as", dest="new_name", default="", metavar="NEW_NAME", help="restore under this name")
    help = "select agents destroyed at least this long ago"
    add("--older-than", type=parse_duration, metavar="DURATION", help=help)
    add("--purge", action="store_true", help="delete for good; this cannot be undone")
    add("-f", "--force", action="store_true", help="do not ask before purging")
    parser.add_dry_run()
    parser.add_yes()
    parser.examples = [
        ("list destroyed agents", "mngr restore"),
        ("restore an agent", "mngr restore foo"),
        ("restore several agents", "mngr restore foo bar"),
        ("restore it under another name", "mngr restore foo --as foo-2"),
        ("delete agents destroyed over 30 days ago", "mngr restore --purge --older-than 30d"),
    ]
    parser.see_also = ["mngr-destroy", "mngr-start", "mngr-gc"]


def run(args: Namespace) -> int:
    api = Mngr(args.config, args.registry)
    if args.purge:
        return _purge(args, api)
    if args.list or not args.name:
        if args.new_name:
            raise UsageError("--as requires the NAME to restore")
        return _list(args, api)
    if args.older_than is not None:
        raise UsageError("--older-than requires --list or --purge")
    if args.new_name and len(args.name) > 1:
        raise UsageError("--as requires a single NAME")
    try:
        return _each(args, api)
    finally:
        footnotes(api)  # the agent may be on a host that did not answer


def _matching(args: Namespace, api: Mngr) -> list[Trashed]:
    found = api.trashed()
    footnotes(api)
    if args.name:
        found = [each for each in found if {each.note.name, each.note.id} & {*args.name}]
    if args.older_than is not None:
        found = [each for each in found if time.time() - each.time >= args.older_than]
    return list(found)


def _list(args: Namespace, api: Mngr) -> int:
    table = [_row(each) for each in _matching(args, api)]
    fields = [str(column) for column in COLUMNS]
    rows(args, table, COLUMNS, "trash", empty="The trash is empty", fields=fields)
    return 0


def _row(each: Trashed) -> Row:
    note = each.note
    return {
        "name": note.name,
        "id": note.id,
        "destroyed": iso(each.time)[:19] + "Z",
        "branch": note.branch,
        "work_dir": note.work_dir,
        "host": each.host.ref.name,
    }


def _each(args: Namespace, api: Mngr) -> int:
    if len(args.name) == 1:
        print_result(args, *_restore(args, api, args.name[0]))
        return 0
    done: list[Row] = []
    failures: list[MngrError] = []
    for word in dict.fromkeys(args.name):
        try:
            row, told = _restore(args, api, word)
        except MngrError as error:
            warn(f"{word}: {error}")
            failures.append(error)
            continue
        done.append(row)
        if args.format != "json":
            print_result(args, row, told)
    return concluded(args, done, failures, "agents")


def _restore(args: Namespace, api: Mngr, word: str) -> tuple[Row, str]:
    """Restore one agent; return the row and the text to print."""
    trashed = api.find_trashed(word)
    if args.dry_run:
        return _row(trashed), f"Would restore {args.new_name or trashed.note.name}."
    try:
        restored = api.restore(trashed.note.id, args.new_name)
    except Taken as error:
        raise Taken(error.message, f"use `mngr restore {word} --as NEW_NAME`") from None
    for remark in restored.remarks:
        warn(f"{restored.agent.name}: {remark}")
    return restored.agent.to_json(), _told(restored)


def _told(restored: Returned) -> str:
    agent = restored.agent
    place = agent.record.work_dir
    if not restored.work_dir:
        return f"Restored {agent.name} without its work directory {place}; it is {agent.state}."
    branch = f" on branch {restored.branch}" if restored.branch else ""
    return f"Restored {agent.name}{branch}; it is {agent.state}."


def _purge(args: Namespace, api: Mngr) -> int:
    if not args.name and args.older_than is None:
        raise UsageError(
            "--purge requires a NAME or --older-than", "--older-than 0s deletes everything"
        )
    found = _matching(args, api)
    for word in args.name if args.older_than is None or not found else ():
        if not any(word in (each.note.name, each.note.id) for each in found):
            raise NotFound(f"no agent {word!r} in the trash", "see `mngr restore --list`")
    if found and not args.dry_run and not args.force:
        names = ", ".join(each.note.name for each in found)
        reason = f"{names} would be deleted for good"
        otherwise = "use --force to skip the question"
        if not confirm(args, "Delete for good?", reason=reason, otherwise=otherwise):
            raise Refused("nothing was deleted")
    return _purged(args, api, found)


def _purged(args: Namespace, api: Mngr, found: Sequence[Trashed]) -> int:
    done: list[Row] = []
    failures: list[MngrError] = []
    word = "Would remove" if args.dry_run else "Removed"
    for each in found:
        try:
            if not args.dry_run:
                api.purge(each)
        except (MngrError, OSError) as error:
            warn(f"{each.note.name}: {error}")
            failures.append(MngrError(str(error)))
            continue
        done.append(_row(each))
        if args.format != "json":
            print_result(args, done[-1], f"{word} {each.note.name} ({each.note.id}) for good.")
    if not found:
        say(args, "Nothing to remove.")
    return concluded(args, done, failures, "trash")
