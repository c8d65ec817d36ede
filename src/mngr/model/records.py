"""The files on a host: their paths, and the format of the records.

$MNGR_HOST_DIR/
  agents/<id>/agent.<rev>.json   the record; the highest revision is current
              env launch.sh window.sh prompt.txt started exit signals/ screen.txt events.jsonl
              copied                             when its copy of a directory was complete
              limits prices watcher              if it has limits
              transcript status                  links to files of the program itself
  names/<name>.<rev>.json        the claim of a name
  logs/<id>  logs/<id>.1         the output of its program, newest and older
  sandboxes/<id>                 the script that runs a command inside its sandbox
  sandboxes/<id>.json            the record with which that agent was created
  limits/<id>                    the script that enforces its limits
  worktrees/<name>-<8 hex>       work directories created by mngr
  trash/<id>/{agent,work,trash.json}
  branches/<id>.json             a branch created by mngr whose agent was removed
  cache/hosts/<id>.json          the last reading of another host
  cache/settings.json            settings files that were parsed, by their text
  locks/  tmux.conf  tmux.json  settings.toml
"""

from __future__ import annotations

import os

from mngr.errors import BadRecord
from mngr.model import jsontext
from mngr.model.address import is_name
from mngr.model.struct import Json, Struct

RECORD_LIMIT = 1 << 20
"""Bytes; records of mngr are far smaller, so a larger file is not one."""


REVISION_DIGITS = 9
"""Maximum digits of a revision; a file with more digits was not written by mngr."""

TAIL = 16 << 10
"""Bytes at the end of an agent's transcript that a reading contains."""


class Worker(Struct):
    """The process that works on something, so that others can check whether it is alive."""

    machine: str
    pid: int
    start: str


class StopIntent(Struct):
    """A request to stop this launch."""

    launch: str
    time: float


class Removal(Struct):
    """A destroy is in progress: the work directory may already be in the trash."""

    time: float
    worker: Worker
    drop_branch: bool = False


class Window(Struct):
    """An extra tmux window and its shell command."""

    name: str
    command: str


class AgentRecord(Struct):
    """One agent, as recorded on its host."""

    schema: int = 1
    id: str
    name: str
    type: str
    argv: tuple[str, ...]
    work_dir: str
    cwd: str = ""
    """The directory in work_dir in which its program starts."""
    source: str = ""
    """The repository or directory that the agent was created from."""
    repository: str = ""
    """Its git common directory, if it has one; `destroy` changes no other repository."""
    transfer: str
    made_work_dir: bool
    """Whether mngr created work_dir, and so may move it."""
    branch: str = ""
    made_branch: bool = False
    base_commit: str = ""
    labels: dict[str, str] = {}
    project: str = ""
    create_time: float
    launch: str
    launch_time: float
    launches: int = 1
    worker: Worker
    stop: StopIntent | None = None
    removal: Removal | None = None
    archived: float | None = None
    timeout: float | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    windows: tuple[Window, ...] = ()
    width: int = 200
    height: int = 50
    history: int = 50_000
    headless: bool = False
    login: str = ""
    """The file of its renewable login, which other clients may share."""
    pass_login: bool = False
    """Whether the user's login is copied to a host that does not share the user's files."""
    recorded: bool = False
    sandbox: str = ""
    """offline or open if it runs in a sandbox, for display; `sandboxes/<id>` has the real mode."""
    plugin: dict[str, Json] = {}

    @classmethod
    def from_json(cls, value: object) -> AgentRecord:
        """Return the record; an agent can write its own, and these fields are words of commands."""
        record = super().from_json(value)
        if not is_name(record.name):
            raise BadRecord("its name is not valid")
        if record.base_commit.strip("0123456789abcdef"):
            raise BadRecord("its base is not a commit")
        return record


class NameClaim(Struct):
    """A claim of a name by an agent; it is valid while that agent has the name."""

    agent_id: str
    worker: Worker
    time: float


class Started(Struct):
    """The launcher's first report."""

    launch: str
    pid: int
    time: float


class Exit(Struct):
    """The launcher's last report."""

    launch: str
    code: int
    time: float
    cause: str = ""
    """Why it ended, if the launcher knows more than the exit code."""


class TrashNote(Struct):
    """The data required to restore a destroyed agent."""

    id: str
    name: str
    time: float
    work_dir: str
    branch: str = ""
    tip: str = ""
    """The commit of HEAD; `branch` is its branch, if it was on one."""
    dropped_branch: bool = False
    repository: str = ""
    """The git common directory that the work directory was proven to belong to."""
    worktree: str = ""
    """git's name of the worktree in that repository."""
    origin: str = ""
    """The repository on the controller that a clone's commits may have been fetched into."""
    removal: float = 0.0
    """The time of the removal that this note belongs to; a note of an earlier one is ignored."""
    made_branch: str = ""
    made_tip: str = ""
    """The commit of `made_branch`, the branch that mngr created for the agent."""


class MadeBranch(Struct):
    """A branch that mngr created and that still exists after its agent was removed."""

    id: str
    repository: str
    branch: str


def agents_dir(home: str) -> str:
    return os.path.join(home, "agents")


def agent_dir(home: str, agent_id: str) -> str:
    return os.path.join(home, "agents", agent_id)


def record_stem(home: str, agent_id: str) -> str:
    return os.path.join(home, "agents", agent_id, "agent")


def made_path(home: str, agent_id: str) -> str:
    return os.path.join(home, "sandboxes", f"{agent_id}.json")


def name_stem(home: str, name: str) -> str:
    return os.path.join(home, "names", name)


def trash_dir(home: str, agent_id: str) -> str:
    return os.path.join(home, "trash", agent_id)


def work_dir(home: str, name: str, agent_id: str) -> str:
    return os.path.join(home, "worktrees", f"{name}-{agent_id.removeprefix('agent-')[:8]}")


def is_work_dir(worktrees: str, agent_id: str, path: str) -> bool:
    """Return whether mngr uses this path for a work directory of this agent, under any name."""
    folder, base = os.path.split(path)
    name, _, digits = base.rpartition("-")
    return folder == worktrees and bool(name) and digits == agent_id.removeprefix("agent-")[:8]


def revision(filename: str, stem: str) -> int:
    """Return the revision in `<stem>.<rev>.json`, or 0 for any other name."""
    if filename.startswith(stem + ".") and filename.endswith(".json"):
        digits = filename[len(stem) + 1 : -len(".json")]
        if digits.isascii() and digits.isdigit() and len(digits) <= REVISION_DIGITS:
            return int(digits) if digits[0] != "0" else 0
    return 0


def encode(record: Struct) -> bytes:
    text = jsontext.dumps(record.to_json(), ascii=False, compact=True)
    # Arguments and paths may not be UTF-8; loads reads such bytes back unchanged.
    return text.encode("utf-8", "surrogatepass") + b"\n"


def decode(data: bytes) -> object:
    """Return JSON from a file of mngr; raise BadRecord for anything else."""
    if len(data) > RECORD_LIMIT:
        raise BadRecord(f"larger than {RECORD_LIMIT} bytes")
    try:
        return jsontext.loads(data)
    except (ValueError, RecursionError):
        raise BadRecord("not valid JSON") from None
