"""This machine."""

from __future__ import annotations

import os
import time

from mngr import files
from mngr.errors import BadRecord, MngrError
from mngr.hosts import agent_files, spawn, tmux, tmux_scripts
from mngr.hosts.base import (
    CHANGING,
    Capabilities,
    CommandFailed,
    Files,
    Host,
    HostReading,
    HostRef,
    newest,
)
from mngr.hosts.evidence import CANDIDATES, first_record, read_evidence
from mngr.hosts.spawn import Sink
from mngr.model.completed import Completed
from mngr.model.records import (
    RECORD_LIMIT,
    TAIL,
    NameClaim,
    agents_dir,
    decode,
    made_path,
    name_stem,
    revision,
)
from mngr.model.state import Evidence, Pane
from mngr.settings.layers import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE = 5.0
"""Seconds to retry a record that is replaced between listing and opening."""
BASE_ENVIRONMENT = ("HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TZ", "TMPDIR")


class LocalProvider:
    """The provider of the local host, which always exists."""

    name = "local"

    def __init__(self, config: Config) -> None:
        self._home = config.home

    def hosts(self) -> list[Host]:
        return [LocalHost(self._home)]


class LocalHost:
    """The local host; does natively, and fast, what other hosts do through a shell."""

    capabilities = Capabilities(shares_files=True)
    patience = 20.0
    greets = False

    def __init__(self, home: str) -> None:
        self.home = home
        self.ref = HostRef(id=f"host-{0:032x}", name="localhost", provider="local")
        self.socket = tmux.socket_path(home, os.getuid())
        self.environment = {
            key: value
            for key, value in os.environ.items()
            if key in BASE_ENVIRONMENT or key.startswith("LC_")
        }

    def argv(self, argv: Sequence[str], *, tty: bool = False) -> list[str]:
        return list(argv)

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        timeout: float,
        sink: Sink | None = None,
    ) -> Completed:
        return spawn.run(argv, input=input, timeout=timeout, sink=sink)

    def read(
        self, ids: Sequence[str] | None = None, after: Sequence[str] = (), patience: float = 0.0
    ) -> HostReading:
        if after:
            done = self.run(after, timeout=self.patience + patience)
            if done.code:
                raise CommandFailed(self.ref, done)
            # A launch lists the panes itself. They may be dead by now if the agent has ended.
            panes = tmux.parse_panes(done.stdout.decode("utf-8", "replace"))
            reading = self._read(ids or (), panes, "")
            if panes and not any(each.exit for each in reading.agents):
                return reading
        # Read the panes first: a launcher writes `exit` before its pane dies, so files read after
        # the panes are never older than them.
        panes, error = self._panes()
        return self._read(_agent_ids(self.home) if ids is None else ids, panes, error)

    def recorded(self, ids: Sequence[str]) -> HostReading:
        """Return the records of these agents, without panes and signals."""
        return self._read(ids, {}, "not read yet")

    def claimed(self, name: str) -> str:
        """Return the id of the agent that claimed a name last; it may have been renamed since."""
        folder, base = os.path.split(name_stem(self.home, name))
        try:
            _, file = newest(os.listdir(folder), base)
            claim = agent_files.read(os.path.join(folder, file), RECORD_LIMIT)
            return NameClaim.from_json(decode(claim)).agent_id
        except (OSError, BadRecord):
            return ""

    def names(self) -> list[str]:
        """Return the names of all agents without their states, for completion."""
        found = (_named(self.home, each) for each in _agent_ids(self.home))
        return sorted(name for name in found if name)

    def _read(self, ids: Sequence[str], panes: dict[str, list[Pane]], error: str) -> HostReading:
        agents = (_evidence(self.home, each, tuple(panes.get(each, ()))) for each in ids)
        found = tuple(each for each in agents if each is not None)
        return HostReading(now=time.time(), agents=found, error=error)

    def _panes(self) -> tuple[dict[str, list[Pane]], str]:
        """Return every pane of mngr's server; no server means none, a missing tmux is an error."""
        try:
            if not os.path.exists(self.socket) and not self._restore_socket():
                return {}, ""
            # /tmp is shared: another user could have created the directory and pose as the tmux
            # server.
            if os.stat(self.socket).st_uid != os.getuid():
                return {}, f"{self.socket} belongs to another user"
            panes = self._listed()
            if tmux.uncollected(panes):
                collect = f"socket=$1; {tmux_scripts.COLLECT}"
                self.run(["sh", "-c", collect, "mngr", self.socket], timeout=self.patience)
                panes = self._listed()
        except FileNotFoundError:
            return {}, ""  # the server has just ended
        except MngrError as error:
            return {}, error.message
        return panes, ""

    def _listed(self) -> dict[str, list[Pane]]:
        done = self.run(tmux.list_panes(self.socket), timeout=self.patience)
        return tmux.parse_panes(done.stdout.decode("utf-8", "replace"))

    def _restore_socket(self) -> bool:
        if not os.path.exists(os.path.join(self.home, "tmux.json")):
            return False
        script = ["sh", "-c", tmux_scripts.RESTORE, "mngr", self.home, self.socket]
        return self.run(script, timeout=20).code == 0

    def put(self, given: Files) -> None:
        for path, (content, mode) in given.items():
            folder = os.path.dirname(path)
            of_agent = os.path.dirname(os.path.dirname(folder)) == agents_dir(self.home)
            if of_agent and os.path.islink(folder):
                raise MngrError(f"{folder} was replaced by a link")
            files.replace(path, content, mode, keep_mode=False)

    def swap(self, stem: str, rev: int, content: bytes) -> bool:
        folder, base = os.path.split(stem)
        if not rev:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        mine = f"{base}.{rev + 1}.json"
        try:
            if not files.create(os.path.join(folder, mine), content):
                return False  # another writer was faster
            # A writer two revisions ahead may have removed the name that was just linked, so the
            # link alone does not prove that this revision is the newest.
            names = [name for name in os.listdir(folder) if name.startswith(f"{base}.")]
        except FileNotFoundError:
            return False  # the agent was destroyed
        if newest(names, base)[0] > rev + 1:
            _remove(os.path.join(folder, mine))
            return False
        for name in names:
            if 0 < revision(name, base) <= rev:
                _remove(os.path.join(folder, name))
        return True


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except (FileNotFoundError, IsADirectoryError):
        pass  # another writer removed it first, or the agent put a directory there


def _named(home: str, agent_id: str) -> str:
    folder = os.path.join(agents_dir(home), agent_id)
    try:
        names = os.listdir(folder)
        record, _ = first_record(agent_id, _records(folder, names), _made(home, agent_id))
    except OSError:
        return ""
    return record.name if record else ""


def _agent_ids(home: str) -> list[str]:
    try:
        return [name for name in os.listdir(agents_dir(home)) if name.startswith("agent-")]
    except FileNotFoundError:
        return []


def _evidence(home: str, agent_id: str, panes: tuple[Pane, ...]) -> Evidence | None:
    """Return the evidence in an agent's folder; None if the folder has no record yet."""
    folder = os.path.join(agents_dir(home), agent_id)
    made = _made(home, agent_id)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            names = os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return _unreadable(agent_id, error.strerror or "unreadable")
        rev = newest(names, "agent")[0]
        if not rev:
            return None
        try:
            record = first_record(agent_id, _records(folder, names), made)
        except FileNotFoundError:
            continue  # a newer revision replaced it between the two calls
        return read_evidence(agent_id, rev, record, _files(folder, names), panes)
    return _unreadable(agent_id, CHANGING)


def _made(home: str, agent_id: str) -> bytes:
    """Return the record that an agent in a sandbox was created with."""
    try:
        return agent_files.read(made_path(home, agent_id), RECORD_LIMIT)
    except FileNotFoundError:
        return b""


def _unreadable(agent_id: str, problem: str) -> Evidence:
    return Evidence(id=agent_id, rev=0, record=None, problem=problem)


def _records(folder: str, names: list[str]) -> Iterator[bytes]:
    """Yield the content of the revisions, newest first; skip anything but regular files."""
    found = sorted(((revision(name, "agent"), name) for name in names), reverse=True)
    for rev, name in found[:CANDIDATES]:
        if rev:
            try:
                yield agent_files.read(os.path.join(folder, name), RECORD_LIMIT)
            except FileNotFoundError:
                raise
            except OSError:
                continue


def _files(folder: str, names: list[str]) -> dict[str, bytes]:
    wanted: list[str] = [name for name in ("started", "exit", "outcome.json") if name in names]
    if "signals" in names:
        wanted += [f"signals/{name}" for name in _listed(os.path.join(folder, "signals"))]
    found = {}
    for name in wanted:
        try:
            found[name] = agent_files.read(os.path.join(folder, name), RECORD_LIMIT)
        except OSError:
            continue  # the agent can write here: unreadable files are no evidence
    for name in ("transcript", "status"):
        if name in names:
            try:
                found[name] = agent_files.read_tail(os.path.join(folder, name), TAIL)
            except OSError:
                continue
    return found


def _listed(folder: str) -> list[str]:
    if os.path.islink(folder):
        return []
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".json") and name[0] != "."]
    except OSError:
        return []
    return names[:CANDIDATES]
