"""What a mechanic's server removes when the mechanic is gone: its own folder, and nothing else."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import ROOT

PROBE = ROOT / "src/mngr_mechanic/program/probe"
SERVE = "import mechanic_probe; mechanic_probe._served([])"


@pytest.mark.parametrize(("name", "stays"), [("mech-abc", False), ("somebody-elses", True)])
def test_only_a_folder_of_the_mechanics_own_name_is_removed(
    tmp_path: Path, name: str, stays: bool
) -> None:
    base = tmp_path / name
    base.mkdir()
    (base / "file").write_text("kept?")
    with socket.socket(socket.AF_UNIX) as listening:
        place = os.path.relpath(tmp_path / "s", tmp_path)
        before = Path.cwd()
        os.chdir(tmp_path)  # a socket's path is short, a test's folder need not be
        try:
            listening.bind(place)
        finally:
            os.chdir(before)
        listening.listen()
        env = {**os.environ, "MECHANIC_SOCKET": place, "MECHANIC_BASE": str(base)}
        env["PYTHONPATH"] = str(PROBE)
        served = subprocess.Popen([sys.executable, "-c", SERVE], cwd=tmp_path, env=env)
        connection, _ = listening.accept()
        connection.makefile("rb").readline()  # it is ready
        connection.close()  # and the mechanic is gone
        assert served.wait(timeout=60) == 0
    assert base.exists() == stays
