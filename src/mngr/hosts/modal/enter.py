"""Run a command in a sandbox: `python -I -S enter.py HOME HANDLE pipe|tty ARGV...`.

A small client of the bridge, which keeps the SDK and the connections. It passes its own file
descriptors to the bridge, which moves the bytes, forwards signals and the terminal's size, and
exits with the command's code. It starts in 20 ms because it imports nothing of mngr and as few
Python modules as possible; importing the SDK would take half a second per command.
"""

from __future__ import annotations

import _signal as signal
import _socket
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LOST = 255
"""Exit code if the sandbox could not be reached, as with ssh."""
START = 30.0
"""Seconds that the bridge may take to start."""


def place(home: str) -> str:
    """Return the bridge's socket: one for each home and Modal login."""
    from zlib import crc32

    chosen = sorted(f"{k}={v}" for k, v in os.environ.items() if k.startswith("MODAL_"))
    config = os.environ.get("MODAL_CONFIG_PATH") or os.path.expanduser("~/.modal.toml")
    try:
        changed = str(os.stat(config).st_mtime_ns)
    except OSError:
        changed = ""
    mark = "\0".join([home, config, changed, sys.executable, *chosen]).encode(
        "utf-8", "surrogateescape"
    )
    return f"/tmp/mngr-{os.getuid()}/modal-{crc32(mark):08x}{crc32(mark[::-1]):08x}"


def reach(home: str) -> _socket.socket:
    """Return a connection to the bridge, which is started if there is none."""
    path = place(home)
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.lstat(folder).st_uid != os.getuid():
        raise OSError(f"{folder} belongs to another user")
    found = _connected(path)
    if found is not None:
        return found
    from fcntl import LOCK_EX, flock
    from time import monotonic, sleep

    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    flock(lock, LOCK_EX)
    try:
        found = _connected(path)
        if found is None:
            _start(home, path)
        deadline = monotonic() + START
        while (found := found or _connected(path)) is None:
            if monotonic() > deadline:
                raise OSError(f"its bridge did not start within {START:g} s; see {path}.log")
            sleep(0.02)
    finally:
        os.close(lock)
    return found


def _connected(path: str) -> _socket.socket | None:
    made = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        made.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        made.close()
        return None
    return made


def _start(home: str, path: str) -> None:
    """Start the bridge in its own session, without this process's pipes, so that it survives it."""
    argv = [sys.executable, "-m", "mngr.hosts.modal.bridge", home, path]
    log = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, f"{path}.log", log, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    defaults = [signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP]
    os.posix_spawn(
        sys.executable, argv, os.environ, file_actions=actions, setsid=True, setsigdef=defaults
    )


def send(to: _socket.socket, message: bytes, fds: Sequence[int] = ()) -> None:
    """Send the length in four bytes with the descriptors, then the message."""
    from array import array

    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", fds).tobytes())
    to.sendmsg([len(message).to_bytes(4, "big")], [rights] if fds else [])
    to.sendall(message)


def line(words: Sequence[str | int]) -> bytes:
    return " ".join(map(str, words)).encode() + b"\n"


def size() -> tuple[int, int]:
    """Return rows and columns of the terminal."""
    for fd in (0, 1, 2):
        try:
            columns, rows = os.get_terminal_size(fd)
        except OSError:
            continue
        return rows, columns
    return 24, 80


def raw() -> object:
    """Switch the terminal to raw mode; return the settings to restore at the end."""
    import termios
    import tty

    try:
        before = termios.tcgetattr(0)
    except termios.error:
        return None
    tty.setraw(0, termios.TCSADRAIN)
    return before


def words(handle: str, tty: bool, argv: Sequence[str]) -> bytes:
    """Return the request; its fields are separated by NUL."""
    rows, columns = size() if tty else (0, 0)
    term = os.environ.get("TERM", "") if tty else ""
    parts = ["exec", handle, str(rows), str(columns), term, *argv]
    return "\0".join(parts).encode("utf-8", "surrogateescape")


def main(argv: Sequence[str]) -> int:
    home, handle, kind, *command = argv
    tty = kind == "tty"
    try:
        door = reach(home)
        send(door, words(handle, tty, command), (0, 1, 2))
    except OSError as error:
        os.write(2, f"modal: {error}\n".encode())
        return LOST
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: door.sendall(line(["signal", number])))
    before = raw() if tty else None
    if tty:
        signal.signal(signal.SIGWINCH, lambda number, frame: door.sendall(line(["size", *size()])))
    try:
        return ended(door)
    finally:
        if before is not None:
            import termios

            termios.tcsetattr(0, termios.TCSADRAIN, before)  # type: ignore[arg-type]


def ended(door: _socket.socket) -> int:
    """Return the exit code of the command; print the bridge's reason if there is one."""
    told = b""
    while not told.endswith(b"\n"):
        try:
            chunk = door.recv(1 << 16)
        except ConnectionError:
            chunk = b""
        if not chunk:
            os.write(2, b"modal: the bridge ended\n")
            return LOST
        told += chunk
    code, _, reason = told.partition(b" ")
    if reason.strip():
        os.write(2, b"modal: " + reason)
    return int(code)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    # os._exit instead of sys.exit: nothing has to be flushed, and the interpreter's shutdown takes
    # 5 ms.
    os._exit(code)
