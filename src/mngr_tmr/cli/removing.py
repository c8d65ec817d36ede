"""`mngr tmr rm`: move a run with its refs, branch and agents to the trash, or restore it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from mngr.api import Leftover, Mngr, Repo, local_repository
from mngr.cli.app.output import one, warn
from mngr.cli.app.parser import Namespace
from mngr.errors import NotFound, Refused, Taken, UsageError
from mngr.model.struct import Json
from mngr.settings.layers import Config
from mngr_tmr.integrate import branches
from mngr_tmr.journal.journal import is_at_work
from mngr_tmr.journal.model import Run
from mngr_tmr.run import runs
from mngr_tmr.run.pool import hosts_of
from mngr_tmr.run.words import counted

Moves = dict[str, str]
"""Old ref -> new ref."""


def rm(args: Namespace) -> int:
    if len(args.words) != 1:
        raise UsageError("name one run", "see `mngr tmr list`")
    return _undo(args, args.words[0]) if args.undo else _remove(args, args.words[0])


def _remove(args: Namespace, name: str) -> int:
    folder = runs.find(args.config.home, name)
    if is_at_work(folder):
        raise Refused(f"the run {name} is in progress", f"stop it with `mngr tmr cancel {name}`")
    run = runs.load(folder)
    stamp = f"{name}.{time.time_ns()}"
    repo = _repository(run)
    moves = _away(repo, run, stamp) if repo else {}
    api = Mngr(args.config, args.registry)
    agents, hosts = runs.agents(api, name), [*hosts_of(api, run)]
    if not args.dry_run:
        destroy = api.destroy_many(agents)
        for agent in agents:
            destroy(agent)
        if repo:
            _move(repo, moves)
        trash = runs.trash(args.config.home) / stamp
        trash.parent.mkdir(parents=True, exist_ok=True)
        folder.rename(trash)
    row: dict[str, Json] = {
        "run": name,
        "refs": len(moves),
        "agents": len(agents),
        "hosts": [*hosts],
    }
    done = "Would remove" if args.dry_run else "Removed"
    back = "" if args.dry_run else f" To restore it: mngr tmr rm --undo {name}"
    row["removed"] = not args.dry_run
    one(args, row, f"{done} run {name} and {counted(len(moves), 'ref')}.{back}")
    if hosts and not args.dry_run:
        left = "1 host is" if len(hosts) == 1 else f"{len(hosts)} hosts are"
        warn(f"{left} left of the run {name}; to end: mngr host destroy {' '.join(hosts)}")
    return 0


def _undo(args: Namespace, name: str) -> int:
    """Restore the run that was removed last. `mngr restore` restores its agents."""
    kept = sorted(runs.trash(args.config.home).glob(f"{name}.*"), key=_stamp)
    if not kept:
        raise NotFound(f"no run {name!r} was removed", "see `mngr tmr list`")
    folder = runs.root(args.config.home) / name
    if folder.exists():
        raise Taken(f"a new run {name} exists", f"remove it first: `mngr tmr rm {name}`")
    run = runs.load(kept[-1])
    repo = _repository(run)
    moves = _refs(repo, _trash(kept[-1].name)) if repo else {}
    if not args.dry_run:
        if repo:
            _move(repo, moves)
        kept[-1].rename(folder)
    done = "Would restore" if args.dry_run else "Restored"
    row: dict[str, Json] = {"run": name, "refs": len(moves), "restored": not args.dry_run}
    one(args, row, f"{done} run {name} and {counted(len(moves), 'ref')}.")
    return 0


def leftovers(config: Config) -> Iterator[Leftover]:
    """Yield the runs that have been in the trash for longer than `trash.keep`, for `mngr gc`."""
    keep = config.seconds("trash.keep")
    for folder in sorted(runs.trash(config.home).glob("*.*"), key=_stamp):
        days = (time.time() - _stamp(folder) / 1e9) / 86400
        if days * 86400 >= keep:
            why = f"removed {days:.0f} days ago"
            yield Leftover(kind="run", what=folder.name, why=why, remove=partial(_purge, folder))


def _purge(folder: Path) -> None:
    """Move the refs first: they can be found only with the journal."""
    repo = _repository(runs.load(folder))
    refs = _listed(repo, _trash(folder.name)) if repo else []
    if repo:
        _update(repo, (f"delete {ref}" for ref in refs))
    shutil.rmtree(folder)


def _stamp(path: Path) -> int:
    digits = path.name.rpartition(".")[2]
    return int(digits) if digits.isdigit() else 0


def _repository(run: Run) -> Repo | None:
    """Return the repository of a run, or None if it no longer exists."""
    return local_repository(run.repository) if os.path.isdir(run.repository) else None


# refs: one transaction each way


def _trash(stamp: str) -> str:
    return f"refs/mngr/trash/tmr/{stamp}/"


def _listed(repo: Repo, prefix: str) -> list[str]:
    return repo.line("for-each-ref", "--format=%(refname)", prefix).split()


def _away(repo: Repo, run: Run, stamp: str) -> Moves:
    """Return the refs of a run, and its branches if they are unchanged and not checked out."""
    own = _listed(repo, f"refs/mngr/tmr/{run.name}/")
    heads = [
        f"refs/heads/{name}"
        for name, (_, commit) in run.published.items()
        if branches.commit_of(repo, name) == commit and not branches.checked_out(repo, name)
    ]
    return {ref: _trash(stamp) + ref.removeprefix("refs/") for ref in [*own, *heads]}


def _refs(repo: Repo, prefix: str) -> Moves:
    """Return the refs in the trash, with the refs they were before."""
    return {ref: f"refs/{ref.removeprefix(prefix)}" for ref in _listed(repo, prefix)}


def _move(repo: Repo, moves: Moves) -> None:
    commits = {ref: repo.line("rev-parse", ref) for ref in moves}
    pairs = [(commits[old], old, new) for old, new in moves.items()]
    lines = [f"create {new} {commit}" for commit, _, new in pairs]
    _update(repo, [*lines, *(f"delete {old} {commit}" for commit, old, _ in pairs)])


def delete_refs(repo: Repo, run: Run) -> None:
    """Delete the refs of a run that was declined."""
    found = _listed(repo, f"refs/mngr/tmr/{run.name}/") if run.name else []
    _update(repo, (f"delete {ref}" for ref in found))


def _update(repo: Repo, lines: Iterable[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    if text:
        repo.git("update-ref", "--stdin", input=os.fsencode(text))
