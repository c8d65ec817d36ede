"""The script that places pushed files, as a user whom the modes of files bind."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.ops.work import placing

NOBODY = 65534
UNPRIVILEGED = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")


@pytest.fixture
def ground() -> Iterator[Path]:
    """A directory that an unprivileged user owns; pytest's own are closed to others."""
    made = Path(tempfile.mkdtemp(prefix="mngr-placing-"))
    for name in ("home", "work", "from"):
        (made / name).mkdir()
    yield made
    shutil.rmtree(made)


def push(ground: Path, *words: str) -> placing.Placement:
    within: tuple[str, ...] = ()
    if os.geteuid() == 0:
        subprocess.run(["chown", "-hR", str(NOBODY), ground], check=True)
        within = UNPRIVILEGED
    packed = subprocess.run(
        ["tar", "-cf", "-", "-C", ground / "from", "."], capture_output=True, check=True
    )
    given = [str(ground / "home"), "", str(ground / "work"), *words]
    done = subprocess.run(
        [*within, "sh", "-c", placing.UNPACK_AND_PLACE, "mngr", *given],
        input=packed.stdout,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert not list((ground / "home").iterdir())
    return placing.parse(done.stdout)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_directory_may_be_read_only_and_an_old_one_keeps_its_mode(ground: Path) -> None:
    source, work = ground / "from", ground / "work/there"
    for name in ("shut/deep\n/f", "shut/g", "known/h"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("1")
    (work / "known").mkdir(parents=True)
    (work / "known").chmod(0o750)
    shut = ["shut/deep\n", "shut", "known"]
    for name in shut:
        (source / name).chmod(0o555)
    assert sorted(push(ground, "there", "", "dry").new) == [
        *("there/known/h", "there/shut/deep\n/f", "there/shut/g")
    ]
    assert push(ground, "there", "", "").complete
    assert [mode(work / name) for name in shut] == [0o555, 0o555, 0o750]
    assert (work / "shut/deep\n/f").read_text() == "1" and (work / "known/h").exists()
    assert len(push(ground, "there", "", "").same) == 3


def test_the_name_of_the_target_may_begin_with_a_dash(ground: Path) -> None:
    (ground / "from/f").write_text("1")
    (ground / "work/-odd").mkdir()
    assert push(ground, "-odd", "", "").new == ["-odd/f"]
    (ground / "from/f").write_text("2")
    assert push(ground, "-odd", "force", "").differing == ["-odd/f"]
    assert (ground / "work/-odd/f").read_text() == "2"
