"""The methods of the public API that move, compare, keep and remove work."""

from __future__ import annotations

import os

from mngr.api.modules import (
    clone,
    commits,
    compare,
    create,
    destroy,
    doctor,
    doctor_host,
    ends,
    files,
    gc,
    merge,
    restore,
    rewind,
    risk,
    snapshot,
    trash,
)
from mngr.api.targets import Targets
from mngr.errors import MngrError
from mngr.ops.look.listing import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mngr.git.own_index import Difference
    from mngr.hosts.base import Host
    from mngr.model.struct import Json
    from mngr.ops.keep.merge import Merged, Place
    from mngr.ops.keep.rewind import Restored
    from mngr.ops.keep.snapshot import Saved, Snapshot
    from mngr.ops.lifecycle.create import Created
    from mngr.ops.lifecycle.gc import Leftover
    from mngr.ops.lifecycle.removal import Destroyed
    from mngr.ops.lifecycle.request import CreateRequest
    from mngr.ops.lifecycle.restore import Returned
    from mngr.ops.lifecycle.trash import Trashed
    from mngr.ops.look.doctor_host import Finding
    from mngr.ops.work.commits import Pulled, Pushed
    from mngr.ops.work.ends import Ends
    from mngr.ops.work.files import Copied
    from mngr.ops.work.risk import Risk


class Work(Targets):
    """Operations on the work of an agent, on any host."""

    def snapshot(self, target: str | Agent, name: str = "") -> Saved:
        """Save the current files of the work directory; the agent does not notice."""
        return snapshot.create(self._agent(target), name)

    def preview_snapshot(self, agent: Agent) -> str:
        """Return the tree that a snapshot would have."""
        return snapshot.present_tree(agent)

    def snapshots(self, target: str | Agent) -> Sequence[Snapshot]:
        """Return the snapshots of an agent, oldest first."""
        return snapshot.of(self._agent(target))

    def find_snapshot(self, target: str | Agent, which: str) -> Snapshot:
        """Return the snapshot with this number, name or commit."""
        return snapshot.find(self._agent(target), which)

    def restore_snapshot(self, target: str | Agent, which: str | Snapshot) -> Restored:
        """Restore the files; files that would be lost are saved in another snapshot first."""
        agent = self._agent(target)
        wanted = self.find_snapshot(agent, which) if isinstance(which, str) else which
        return rewind.restore(agent, wanted)

    def destroy_snapshot(self, snapshot: Snapshot) -> None:
        from mngr.ops.keep.snapshot import destroy

        destroy(snapshot)

    def diff(self, target: str | Agent, *, uncommitted: bool = False) -> bytes:
        """Return a patch from the agent's base, or its HEAD, to its current files."""
        return self.difference(target, uncommitted=uncommitted).patch

    def difference(
        self,
        target: str | Agent,
        *,
        uncommitted: bool = False,
        paths: Sequence[str] = (),
        stat: bool = False,
    ) -> Difference:
        """Return the difference between the agent's base, or its HEAD, and its current files."""
        agent = self._agent(target)
        return compare.difference(agent, uncommitted=uncommitted, paths=paths, stat=stat)

    def commits(self, target: str | Agent, paths: Sequence[str] = ()) -> list[dict[str, Json]]:
        """Return the agent's commits since its base, newest first."""
        return compare.commits(self._agent(target), paths)

    def merge_place(self, folder: str) -> Place:
        """Return the local repository around a directory, to merge into."""
        return merge.place(self._world, folder)

    def merge_tip(self, agent: Agent, here: Place) -> str:
        """Return the agent's last commit, fetched into the place."""
        return merge.tip_of(self._world, agent, here)

    def left_behind(self, agent: Agent) -> Sequence[str]:
        """Return the agent's uncommitted changes, which a merge does not include."""
        return merge.left_behind(agent)

    def merge(
        self,
        agent: Agent,
        here: Place,
        tip: str,
        *,
        squash: bool = False,
        check: Callable[[str], int] | None = None,
        dry_run: bool = False,
    ) -> Merged:
        """Merge the agent's commits up to `tip`; undo the merge if the check fails."""
        if dry_run:
            return merge.unchanged(here, agent, tip, merge.missing(here, tip))
        return merge.merge(here, agent, tip, squash=squash, check=check)

    def pull(
        self,
        target: str | Agent,
        *,
        branch: str = "",
        force: bool = False,
        dry_run: bool = False,
        cwd: str = "",
    ) -> Pulled:
        """Fetch the agent's branch into its source repository; HEAD does not move."""
        agent = self._agent(target)
        name = branch or commits.branch_of(agent)
        between = self._ends(agent, cwd, name)
        return commits.pull(self._world, between, name, force=force, dry_run=dry_run)

    def push(
        self, target: str | Agent, *, rev: str = "HEAD", dry_run: bool = False, cwd: str = ""
    ) -> Pushed:
        """Fast-forward the branch that the agent has checked out, and its files."""
        return commits.push(self._world, self._ends(target, cwd), rev=rev, dry_run=dry_run)

    def bring(self, target: str | Agent, commit: str, ref: str, *, cwd: str = "") -> None:
        """Fetch exactly that commit of an agent into its source repository, under `ref`."""
        ends.bring(self._world, self._ends(target, cwd), commit, ref)

    def deliver(self, target: str | Agent, commit: str, *, cwd: str = "") -> None:
        """Send a commit to an agent; nothing in its work directory changes."""
        commits.deliver(self._world, self._ends(target, cwd), commit)

    def _ends(self, target: str | Agent, cwd: str, branch: str = "") -> Ends:
        agent, here = self._agent(target), cwd or os.getcwd()
        return ends.ends(agent, lambda: ends.user_repository(self._world, agent, here), branch)

    def pull_files(
        self,
        target: str | Agent,
        path: str,
        local: str,
        *,
        force: bool = False,
        dry_run: bool = False,
    ) -> Copied:
        """Copy a file or directory of the work directory to exactly `local`."""
        agent = self._agent(target)
        return files.pull(self.home, agent, path, local, force=force, dry_run=dry_run)

    def push_files(
        self,
        target: str | Agent,
        local: str,
        path: str,
        *,
        force: bool = False,
        dry_run: bool = False,
    ) -> Copied:
        """Copy a file or directory of this machine to exactly `path` in the work directory."""
        return files.push(self._agent(target), local, path, force=force, dry_run=dry_run)

    def is_directory(self, agent: Agent, path: str) -> bool:
        """Return whether a path of the work directory is a directory."""
        return files.is_directory(agent, path)

    def clone_request(
        self, target: str | Agent, address: str, changes: Mapping[str, object]
    ) -> CreateRequest:
        """Return the request for an agent with the same work; `changes` are fields of it."""
        return clone.request(self._world, self._agent(target), address, changes)

    def clone(self, target: str | Agent, address: str = "", **changes: object) -> Created:
        """Create an agent with the same work; `changes` are fields of a CreateRequest."""
        return create.create(self._world, self.clone_request(self.get(target), address, changes))

    def migrate(self, target: str | Agent, host: Host, *, pass_login: bool = False) -> Created:
        """Clone the agent to a host, compare the work, and destroy the original."""
        return clone.migrate(self._world, self.get(target), host, pass_login=pass_login)

    def arrived(self, name: str, host: Host) -> Agent | None:
        """Return the agent that a migration has already moved to the host."""
        return clone.arrived(self._world, name, host)

    # remove, and undo

    def risk(self, target: str | Agent, *, drop_branch: bool = False) -> Risk:
        """Return the work that would be lost if the trash were emptied too."""
        agent = self._agent(target)
        return risk.at_risk(agent.host, agent.record, drop_branch=drop_branch)

    def destroy(self, target: str | Agent, *, drop_branch: bool = False) -> Destroyed:
        """Move the agent to the trash without asking; check `risk` first."""
        return destroy.destroy(self._world, self.get(target), drop_branch=drop_branch)

    def destroy_many(
        self, agents: Sequence[Agent], *, drop_branch: bool = False
    ) -> Callable[[Agent], Destroyed]:
        """Destroy all at once; return a function that returns the result of each or raises."""
        outcomes = destroy.destroy_many(self._world, agents, drop_branch=drop_branch)

        def outcome(agent: Agent) -> Destroyed:
            found = outcomes[agent.id]
            if isinstance(found, MngrError):
                raise found
            return found

        return outcome

    def trashed(self) -> Sequence[Trashed]:
        return trash.trashed(self._world)

    def find_trashed(self, name: str) -> Trashed:
        return trash.find_trashed(self._world, name)

    def restore(self, name: str | Trashed, new_name: str = "") -> Returned:
        trashed = self.find_trashed(name) if isinstance(name, str) else name
        return restore.restore(self._world, trashed, new_name)

    def purge(self, trashed: Trashed) -> None:
        trash.purge(self._world, trashed)

    def leftovers(self, provider: str = "") -> Sequence[Leftover]:
        """Return what `gc` would remove; call `.remove()` on each to remove it."""
        found = gc.plan(self._world, provider)
        if provider in ("", "local"):
            more = self._world.registry.collected(self._world.config)
            found += [each for each in more if isinstance(each, gc.Leftover)]
        return found

    def doctor(self, host: str = "") -> Sequence[Finding]:
        """Check this machine, or the named host."""
        return doctor_host.of(self._world, host) if host else doctor.examine(self._world)
