"""Compare the behaviour of Modal with what mngr expects; see docs/hosts.md.

    make modal-check

It creates two sandboxes with your login, for a few cents, and ends them. It prints one line per
expectation, runs the test of an agent's whole life, and exits with 1 if anything differs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
MNGR = [sys.executable, "-m", "mngr"]
MEGABYTES = b"0123456789abcdef" * (1 << 16) * 8

# What a command in a sandbox is expected to print.
SAYS = (
    ("a command runs as root", "id -u", "0"),
    ("its home is /root", "echo $HOME", "/root"),
    ("it has its own session", '[ "$(ps -o sid= -p $$)" -gt 0 ] && echo yes', "yes"),
    ("nproc obeys OMP_NUM_THREADS", "nproc", "1"),
    ("stdin ends with the local stdin", "cat; echo end", "end"),
    ("/proc shows the words of processes", "tr '\\0' ' ' < /proc/self/cmdline | cut -c1-2", "tr"),
    ("a background process outlives its command", "(sleep 60 > /dev/null 2>&1 &); echo yes", "yes"),
    ("tmux starts a server", "tmux -S /tmp/t new -d 'sleep 60' && tmux -S /tmp/t ls | wc -l", "1"),
)


class Check:
    """A separate home with one host."""

    def __init__(self, folder: str) -> None:
        self.env = {
            **os.environ,
            "MNGR_HOST_DIR": f"{folder}/home",
            "PYTHONPATH": str(ROOT / "src"),
            "MNGR_MODAL_LINGER": "5",
        }
        self.folder, self.differs = folder, 0

    def mngr(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*MNGR, *words],
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            timeout=900,
            check=False,
        )

    def told(self, what: str, found: object, expected: object) -> None:
        same = found == expected
        self.differs += not same
        print(f"same     {what}" if same else f"DIFFERS  {what}: {found!r}, not {expected!r}")

    def enter(self, *words: str, input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        note = json.loads(Path(self.folder, "home/hosts/modal/check.json").read_text())
        program = str(ROOT / "src/mngr/hosts/modal/enter.py")
        argv = [sys.executable, "-I", "-S", program, f"{self.folder}/home", note["id"], "pipe"]
        asked = [*argv, *words]
        return subprocess.run(asked, env=self.env, input=input, capture_output=True, check=False)

    def commands(self) -> None:
        for what, script, expected in SAYS:
            self.told(what, self.enter("sh", "-c", script).stdout.decode().strip(), expected)
        self.told(
            "8 MB are returned unchanged", self.enter("cat", input=MEGABYTES).stdout, MEGABYTES
        )
        self.told("the exit code is the command's", self.enter("sh", "-c", "exit 7").returncode, 7)
        self.told(
            "a signal n is exit code 128 + n", self.enter("sh", "-c", "kill -9 $$").returncode, 137
        )

    def life(self) -> None:
        """Stop and start the host, then let its first process end it."""
        self.enter("sh", "-c", "echo kept > /root/kept")
        began = time.monotonic()
        self.told("host stop keeps a snapshot", self.mngr("host", "stop", "check").returncode, 0)
        print(f"         it took {time.monotonic() - began:.1f} s")
        self.told("host start uses the snapshot", self.mngr("host", "start", "check").returncode, 0)
        self.told("with its files", self.enter("cat", "/root/kept").stdout, b"kept\n")
        self.enter("sh", "-c", "echo more > /root/more; kill -TERM 1")
        deadline = time.monotonic() + 120
        while self.state() != "STOPPED" and time.monotonic() < deadline:
            time.sleep(2)
        self.told("a sandbox that ends is listed as stopped", self.state(), "STOPPED")
        self.told("Modal kept its files", self.mngr("host", "start", "check").returncode, 0)
        self.told("all of them", self.enter("cat", "/root/more").stdout, b"more\n")

    def state(self) -> str:
        hosts = json.loads(self.mngr("host", "list", "--format", "json").stdout)["hosts"]
        return next((str(each["state"]) for each in hosts if each["name"] == "check"), "gone")

    def close(self) -> None:
        self.mngr("host", "destroy", "check", "--force")
        left = json.loads(self.mngr("host", "audit", "--format", "json").stdout)["hosts"]
        self.told("nothing is left", [each["name"] for each in left if each["ours"]], [])


def arc() -> bool:
    """Run the test of an agent's whole life on Modal; return whether it passed."""
    words = ["-q", "-n", "0", "tests/hosts/test_arc.py", "-k", "modal"]
    env = {**os.environ, "MNGR_MODAL_REAL": "1"}
    done = subprocess.run([sys.executable, "-m", "pytest", *words], env=env, cwd=ROOT, check=False)
    return done.returncode == 0


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="modal-check-") as folder:
        check = Check(folder)
        made = check.mngr("host", "create", "check", "--provider", "modal", "--max-age", "1h")
        if made.returncode:
            print(made.stderr.decode(), end="", file=sys.stderr)
            return 1
        try:
            check.commands()
            check.life()
        finally:
            check.close()
    check.told("an agent's whole life", arc() if "--no-arc" not in sys.argv else True, True)
    return 1 if check.differs else 0


if __name__ == "__main__":
    sys.exit(main())
