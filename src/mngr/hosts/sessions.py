"""Sessions over a connection that ssh keeps open, without starting ssh for each of them.

This is the client's side of ssh's own multiplexing protocol (version 4, described in PROTOCOL.mux
of OpenSSH): the client hands its three pipes to the process that holds the connection, which does
everything else. Starting ssh to do the same takes 5 ms of CPU for every call.
"""

from __future__ import annotations

import _socket  # the socket module takes 5 ms to import
import os
import struct

from mngr.errors import TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION = 4
HELLO, NEW_SESSION = 0x00000001, 0x10000002
EXITED, OPENED = 0x80000004, 0x80000006
NO_ESCAPE = 0xFFFFFFFF
LIMIT = 1 << 18
"""Maximum size of a message, which is that of ssh itself."""
LOST = 255
"""The exit code of ssh when its connection is lost."""
PATIENCE = 20.0
"""Seconds to wait for a session; ssh itself gives up a dead connection after 15."""


class SshSession:
    """A command that runs over a shared connection."""

    def __init__(self, control: _socket.socket) -> None:
        self._control = control
        self._code = LOST
        self._over = False

    def status(self) -> int | None:
        """Return the exit code if the command has ended and all its output was passed on.

        Its exit code comes first: closing the session at that moment would lose output.
        """
        while not self._over:
            try:
                self._control.settimeout(0)
                self._control.recv(1, _socket.MSG_PEEK)
                self._control.settimeout(PATIENCE)
                kind, _, code = _received(self._control)
            except BlockingIOError:
                return None
            except OSError:
                self._over = True
                self.end()
            else:
                self._code = code if kind == EXITED else self._code
        return self._code

    def end(self) -> None:
        """Close the session; the remote command is told only when it reads or writes."""
        self._control.close()

    def leave(self, patience: float) -> int:
        """Close the session, whose result is known already."""
        self.end()
        return 0


def opened(path: str, command: str, fds: Sequence[int], timeout: float) -> SshSession | None:
    """Run a command with these pipes over the connection at `path`; return None without one.

    Also return None if the host refuses another session on this connection. In both cases the
    command has not begun, because the reply is sent when the host receives the command.
    """
    control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        control.settimeout(min(timeout, PATIENCE))
        control.connect(path)
        control.sendall(_packet(HELLO, VERSION) + _request(command))
        for fd in fds:
            rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", fd))
            control.sendmsg([b"\0"], [rights])
        if _received(control)[:2] == (HELLO, VERSION) and _received(control)[0] == OPENED:
            return SshSession(control)
    except TimeoutError:
        control.close()
        raise TimedOut(f"no session within {min(timeout, PATIENCE):g} s") from None
    except OSError:
        pass
    control.close()
    return None


def _request(command: str) -> bytes:
    flags = (0, 0, 0, 0)  # no terminal, X11, agent or subsystem
    # Of these the holder of the connection passes on what SendEnv names, by default all.
    locale = [f"{k}={v}" for k, v in os.environ.items() if k == "LANG" or k.startswith("LC_")]
    words = [_string(""), struct.pack(">5I", *flags, NO_ESCAPE), _string(""), _string(command)]
    return _packet(NEW_SESSION, 0, rest=b"".join([*words, *map(_string, locale)]))


def _string(text: str) -> bytes:
    data = os.fsencode(text)
    return struct.pack(">I", len(data)) + data


def _packet(*numbers: int, rest: bytes = b"") -> bytes:
    body = struct.pack(f">{len(numbers)}I", *numbers) + rest
    return struct.pack(">I", len(body)) + body


def _received(control: _socket.socket) -> tuple[int, int, int]:
    """Return the type of the next message and its first two numbers; raise an OSError at the end.

    A missing number is 0. What else a message has, such as a reason or an extension, is skipped.
    """
    (size,) = struct.unpack(">I", _exactly(control, 4))
    if size > LIMIT:
        raise ConnectionResetError
    kind, first, second = struct.unpack(">3I", _exactly(control, size).ljust(12, b"\0")[:12])
    return kind, first, second


def _exactly(control: _socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = control.recv(size - len(data))
        if not more:
            raise ConnectionResetError
        data += more
    return data
