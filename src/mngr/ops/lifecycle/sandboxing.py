"""Put an agent into a sandbox: the script `sandboxes/<id>` on its host runs a command inside.

The script is outside the agent's own directory, because an agent can write its own record and could
remove its sandbox that way.
"""

from __future__ import annotations

import os

from mngr.errors import MissingProgram, MngrError
from mngr.model.quoting import quote
from mngr.model.records import AgentRecord, agent_dir, encode, made_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.hosts.base import Host
    from mngr.hosts.bubblewrap import Sandbox

# $1 work directory, $2 program. Lines: HOME, PATH, git directory, common git directory, program;
# then the directories that objects are borrowed from.
LOOK = r"""
cd -- "$1" || exit 1
command -v bwrap > /dev/null || exit 69
printf '%s\n%s\n' "$HOME" "$PATH"
git rev-parse --path-format=absolute --git-dir --git-common-dir 2>/dev/null || printf '\n\n'
program=$(command -v -- "$2") && program=$(readlink -f -- "$program")
printf '%s\n' "$program"
[ ! -f .git/objects/info/alternates ] || cat .git/objects/info/alternates
[ ! -f .gitmodules ] || find . -path '*/.git/objects/info/alternates' -exec cat {} +
exit 0
"""

KEPT = ("env", "launch.sh", "window.sh")
"""The files of an agent that a shell outside its sandbox reads."""

# How launch.sh and `exec` enter the sandbox; it has no effect for an agent without one.
WRAP = """[ ! -f "$box" ] || set -- sh "$box" "$@" """


def path(home: str, agent_id: str) -> str:
    return os.path.join(home, "sandboxes", agent_id)


def enclose(host: Host, record: AgentRecord, argv: Sequence[str]) -> None:
    """Write the script from data that is read before the agent can change anything."""
    from mngr.hosts import bubblewrap

    done = host.run(["sh", "-c", LOOK, "mngr", record.work_dir, argv[0]], timeout=60)
    if done.code == 69:
        raise MissingProgram(
            f"{record.name} cannot be sandboxed: bubblewrap is not installed on {host.ref.name}",
            "install it with `apt-get install bubblewrap`, or leave out --sandbox",
        )
    done.raise_if_failed(f"{record.name} cannot be sandboxed")
    place = path(host.home, record.id)
    text = bubblewrap.sandbox_script(_sandbox(host, record, os.fsdecode(done.stdout).splitlines()))
    made = made_path(host.home, record.id)
    host.put({place: (os.fsencode(text), 0o600), made: (encode(record), 0o600)})
    proof = host.run(["sh", place, "--prove"], timeout=60)
    if proof.code:
        complaint = proof.complaint.removeprefix("mngr: ")
        raise MngrError(
            f"{record.name} was not started, because its sandbox failed: {complaint}",
            "run `bwrap --ro-bind / / true` to see whether bubblewrap works here",
        )


def _sandbox(host: Host, record: AgentRecord, lines: Sequence[str]) -> Sandbox:
    from mngr.hosts.bubblewrap import Sandbox, is_within, outermost

    folder = agent_dir(host.home, record.id)
    home, search, git_dir, common, program, *objects = lines
    # Programs in the user's home, but never the whole home.
    programs = [os.path.dirname(program), *(p for p in search.split(":") if is_within(p, home))]
    readable = [*objects, *outermost(p for p in programs if not is_within(home, p))]
    writable = [record.work_dir, folder]
    if common and not is_within(common, record.work_dir):
        readable.append(common)
        if git_dir != common:  # a worktree: the paths a commit writes, without hooks and settings
            parts = ("objects", "refs", "logs")
            writable += [git_dir, *(os.path.join(common, part) for part in parts)]
    return Sandbox(
        mode=record.sandbox,
        home=home,
        private=os.path.join(folder, "sandbox"),
        forbidden=path(host.home, record.id),
        masked=(host.home,),
        readable=tuple(readable),
        writable=tuple(writable),
        kept=tuple(os.path.join(folder, name) for name in KEPT),
        work_dir=record.work_dir,
    )


def wrapped(home: str, agent_id: str, words: str) -> str:
    """Return shell text that runs the quoted words, inside the agent's sandbox if it has one."""
    return f'box={quote(path(home, agent_id))}; set -- {words}; {WRAP}; exec "$@"'
