from __future__ import annotations

import signal
import subprocess

from mngr_e2e.commands import tree


def test_parents_are_signalled_before_their_children() -> None:
    for _ in range(20):
        words = ["sh", "-c", "sleep 100; echo told"]
        shell = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        while not (children := tree.descendants(shell.pid)):
            pass
        # The child comes first in any other order: it has the higher number.
        tree.send([*children, shell.pid], signal.SIGTERM)
        assert (shell.communicate(timeout=20)[0], shell.returncode) == (b"", -signal.SIGTERM)
