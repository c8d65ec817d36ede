"""List the trash, and remove entries permanently."""

from __future__ import annotations

import os

from mngr.errors import BadRecord, MngrError, NotFound, Refused, suggestion
from mngr.git.exchange import Bare
from mngr.git.repository import Repo
from mngr.hosts.base import Host
from mngr.locks import Lock
from mngr.model.address import is_agent_id
from mngr.model.records import MadeBranch, TrashNote, decode, encode, is_work_dir, trash_dir
from mngr.model.struct import Struct
from mngr.ops.steps import step
from mngr.ops.world import World


class Trashed(Struct):
    """A destroyed agent that can be restored."""

    host: Host
    note: TrashNote
    time: float
    """When it was destroyed: the later of the note's time and the folder's time, because the clock
    of the controller may have been slow."""
    living: bool = False
    """Whether the agent also has a state directory outside the trash."""
    parts: str = ""
    """The parts in the trash: `a` for its state directory, `w` for its work directory."""
    back: bool = False
    """Whether its work directory is back in its original place."""
    text: str = ""
    """The text of the note; if it has changed, the agent was destroyed again."""


def lock(world: World, host: Host) -> Lock:
    """Lock the trash, so that one command of this controller at a time moves entries."""
    return Lock(world.home, "trash", host.ref.id)


def note_path(host: Host, agent_id: str) -> str:
    return os.path.join(trash_dir(host.home, agent_id), "trash.json")


def work_path(host: Host, agent_id: str) -> str:
    return os.path.join(trash_dir(host.home, agent_id), "work")


def parse_note(agent_id: str, text: str) -> TrashNote | None:
    """Return the note of this agent; None if the text is anything else."""
    if not text:
        return None
    try:
        note = TrashNote.from_json(decode(os.fsencode(text)))
    except BadRecord:
        return None
    return note if note.id == agent_id else None


def script(host: Host, text: str, *words: str) -> str:
    done = host.run(["sh", "-c", f"umask 077; {text}", "mngr", *words], timeout=600)
    if done.code:
        raise MngrError(done.complaint)
    return os.fsdecode(done.stdout)


# The folders are never passed as arguments: tens of thousands would exceed the limit. Only shell
# built-ins run per folder. find fails if a folder is renamed meanwhile or the disk is unreadable.
LIST = r"""
home=$1
cd "$home/trash" 2>/dev/null || { [ ! -e "$home/trash" ] && exit 0; cd "$home/trash" || exit 1; }
if stat -c %Y . >/dev/null 2>&1; then set -- -c '%Y %n'; else set -- -f '%m %N'; fi
{ find . -mindepth 1 -maxdepth 1 -type d \( -name 'agent-*' -o -name '.purge-agent-*' \) \
    -exec stat "$@" {} + || echo failed; } |
while read -r time folder; do
  [ "$time" != failed ] || { echo failed; continue; }
  folder=${folder#./} note= living=- parts=-
  file=$folder/trash.json
  [ ! -f "$file" ] || [ -h "$file" ] || IFS= read -r note < "$file" || :
  [ ! -e "$home/agents/${folder#.purge-}" ] || living=living
  [ ! -e "$folder/agent" ] || parts=${parts}a
  [ ! -e "$folder/work" ] || parts=${parts}w
  printf '%s %s %s %s %s\n' "$time" "$folder" "$living" "$parts" "$note"
done
[ ! -d ../worktrees ] || { echo worktrees; ls -1 ../worktrees; }
"""
ATTEMPTS = 5


def trashed(world: World) -> list[Trashed]:
    """Return what can be restored, newest first, including interrupted destroys."""
    found: list[Trashed] = []
    errors: list[MngrError] = []
    hosts = world.hosts()
    for host in hosts:
        try:
            found += [each for each in on(host) if each.note.name]
        except MngrError as error:
            errors.append(error)
            world.note(host.ref.name, error)
    if errors and len(errors) == len(hosts):
        raise errors[0]
    return sorted(found, key=lambda each: -each.time)


def on(host: Host) -> list[Trashed]:
    """Return all entries of one host; the name is empty if the note is missing or unreadable."""
    for _ in range(ATTEMPTS):
        entries, _, worktrees = script(host, LIST, host.home).partition("worktrees\n")
        lines = entries.splitlines()
        if "failed" not in lines:
            places = set(worktrees.splitlines())
            return [each for line in lines if (each := _entry(host, line, places))]
    raise MngrError(f"the trash of {host.ref.name} cannot be read", "see `mngr doctor`")


def _entry(host: Host, line: str, places: set[str]) -> Trashed | None:
    time, folder, living, parts, text = line.split(" ", 4)
    agent_id = folder.removeprefix(".purge-")
    if not is_agent_id(agent_id):
        return None
    note = parse_note(agent_id, text) or TrashNote(id=agent_id, name="", time=0.0, work_dir="")
    if folder != agent_id:  # an interrupted purge: it can no longer be restored
        note, parts = note.replace(name="", time=0.0), f"{parts}p"
    return Trashed(
        host=host, note=note, time=max(note.time, 0.0 if "p" in parts else float(time)),
        living=living == "living", parts=parts, back=_base(note) in places, text=text,
    )  # fmt: skip


def _base(note: TrashNote) -> str:
    """Return the last part of its work directory's path, if mngr creates directories there."""
    folder, base = os.path.split(note.work_dir)
    return base if is_work_dir(folder, note.id, note.work_dir) else ""


def find_trashed(world: World, name: str) -> Trashed:
    """Return the most recently destroyed agent with that name or id."""
    pool = trashed(world)
    for each in pool:
        if name in (each.note.id, each.note.name):
            return each
    hint = suggestion(name, [each.note.name for each in pool], "see `mngr restore --list`")
    raise NotFound(f"no agent {name!r} in the trash", hint)


# Rename the entry first, so that no restore can find it, and then check it. The entry is renamed
# back if the agent was destroyed again since the trash was read, or was or is being restored.
ASIDE = r"""
cd "$1/trash" || exit 1
id=$2 aside=.purge-$2 note= parts=-
if [ ! -e "$aside" ]; then
  [ ! -h "$id" ] && [ -d "$id" ] && [ "$5" != interrupted ] || { echo gone; exit 0; }
  mv -- "$id" "$aside" || exit 1
fi
file=$aside/trash.json
[ ! -f "$file" ] || [ -h "$file" ] || IFS= read -r note < "$file" || :
[ ! -e "$aside/agent" ] || parts=${parts}a
[ ! -e "$aside/work" ] || parts=${parts}w
if [ -e "$1/agents/$id" ]; then
  said=living; [ "$parts" != - ] || said=restored
elif [ -n "$3" ] && [ ! -e "$aside/work" ] && [ -e "$1/worktrees/$3" ]; then said=living
elif [ "$5" != interrupted ] && [ "$parts $note" != "$5 $4" ]; then said=again
else said=purge
fi
case $said in living | again) mv -- "$aside" "$id" || exit 1 ;; esac
echo "$said"
"""

# The note is removed last: after an interruption it shows what is left to do.
REMOVE = r"""
cd "$1/trash/.purge-$2" || exit 1
chmod -R u+rwX . 2>/dev/null
for each in * .[!.]* ..?*; do
  [ "$each" != trash.json ] || continue
  rm -rf -- "$1/trash/.purge-$2/$each" || exit 1
done
rm -f trash.json "$1/sandboxes/$2" "$1/sandboxes/$2.json" "$1/limits/$2" "$1/logs/$2" \
  "$1/logs/$2.1" &&
  cd .. && rmdir -- ".purge-$2"
"""


def purge(world: World, each: Trashed) -> None:
    """Remove an entry permanently."""
    host, note = each.host, each.note
    with lock(world, host):
        meant = "interrupted" if "p" in each.parts else each.parts
        said = script(host, ASIDE, host.home, note.id, _base(note), each.text, meant).strip()
        step("purge_aside")
        if said == "gone":
            raise NotFound(f"{note.name or note.id} is no longer in the trash")
        if said == "again":
            raise Refused(f"{note.name or note.id} was destroyed again; it was kept")
        if said == "living":
            raise Refused(f"{note.name or note.id} was restored or is being restored; it was kept")
        if said == "purge":
            from mngr.ops.work import mirror

            _forget(world, host, note)
            mirror.unpin(host, note.id)
        step("purge_forgotten")
        script(host, REMOVE, host.home, note.id)


def _forget(world: World, host: Host, note: TrashNote) -> None:
    """Remove git's data about it except the branch, which is recorded as created by mngr."""
    if note.repository and host.run(["test", "-d", note.repository], timeout=30).code == 0:
        repo = Bare(run=host.run, path=note.repository)
        with Lock(world.home, "repo", note.repository):
            # The directory has been renamed, so git finds none to delete. If the worktree was never
            # repaired, git looks in its old path, which is empty.
            before = os.path.join(host.home, "worktrees", _base(note))
            for path in (work_path(host, note.id), before):
                if host.run(["test", "-e", path], timeout=30).code:
                    repo.attempt("worktree", "remove", "--force", "--force", path)
            _delete_refs(repo, note.id)
        _remember_branch(host, repo, note)
    if note.origin:
        from mngr.hosts import spawn

        _delete_refs(Bare(run=spawn.run, path=note.origin), note.id)


def _delete_refs(repo: Repo, agent_id: str) -> None:
    patterns = (f"refs/mngr/*/{agent_id}", f"refs/mngr/*/{agent_id}/")
    listed = repo.attempt("for-each-ref", "--format=delete %(refname)", *patterns)
    if listed.stdout:
        repo.git("-c", "core.hooksPath=/dev/null", "update-ref", "--stdin", input=listed.stdout)


def _remember_branch(host: Host, repo: Repo, note: TrashNote) -> None:
    branch = note.made_branch
    if branch and repo.ask("rev-parse", "--verify", "-q", f"refs/heads/{branch}") is not None:
        made = MadeBranch(id=note.id, repository=note.repository, branch=branch)
        host.put({os.path.join(host.home, "branches", f"{note.id}.json"): (encode(made), 0o600)})
