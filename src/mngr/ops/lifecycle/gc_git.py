"""Collect mirrors, pins and branches of agents that were removed permanently.

Pins are refs/mngr/<kind>/<agent id> in a mirror, made after the agent's record and removed after
its trash, so a pin whose agent is neither listed nor in the trash is unused. A branch is removed
only if mngr recorded creating it, no agent has it, and another branch has all its commits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from mngr.errors import BadRecord, Refused
from mngr.git.exchange import Bare
from mngr.hosts.base import Host
from mngr.locks import Lock
from mngr.model.records import MadeBranch, decode
from mngr.ops.lifecycle import trash
from mngr.ops.lifecycle.leftover import Leftover
from mngr.ops.world import World

# Print `pin MIRROR REF` for pins without an agent, and `mirror MIRROR` for mirrors that no agent
# borrows from and that were not written to for an hour; a younger one may still be in creation.
# Agents are searched after the pins are listed, because an agent's record is older than its pin.
UNUSED = r"""
cd "$1" 2>/dev/null || exit 0
for mirror in mirrors/*.git; do
  [ -d "$mirror" ] && [ ! -h "$mirror" ] || continue
  refs=$(git --git-dir="$mirror" for-each-ref --format='%(refname)' refs/mngr) || continue
  used=
  for ref in $refs; do
    id=${ref#refs/mngr/*/}; id=${id%%/*}
    case $id in agent-*) ;; *) continue ;; esac
    found=
    for place in "agents/$id" "trash/$id" "trash/.purge-$id"; do [ ! -e "$place" ] || found=1; done
    if [ -n "$found" ]; then used=1; else echo "pin $mirror $ref"; fi
  done
  [ -z "$used" ] || continue
  for work in worktrees/* trash/*/work*; do
    lent=$work/.git/objects/info/alternates
    [ ! -f "$lent" ] || ! grep -qF "/$mirror/" "$lent" || used=1
  done
  [ -n "$used" ] || [ -n "$(find "$mirror" -mmin -60 | head -n 1)" ] || echo "mirror $mirror"
done
"""


def leftovers(world: World, host: Host) -> list[Leftover]:
    return [*_mirrors(world, host), *_branches(world, host)]


def _unused(host: Host) -> list[str]:
    return trash.script(host, UNUSED, host.home).splitlines()


def _mirrors(world: World, host: Host) -> Iterator[Leftover]:
    lines = _unused(host)
    whole = {line.split(" ")[1] for line in lines if line.startswith("mirror ")}
    for line in lines:
        kind, mirror, *ref = line.split(" ")
        if kind == "pin" and mirror in whole:
            continue
        path = os.path.join(host.home, mirror)
        yield Leftover(
            kind="mirror" if kind == "mirror" else "ref",
            what=" ".join([path, *ref]),
            why="no agent uses it" if kind == "mirror" else "its agent was removed for good",
            remove=lambda line=line: _remove_unused(world, host, line),  # type: ignore[misc]
        )


def _remove_unused(world: World, host: Host, line: str) -> None:
    """Remove a pin or mirror if it is still unused now."""
    kind, mirror, *ref = line.split(" ")
    path = os.path.join(host.home, mirror)
    # The two locks under which mirrors are created, by `create` for a host and by `--from URL`.
    with Lock(world.home, "mirror", f"{host.ref.id} {path}"), Lock(world.home, "mirror", path):
        if line not in _unused(host):
            raise Refused(f"{path} is in use again")
        if kind == "pin":
            Bare(run=host.run, path=path).git("update-ref", "-d", *ref)
        else:
            # Rename it to a name of interrupted writes, so that gc removes it if this is
            # interrupted.
            aside = os.path.join(host.home, ".put.mirror")
            trash.script(host, 'rm -rf -- "$2"; mv -- "$1" "$2" && rm -rf -- "$2"', path, aside)


LEDGER = r"""
cd "$1/branches" 2>/dev/null || exit 0
for file in agent-*.json; do
  [ -f "$file" ] && IFS= read -r line < "$file" && printf '%s\n' "$line"
done
:
"""


def _ledger(host: Host) -> list[MadeBranch]:
    found = []
    for line in trash.script(host, LEDGER, host.home).splitlines():
        try:
            found.append(MadeBranch.from_json(decode(os.fsencode(line))))
        except BadRecord:
            continue
    return found


def _branches(world: World, host: Host) -> Iterator[Leftover]:
    ledger = _ledger(host)
    for made in ledger:
        merged = _merged_into(host, made, ledger)
        if merged is None:
            _strike(host, made)
        elif merged:
            yield Leftover(
                kind="branch",
                what=f"{made.branch} ({made.repository})",
                why=f"its agent was removed for good, and {merged} has all its commits",
                remove=lambda made=made: _remove_branch(world, host, made),  # type: ignore[misc]
            )


def _merged_into(host: Host, made: MadeBranch, ledger: Sequence[MadeBranch]) -> str | None:
    """Return a branch that has all its commits and is kept; None if the branch does not exist."""
    repo = Bare(run=host.run, path=made.repository)
    if host.run(["test", "-d", made.repository], timeout=30).code:
        return ""  # perhaps on a disk that is not mounted
    ref = f"refs/heads/{made.branch}"
    if repo.ask("rev-parse", "--verify", "-q", ref) is None:
        return None
    form = "--format=%(refname:lstrip=2)%00%(worktreepath)"
    listed = repo.ask("for-each-ref", form, f"--contains={ref}", "refs/heads/") or ""
    rows = [line.partition("\0") for line in listed.splitlines()]
    if any(name == made.branch and path for name, _, path in rows):
        return ""  # checked out, so it is in use
    going = {each.branch for each in ledger if each.repository == made.repository}
    return next((name for name, _, _ in rows if name not in going), "")


def _remove_branch(world: World, host: Host, made: MadeBranch) -> None:
    repo = Bare(run=host.run, path=made.repository)
    with Lock(world.home, "repo", made.repository):
        tip = repo.line("rev-parse", "--verify", f"refs/heads/{made.branch}")
        if not _merged_into(host, made, _ledger(host)):
            raise Refused(f"the branch {made.branch} is in use again")
        words = ("-c", "core.hooksPath=/dev/null", "update-ref", "-d")
        done = repo.attempt(*words, f"refs/heads/{made.branch}", tip)
        done.raise_if_failed(f"the branch {made.branch} was kept")
    _strike(host, made)


def _strike(host: Host, made: MadeBranch) -> None:
    path = os.path.join(host.home, "branches", f"{made.id}.json")
    host.run(["rm", "-f", path], timeout=30)
