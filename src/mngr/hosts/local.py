"""This machine."""

from __future__ import annotations

import os
import time

from mngr import tmux, tmux_scripts
from mngr.errors import MngrError
from mngr.hosts import spawn
from mngr.hosts.base import (
    CHANGING,
    Capabilities,
    Completed,
    Host,
    HostReading,
    HostRef,
    newest,
)
from mngr.hosts.evidence import read_evidence
from mngr.records import RECORD_LIMIT, TAIL, agents_dir, revision
from mngr.state import Evidence, Pane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.config import Config
    from mngr.hosts.base import Files

PIECE = 1 << 14
PATIENCE = 5.0
"""Seconds to go after a record that is replaced whenever it is about to be read."""
BASE_ENVIRONMENT = ("HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TZ", "TMPDIR")


class LocalProvider:
    """One host, always there."""

    name = "local"

    def __init__(self, config: Config) -> None:
        self._home = config.home

    def hosts(self) -> list[Host]:
        return [LocalHost(self._home)]


class LocalHost:
    """Does natively, and fast, what other hosts do through a shell."""

    capabilities = Capabilities(shares_files=True)

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

    def run(self, argv: Sequence[str], *, input: bytes | None = None, timeout: float) -> Completed:
        return spawn.run(argv, input=input, timeout=timeout)

    def read(self, ids: Sequence[str] | None = None) -> HostReading:
        # Panes first: a launcher writes `exit` before its pane dies, so files read after the
        # panes can only be newer than them.
        panes, error = self._panes()
        return self._read(_agent_ids(self.home) if ids is None else ids, panes, error)

    def recorded(self, ids: Sequence[str]) -> HostReading:
        """What is on disk about these agents; nothing of what becomes of them."""
        return self._read(ids, {}, "nobody has looked")

    def _read(self, ids: Sequence[str], panes: dict[str, list[Pane]], error: str) -> HostReading:
        agents = (_evidence(self.home, each, tuple(panes.get(each, ()))) for each in ids)
        found = tuple(each for each in agents if each is not None)
        return HostReading(host=self.ref, now=time.time(), agents=found, error=error)

    def _panes(self) -> tuple[dict[str, list[Pane]], str]:
        """Every pane of our server; no server means none, a missing tmux is an error."""
        try:
            if not os.path.exists(self.socket) and not self._restore_socket():
                return {}, ""
            # /tmp is everybody's: a stranger could have made the directory, and answer for tmux.
            if os.stat(self.socket).st_uid != os.getuid():
                return {}, f"{self.socket} belongs to somebody else"
            listed = self.run(tmux.list_panes(self.socket), timeout=20)
        except FileNotFoundError:
            return {}, ""  # the server has just ended
        except MngrError as error:
            return {}, error.message
        return tmux.parse_panes(listed.stdout.decode("utf-8", "replace")), ""

    def _restore_socket(self) -> bool:
        if not os.path.exists(os.path.join(self.home, "tmux.json")):
            return False
        script = ["sh", "-c", tmux_scripts.RESTORE, "mngr", self.home, self.socket]
        return self.run(script, timeout=20).code == 0

    def put(self, files: Files) -> None:
        for path, (content, mode) in files.items():
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            temporary = _write_beside(path, content, mode)
            try:
                os.rename(temporary, path)
            except OSError:
                os.unlink(temporary)
                raise

    def swap(self, stem: str, rev: int, content: bytes) -> bool:
        folder, base = os.path.split(stem)
        if not rev:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        mine = f"{base}.{rev + 1}.json"
        try:
            temporary = _write_beside(stem, content, 0o600)
            try:
                os.link(temporary, os.path.join(folder, mine))
            finally:
                _remove(temporary)
            # Somebody two steps ahead may have removed the name we just took: the link alone does
            # not prove that ours was the newest.
            names = os.listdir(folder)
        except (FileExistsError, FileNotFoundError):
            return False  # somebody was faster, or the folder is gone: it was destroyed
        if newest(names, base)[0] > rev + 1:
            _remove(os.path.join(folder, mine))
            return False
        for name in names:
            if 0 < revision(name, base) <= rev:
                _remove(os.path.join(folder, name))
        return True


def _write_beside(path: str, content: bytes, mode: int) -> str:
    folder, base = os.path.split(path)
    temporary = os.path.join(folder, f".{base}.{os.urandom(6).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
    except OSError:
        os.unlink(temporary)
        raise
    return temporary


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass  # another writer tidied up first


def _agent_ids(home: str) -> list[str]:
    try:
        return [name for name in os.listdir(agents_dir(home)) if name.startswith("agent-")]
    except FileNotFoundError:
        return []


def _evidence(home: str, agent_id: str, panes: tuple[Pane, ...]) -> Evidence | None:
    """All an agent's folder says; a folder without any record is not an agent yet."""
    folder = os.path.join(agents_dir(home), agent_id)
    rev, deadline = 0, time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            names = os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return Evidence(id=agent_id, rev=0, record=None, problem=error.strerror or "unreadable")
        rev, name = newest(names, "agent")
        if not rev:
            return None
        try:
            data = _read(os.path.join(folder, name))
        except FileNotFoundError:
            continue  # a newer revision replaced it between the two calls
        except OSError as error:
            return Evidence(
                id=agent_id, rev=rev, record=None, problem=error.strerror or "unreadable"
            )
        return read_evidence(agent_id, rev, data, _files(folder, names), panes)
    return Evidence(id=agent_id, rev=rev, record=None, problem=CHANGING)


def _files(folder: str, names: list[str]) -> dict[str, bytes]:
    wanted: list[str] = [name for name in ("started", "exit", "outcome.json") if name in names]
    if "signals" in names:
        wanted += [f"signals/{name}" for name in _listed(os.path.join(folder, "signals"))]
    found = {}
    for name in wanted:
        try:
            found[name] = _read(os.path.join(folder, name))
        except OSError:
            continue  # the agent can write here: what cannot be read is not evidence
    for name in ("transcript", "status"):
        if name in names:
            found[name] = _tail(os.path.join(folder, name))
    return found


def _tail(path: str) -> bytes:
    """The last bytes of what a link of the agent's leads to, whatever that is."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would hold us up
    except OSError:
        return b""
    try:
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, TAIL, max(0, size - TAIL))
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _listed(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith(".json")]
    except OSError:
        return []


def _read(path: str) -> bytes:
    """In small pieces: a buffer of the limit's size, made anew per file, took most of a listing."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        data = os.read(descriptor, PIECE)
        while len(data) % PIECE == 0 and len(data) <= RECORD_LIMIT:
            more = os.read(descriptor, PIECE)
            if not more:
                break
            data += more
        return data
    finally:
        os.close(descriptor)
