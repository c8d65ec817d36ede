"""What is on a host's disk: where each file lives, and the shape of the records.

$MNGR_HOST_DIR/
  agents/<id>/agent.<rev>.json   the record; the highest revision is current
              env launch.sh window.sh prompt.txt begun started exit signals/ screen.txt events.jsonl
              limits prices limit.sh watcher     where it has limits
              transcript status                  links to what the program itself writes down
  names/<name>.<rev>.json        who claimed a name
  sandboxes/<id>                 the script that runs a command inside its sandbox
  worktrees/<name>-<8 hex>       work directories mngr made
  trash/<id>/{agent,work,trash.json}
  locks/  tmux.conf  tmux.json  settings.toml
"""

from __future__ import annotations

import json
import os

from mngr.errors import BadRecord
from mngr.struct import Json, Struct

RECORD_LIMIT = 1 << 20
"""No record of ours comes near this size; a larger file is not one."""


TAIL = 16 << 10
"""So much of the end of an agent's transcript belongs to a reading."""


class Worker(Struct):
    """The process that is at work on something, so that others can tell whether it still is."""

    machine: str
    pid: int
    start: str


class StopIntent(Struct):
    """Somebody asked this launch to stop."""

    launch: str
    time: float


class Removal(Struct):
    """A destroy is under way: the work directory may be in the trash already."""

    time: float
    worker: Worker
    drop_branch: bool = False


class Window(Struct):
    """An extra tmux window and its shell command."""

    name: str
    command: str


class AgentRecord(Struct):
    """One agent, as its host remembers it."""

    schema: int = 1
    id: str
    name: str
    type: str
    argv: tuple[str, ...]
    work_dir: str
    source: str = ""
    """The repository or directory the work came from."""
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
    recorded: bool = False
    sandbox: str = ""
    """offline or open, where it runs in a sandbox; `sandboxes/<id>` on its host is what decides."""
    plugin: dict[str, Json] = {}


class NameClaim(Struct):
    """Whoever made this file asked for the name; it holds while that agent has the name."""

    agent_id: str
    worker: Worker
    time: float


class Started(Struct):
    """The launcher's first word."""

    launch: str
    pid: int
    time: float


class Exit(Struct):
    """The launcher's last word."""

    launch: str
    code: int
    time: float
    cause: str = ""
    """Why it ended, where the launcher knows more than the code says."""


class TrashNote(Struct):
    """What is needed to bring a destroyed agent back."""

    id: str
    name: str
    time: float
    work_dir: str
    branch: str = ""
    tip: str = ""
    dropped_branch: bool = False
    repository: str = ""


def agents_dir(home: str) -> str:
    return os.path.join(home, "agents")


def agent_dir(home: str, agent_id: str) -> str:
    return os.path.join(home, "agents", agent_id)


def record_stem(home: str, agent_id: str) -> str:
    return os.path.join(home, "agents", agent_id, "agent")


def name_stem(home: str, name: str) -> str:
    return os.path.join(home, "names", name)


def trash_dir(home: str, agent_id: str) -> str:
    return os.path.join(home, "trash", agent_id)


def work_dir(home: str, name: str, agent_id: str) -> str:
    return os.path.join(home, "worktrees", f"{name}-{agent_id.removeprefix('agent-')[:8]}")


def revision(filename: str, stem: str) -> int:
    """The revision in `<stem>.<rev>.json`, or 0 for any other name."""
    if filename.startswith(stem + ".") and filename.endswith(".json"):
        digits = filename[len(stem) + 1 : -len(".json")]
        if digits.isascii() and digits.isdigit():
            return int(digits)
    return 0


def encode(record: Struct) -> bytes:
    text = json.dumps(record.to_json(), ensure_ascii=False, separators=(",", ":"))
    # An argument or path need not be UTF-8; json.loads reads such bytes the same way back.
    return text.encode("utf-8", "surrogatepass") + b"\n"


def decode(data: bytes) -> object:
    """JSON from a file of ours; anything else is a BadRecord."""
    if len(data) > RECORD_LIMIT:
        raise BadRecord(f"larger than {RECORD_LIMIT} bytes")
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise BadRecord("not valid JSON") from None
