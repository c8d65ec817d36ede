"""`mngr show`: show one agent in detail, on one screen."""

from __future__ import annotations

import sys

from mngr.api import Agent, Mngr
from mngr.cli.app import tables, targets
from mngr.cli.app.output import bold, clean, coloured, local_time, many, one
from mngr.cli.app.parser import Namespace, Parser
from mngr.cli.commands.list import program
from mngr.errors import MngrError
from mngr.model.durations import exactly, written
from mngr.model.events import iso
from mngr.model.quoting import join
from mngr.model.state import ENDED, State
from mngr.model.struct import Json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

Row = dict[str, Json]

DESCRIPTION = """\
Show one agent: its state with the reason and the time, program, host, branch, committed and \
uncommitted changes, cost and limits, the last lines of its screen, and the commands to type \
next."""

LINES = 8
"""Lines of the screen that are shown."""
LABEL = 10


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    targets.add_target(parser)
    parser.examples = [
        ("show an agent", "mngr show fix"),
        ("print some fields", "mngr show fix --format '{state} {changes.commits} {dirty}'"),
    ]
    parser.see_also = ["mngr-list", "mngr-logs", "mngr-diff", "mngr-connect"]


def run(args: Namespace) -> int:
    api, agent = targets.one(args)
    row = _row(api, agent)
    if args.format != "human":
        one(args, row, "")
        return 0
    sys.stdout.write("".join(f"{line}\n" for line in _page(agent, row)))
    return 0


def _row(api: Mngr, agent: Agent) -> Row:
    """Return the row of `list --format json` with all optional columns, changes and screen."""
    row: Row = agent.to_json()
    if agent.evidence.record is None:
        return row | {"next": ["mngr doctor"]}
    row |= api.columns([agent], ("ahead", "behind", "dirty", "cost", "tokens", "usage"))[0]
    row["changes"] = _changes(api, agent, row)
    row["limits"] = api.limits(agent).to_json()
    row["screen"] = _screen(api, agent)
    row["next"] = list(_next(agent, row))
    return row


def _changes(api: Mngr, agent: Agent, row: Row) -> Json:
    """Return commits and changed lines, including uncommitted files; null without git."""
    if row["ahead"] is None:
        return None
    try:
        files = api.difference(agent, stat=True).files()
    except MngrError:
        return None  # its base is gone
    added, removed = (sum(int(str(f[k] or 0)) for f in files) for k in ("added", "deleted"))
    return {"commits": row["ahead"], "files": len(files), "added": added, "removed": removed}


def _screen(api: Mngr, agent: Agent) -> list[Json]:
    try:
        text = clean(api.capture(agent))
    except MngrError:
        return []  # it has none, or its host is silent
    lines: list[Json] = [line.rstrip() for line in text.splitlines() if line.strip()]
    return lines[-LINES:]


def _next(agent: Agent, row: Row) -> Iterator[str]:
    """Return the commands to type next, by state."""
    name, reason = agent.name, agent.verdict.reason
    if agent.state is State.UNREACHABLE:
        yield "mngr list --hosts"
        return
    if agent.state is State.WAITING:
        asks = reason.startswith("permission")
        yield f"mngr answer {name} --allow" if asks else f"mngr message {name} -m '...'"
    if agent.state not in ENDED:
        yield f"mngr connect {name}"
        yield f"mngr logs {name} -f"
    elif agent.state is not State.DONE:
        yield f"mngr logs {name}"
        yield f"mngr start {name}"
    if _has_work(row):
        yield f"mngr diff {name}"
    if row["ahead"]:
        yield f"mngr merge {name}"
    elif agent.state in ENDED:
        yield f"mngr destroy {name}"


def _has_work(row: Row) -> bool:
    changes = row["changes"]
    return isinstance(changes, dict) and bool(changes["commits"] or changes["files"])


def _page(agent: Agent, row: Row) -> Iterator[str]:
    width = tables.terminal_width() or 10_000
    since = local_time(iso(agent.verdict.since))
    state = tables.coloured_state(str(agent.state)) if coloured() else str(agent.state)
    age = written(agent.now - agent.verdict.since)
    yield f"{bold(agent.name)}  {state} for {age}, since {since}"
    for label, text in _facts(agent, row):
        if text:
            shown = text if label in ("path", "id") else tables.cut(text, width - LABEL - 2)
            yield f"{label:{LABEL}}  {shown}"
    screen = row.get("screen")
    if isinstance(screen, list) and screen:
        yield ""
        yield from ("  " + tables.cut(str(line), width - 2) for line in screen)
    following = row["next"]
    assert isinstance(following, list)
    yield ""
    for at, command in enumerate(following):
        yield f"{'' if at else 'next':{LABEL}}  {command}"


def _facts(agent: Agent, row: Row) -> Iterator[tuple[str, str]]:
    yield "reason", clean(" ".join(agent.verdict.detail.split()))
    record = agent.evidence.record
    if record is None:
        yield "id", agent.id
        return
    pid = f" (pid {row['pid']})" if row["pid"] else ""
    yield "agent", clean(program(agent)) + (pid if record.type == "command" else "")
    if record.type != "command":
        yield "command", clean(join(record.argv)) + pid
    host = agent.host.ref
    sandbox = f", sandbox {record.sandbox}" if record.sandbox else ""
    yield "host", f"{host.name} ({host.provider}){sandbox}"
    yield "path", record.work_dir
    base = f", from {record.base_commit[:10]} of {record.source}" if record.base_commit else ""
    yield "branch", f"{record.branch}{base}" if record.branch else ""
    yield "changes", _changed(row)
    yield "used", _used(row)
    yield "limits", _limited(row)
    yield "labels", clean(", ".join(f"{key}={value}" for key, value in record.labels.items()))
    yield "created", local_time(row["create_time"])
    yield "id", agent.id


def _changed(row: Row) -> str:
    changes, dirty = row["changes"], row["dirty"]
    if not isinstance(changes, dict):
        return ""
    parts = [many(int(str(changes["commits"])), "commit")]
    if dirty:
        parts.append(many(int(str(dirty)), "uncommitted file"))
    lines = f": +{changes['added']} -{changes['removed']} lines" if changes["files"] else ""
    return f"{', '.join(parts)}{lines}"


def _used(row: Row) -> str:
    if row["tokens"] is None:
        return ""
    cost = f"${row['cost']:.2f}, " if isinstance(row["cost"], (int, float)) else ""
    return f"{cost}{row['tokens']:,} tokens"


def _limited(row: Row) -> str:
    limits = row["limits"]
    assert isinstance(limits, dict)
    shown = []
    if (seconds := limits.get("timeout")) is not None:
        shown.append(f"time {exactly(float(str(seconds)))}")
    if (cost := limits.get("max_cost")) is not None:
        shown.append(f"cost ${float(str(cost)):.2f}")
    if (tokens := limits.get("max_tokens")) is not None:
        shown.append(f"{tokens:,} tokens")
    return ", ".join(shown)
