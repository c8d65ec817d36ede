"""Snapshots: the state of a work directory, saved as a commit that is on no branch.

Its ref is refs/mngr/snapshots/<agent id>/<number>, its parent is HEAD at that time, and its message
contains the other data.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from mngr.errors import NotFound, Stale, Taken, UsageError, suggestion
from mngr.git import repository as git
from mngr.git.repository import Checkout, Repo
from mngr.model.address import is_agent_id
from mngr.model.events import iso
from mngr.model.struct import Json, Struct
from mngr.ops.keep import trees
from mngr.ops.look.listing import Agent, agents, one
from mngr.ops.steps import step
from mngr.ops.work import transport
from mngr.ops.world import World

REFS = "refs/mngr/snapshots/"
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
FORMAT = "%(refname)%00%(objectname)%00%(tree)%00%(parent)%00%(committerdate:unix)%00%(contents)%00"
ATTEMPTS = 50


class Snapshot(Struct):
    """A snapshot of one agent's work directory."""

    repo: Repo
    """The repository that holds the commit."""
    agent_id: str
    agent_name: str
    number: int
    name: str = ""
    note: str = ""
    commit: str
    tree: str
    parent: str
    branch: str = ""
    time: float

    @property
    def ref(self) -> str:
        return f"{REFS}{self.agent_id}/{self.number}"

    @property
    def label(self) -> str:
        """Return the label that people use for it and that `--from` accepts."""
        return f"{self.agent_name}/{self.name or self.number}"

    def to_json(self) -> dict[str, Json]:
        return {
            "agent": self.agent_name,
            "agent_id": self.agent_id,
            "number": self.number,
            "name": self.name,
            "note": self.note,
            "time": iso(self.time),
            "commit": self.commit,
            "parent": self.parent,
            "branch": self.branch,
            "ref": self.ref,
        }


class Saved(Struct):
    """A new snapshot, and the paths it does not include."""

    snapshot: Snapshot
    ignored: tuple[str, ...]


def check_name(name: str) -> None:
    if not name:
        return
    import re

    if not re.fullmatch(NAME, name) or name.isdigit():
        raise UsageError(
            f"{name[:80]!r} is not a snapshot name",
            "use up to 63 letters, digits, '.', '-' and '_', and not a number",
        )


def create(agent: Agent, name: str = "") -> Saved:
    """Save all files that are not ignored as a new snapshot."""
    check_name(name)
    at, taken = trees.take(agent.host, agent.record, *_listing(agent))
    known = _parse(agent, transport.theirs(agent.host, agent.record), taken.refs)
    made = keep(agent, at, taken.tree, known, name)
    return Saved(snapshot=made, ignored=tuple(taken.ignored))


def present_tree(agent: Agent) -> str:
    """Return the tree that `create` would save; raise if it cannot be saved."""
    return trees.take(agent.host, agent.record)[1].tree


def keep(
    agent: Agent,
    at: Checkout,
    tree: str,
    known: list[Snapshot],
    name: str = "",
    note: str = "",
) -> Snapshot:
    """Save a tree under the next free number; if another command takes the number, use the next."""
    repo = transport.theirs(agent.host, agent.record)
    for _ in range(ATTEMPTS):
        if name and any(each.name == name for each in known):
            raise Taken(f"{agent.name} already has a snapshot {name!r}", "choose another name")
        number = max((each.number for each in known), default=0) + 1
        commit = git.commit_tree(repo, tree, at.head, _message(agent, at, number, name, note))
        step("snapshot_committed")
        ref = f"{REFS}{agent.id}/{number}"
        if repo.attempt("update-ref", ref, commit, "0" * len(commit)).code == 0:
            step("snapshot_kept")
            return Snapshot(
                repo=repo, agent_id=agent.id, agent_name=agent.name, number=number, name=name,
                note=note, commit=commit, tree=tree, parent=at.head, branch=at.branch,
                time=float(int(time.time())),
            )  # fmt: skip
        if git.commit_of(repo, ref) is None:  # still free: writing it failed
            repo.git("update-ref", ref, commit, "0" * len(commit))
        known = listed(agent, repo)
    raise Stale(f"the snapshots of {agent.name} were changed by other commands", "try again")


def _message(agent: Agent, at: Checkout, number: int, name: str, note: str) -> str:
    lines = [f"Snapshot {number} of {agent.name}", "", f"Mngr-Agent: {agent.name}"]
    lines += [f"Mngr-Snapshot: {name}"] if name else []
    lines += [f"Mngr-Note: {note}"] if note else []
    lines += [f"Mngr-Branch: {at.branch}"] if at.branch else []
    return "\n".join(lines) + "\n"


def of(agent: Agent) -> list[Snapshot]:
    """Return an agent's snapshots, oldest first; an empty list if it cannot have any."""
    return listed(agent, transport.theirs(agent.host, agent.record))


def listed(agent: Agent, repo: Repo) -> list[Snapshot]:
    done = repo.attempt("for-each-ref", *_listing(agent))
    known = agent.host.capabilities.shares_files and transport.origin(agent.record)
    if done.code and known and known != repo.path:
        # The work directory no longer exists, but a worktree's commits are in its source
        # repository.
        source = transport.stranger(agent.host, transport.origin(agent.record), "none", "")
        return listed(agent, source)
    return _parse(agent, repo, os.fsdecode(done.stdout).split("\0"))


def _listing(agent: Agent) -> tuple[str, str]:
    """Return the arguments for for-each-ref."""
    return f"--format={FORMAT}", f"{REFS}{agent.id}/"


def _parse(agent: Agent, repo: Repo, parts: Sequence[str]) -> list[Snapshot]:
    rows = [parts[at : at + 6] for at in range(0, len(parts) - 6, 6)]
    found = [_read(agent, repo, row) for row in rows]
    return sorted((each for each in found if each), key=lambda each: each.number)


def _read(agent: Agent, repo: Repo, row: Sequence[str]) -> Snapshot | None:
    ref, commit, tree, parents, when, message = row
    number = ref.rpartition("/")[2]
    if not number.isdigit() or not when.isdigit():
        return None  # not a snapshot commit
    said = dict(line.partition(": ")[::2] for line in message.splitlines())
    return Snapshot(
        repo=repo,
        agent_id=agent.id,
        agent_name=agent.name,
        number=int(number),
        name=said.get("Mngr-Snapshot", ""),
        note=said.get("Mngr-Note", ""),
        commit=commit,
        tree=tree,
        parent=parents.split(" ")[0],
        branch=said.get("Mngr-Branch", ""),
        time=float(when),
    )


def find(agent: Agent, text: str) -> Snapshot:
    """Return the snapshot with that number, name or ref."""
    known = of(agent)
    for each in known:
        if text in (str(each.number), each.name, each.ref) and text:
            return each
    names = [each.name for each in known if each.name]
    hint = suggestion(text, names, f"see `mngr snapshot list {agent.name}`")
    raise NotFound(f"{agent.name} has no snapshot {text[:80]!r}", hint)


def resolve(world: World, text: str) -> Snapshot | None:
    """Return the snapshot that AGENT/SNAPSHOT or a ref names; None if the text is neither.

    If no agent has the name before the slash, the text is something else, such as a path.
    """
    name, slash, which = text.removeprefix(REFS).partition("/")
    if not slash or not which or "/" in which:
        return None
    pool = agents(world)
    if not is_agent_id(name) and not any(agent.name == name for agent in pool):
        return None
    return find(one(pool, name), which)


def destroy(snapshot: Snapshot) -> None:
    """Delete the ref of a snapshot; git keeps the commit until its own garbage collection."""
    snapshot.repo.git("update-ref", "-d", snapshot.ref, snapshot.commit)
