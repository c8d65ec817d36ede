"""The methods of the public API that move, compare, keep and remove work."""

from __future__ import annotations

import os

from mngr.api.targets import Targets
from mngr.ops.look.listing import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mngr.hosts.base import Host
    from mngr.ops.keep.rewind import Restored
    from mngr.ops.keep.snapshot import Saved, Snapshot
    from mngr.ops.lifecycle.burial import Destroyed
    from mngr.ops.lifecycle.create import Created
    from mngr.ops.lifecycle.gc import Leftover
    from mngr.ops.lifecycle.restore import Returned
    from mngr.ops.lifecycle.trash import Trashed
    from mngr.ops.look.doctor import Finding
    from mngr.ops.work.clone import Migrated
    from mngr.ops.work.commits import Pulled, Pushed
    from mngr.ops.work.ends import Ends
    from mngr.ops.work.files import Copied
    from mngr.ops.work.risk import Risk


class Work(Targets):
    """Operations on the work of an agent, on any host."""

    def snapshot(self, target: str | Agent, name: str = "") -> Saved:
        """Save the current files of the work directory; the agent does not notice."""
        from mngr.ops.keep import snapshot

        return snapshot.create(self.get(target), name)

    def snapshots(self, target: str | Agent) -> Sequence[Snapshot]:
        """Return the snapshots of an agent, oldest first."""
        from mngr.ops.keep import snapshot

        return snapshot.of(self.get(target))

    def restore_snapshot(self, target: str | Agent, which: str) -> Restored:
        """Restore the files; files that would be lost are saved in another snapshot first."""
        from mngr.ops.keep import rewind, snapshot

        agent = self.get(target)
        return rewind.restore(agent, snapshot.find(agent, which))

    def diff(self, target: str | Agent, *, uncommitted: bool = False) -> bytes:
        """Return a patch from the agent's base, or its HEAD, to its current files."""
        from mngr.ops.keep import compare

        return compare.difference(self.get(target), uncommitted=uncommitted).patch

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
        from mngr.ops.work import commits

        return commits.pull(
            self.world, self._ends(target, cwd), branch=branch, force=force, dry_run=dry_run
        )

    def push(
        self, target: str | Agent, *, rev: str = "HEAD", dry_run: bool = False, cwd: str = ""
    ) -> Pushed:
        """Fast-forward the branch that the agent has checked out, and its files."""
        from mngr.ops.work import commits

        return commits.push(self.world, self._ends(target, cwd), rev=rev, dry_run=dry_run)

    def bring(self, target: str | Agent, commit: str, ref: str, *, cwd: str = "") -> None:
        """Fetch exactly that commit of an agent into its source repository, under `ref`."""
        from mngr.ops.work import ends

        ends.bring(self.world, self._ends(target, cwd), commit, ref)

    def deliver(self, target: str | Agent, commit: str, *, cwd: str = "") -> None:
        """Send a commit to an agent; nothing in its work directory changes."""
        from mngr.ops.work import commits

        commits.deliver(self.world, self._ends(target, cwd), commit)

    def _ends(self, target: str | Agent, cwd: str) -> Ends:
        from mngr.ops.work import ends

        agent = self._agent(target)
        return ends.ends(agent, ends.user_repository(self.world, agent, cwd or os.getcwd()))

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
        from mngr.ops.work import files

        agent = self._agent(target)
        return files.pull(self.world.home, agent, path, local, force=force, dry_run=dry_run)

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
        from mngr.ops.work import files

        return files.push(self._agent(target), local, path, force=force, dry_run=dry_run)

    def clone(self, target: str | Agent, address: str = "", **changes: object) -> Created:
        """Create an agent with the same work; `changes` are fields of a CreateRequest."""
        from mngr.ops.lifecycle import create
        from mngr.ops.work import clone

        agent = self.get(target)
        return create.create(self.world, clone.request(self.world, agent, address, changes))

    def migrate(self, target: str | Agent, host: Host, *, pass_login: bool = False) -> Migrated:
        """Clone the agent to a host, compare the work, and destroy the original."""
        from mngr.ops.work import clone

        return clone.migrate(self.world, self.get(target), host, pass_login=pass_login)

    # remove, and undo

    def risk(self, target: str | Agent, *, drop_branch: bool = False) -> Risk:
        """Return the work that would be lost if the trash were emptied too."""
        from mngr.ops.lifecycle import destroy

        return destroy.risk(self._agent(target), drop_branch=drop_branch)

    def destroy(self, target: str | Agent, *, drop_branch: bool = False) -> Destroyed:
        """Move the agent to the trash without asking; check `risk` first."""
        from mngr.ops.lifecycle import destroy

        return destroy.destroy(self.world, self.get(target), drop_branch=drop_branch)

    def destroy_many(
        self, agents: Sequence[Agent], *, drop_branch: bool = False
    ) -> Callable[[Agent], Destroyed]:
        """Destroy all at once; return a function that returns the result of each or raises."""
        from mngr.errors import MngrError
        from mngr.ops.lifecycle import destroy

        outcomes = destroy.destroy_many(self.world, agents, drop_branch=drop_branch)

        def outcome(agent: Agent) -> Destroyed:
            found = outcomes[agent.id]
            if isinstance(found, MngrError):
                raise found
            return found

        return outcome

    def trashed(self) -> Sequence[Trashed]:
        from mngr.ops.lifecycle import trash

        return trash.trashed(self.world)

    def restore(self, name: str, new_name: str = "") -> Returned:
        from mngr.ops.lifecycle import restore, trash

        return restore.restore(self.world, trash.find_trashed(self.world, name), new_name)

    def purge(self, trashed: Trashed) -> None:
        from mngr.ops.lifecycle import trash

        trash.purge(self.world, trashed)

    def leftovers(self, provider: str = "") -> Sequence[Leftover]:
        """Return what `gc` would remove; call `.remove()` on each to remove it."""
        from mngr.ops.lifecycle import gc

        found = gc.plan(self.world, provider)
        if provider in ("", "local"):
            more = self.world.registry.collected(self.world.config)
            found += [each for each in more if isinstance(each, gc.Leftover)]
        return found

    def doctor(self, host: str = "") -> Sequence[Finding]:
        """Check this machine, or the named host."""
        from mngr.ops.look import doctor, doctor_host

        return doctor_host.of(self.world, host) if host else doctor.examine(self.world)
