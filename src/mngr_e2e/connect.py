"""`mngr-e2e-connect`: attach to an agent without a terminal, and record it.

As the connect command it gets the command to run in MNGR_CONNECT_ARGV and the folder for casts in
E2E_CASTS. It returns when the recording has begun, and the connection stays open until the test
ends.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NoReturn

from mngr_e2e.commands import recording, tree
from mngr_e2e.commands.background import FOREVER
from mngr_e2e.commands.process import Process, Start

CASTS = "E2E_CASTS"
ARGV = "MNGR_CONNECT_ARGV"
NAME = "MNGR_AGENT_NAME"


def main() -> int:
    missing = [name for name in (CASTS, ARGV) if not os.environ.get(name)]
    if missing:
        return _complain(f"{missing[0]} is not set; run it as the connect command of an e2e test")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", os.environ.get(NAME, "")) or "agent"
    try:
        cast = recording.claim(Path(os.environ[CASTS]), f"connect-{name}")
        command = recording.rec(os.environ[ARGV], cast, 80, 24, os.environ)
    except (recording.NotInstalled, OSError) as error:
        return _complain(str(error))
    holder = os.fork()
    if not holder:
        _hold(command, cast)
    if recording.await_header(cast, lambda: tree.alive(holder)):
        return 0
    return _complain(f"the recording did not begin: {os.environ[ARGV]}")


def _complain(text: str) -> int:
    print(f"mngr-e2e-connect: {text}", file=sys.stderr)
    return 1


def _hold(command: str, cast: Path) -> NoReturn:
    """Run the recorder in its own session and terminal, without the caller's streams."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    try:
        start = Start(command, os.environ, os.getcwd(), "", pty=True)
        process = Process(start, lambda chunk: None)
        recording.pid_file(cast).write_text(str(process.pid))
        process.finish(FOREVER)
    finally:
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
