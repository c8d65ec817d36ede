"""What an agent in a sandbox puts into its state directory does nothing outside the sandbox."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.test_limit import watcher
from tests.cli.test_usage import spend
from tests.support.cli import Cli, until
from tests.support.scribe import scribe

pytestmark = pytest.mark.dear
needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")

PRECIOUS = "precious " * 200


@pytest.fixture
def precious(mngr: Cli) -> Path:
    """A file of the user."""
    path = mngr.user_home / "documents" / "precious"
    path.parent.mkdir()
    path.write_text(PRECIOUS)
    return path


@needs_bwrap
@pytest.mark.parametrize("how", ["echo {} >> $f", "rm -f $f; echo {} > $f", "echo {} > x; mv x $f"])
def test_it_cannot_change_what_a_shell_outside_reads(mngr: Cli, how: str) -> None:
    ran = mngr.user_home / "ran"
    mngr.create("safe", "--sandbox", "-w", "more=sleep 1000")
    change = how.format(f'"touch {ran}"')
    words = 'cd "$MNGR_AGENT_STATE_DIR"; for f in env launch.sh window.sh limit.sh'
    mngr("exec", "safe", f"{words}; do {change}; done 2>/dev/null; :").ok()
    mngr("exec", "safe", "true").ok()
    mngr("stop", "safe").ok()
    mngr("start", "safe").ok()
    mngr("limit", "safe", "--timeout", "1h").ok()
    assert not ran.exists()


@needs_bwrap
@pytest.mark.parametrize("whole", [True, False])
def test_it_cannot_choose_what_is_mounted_next(mngr: Cli, precious: Path, whole: bool) -> None:
    mngr.create("safe", "--sandbox")
    box, target = mngr.state_dir("safe") / "sandbox", precious.parent
    words = f"mv {box} {box}.old; mkdir {box}" if whole else f"mv {box}/home {box}/tmp {box}.old"
    mngr("exec", "safe", f"mkdir {box}.old; {words}; ln -s {target} {box}/home; ln -s . {box}/tmp")
    done = mngr("exec", "safe", 'cat "$HOME/precious"; echo x > "$HOME/y"')
    assert "precious precious" not in done.out
    assert os.listdir(target) == ["precious"]


@needs_bwrap
def test_a_launcher_that_reports_follows_no_link(mngr: Cli, precious: Path) -> None:
    plant = 'd=$MNGR_AGENT_STATE_DIR; for f in "$d"/.exit.*; do ln -sf {} "$f"; done; exit 3'
    mngr.create("safe", "--sandbox", "--", "sh", "-c", plant.format(precious))
    mngr("wait", "safe", "--timeout", "20s").fails(1)
    assert mngr.agent("safe")["exit_code"] == 3
    assert (mngr.state_dir("safe") / "exit").is_file() and precious.read_text() == PRECIOUS


def test_a_watcher_follows_no_link(mngr: Cli, precious: Path) -> None:
    scribe(mngr, "foo", "--max-tokens", "1M")
    spend(mngr, "foo", "gpt-5", 1, 0, 0, 0)
    metered = mngr.state_dir("foo") / "metered"
    until(metered.exists, what="the watcher meters the conversation")
    (mngr.state_dir("foo") / f".metered.{watcher(mngr, 'foo')}").symlink_to(precious)
    before = metered.stat().st_mtime_ns
    spend(mngr, "foo", "gpt-5", 1, 0, 0, 0)
    until(lambda: not metered.exists() or metered.stat().st_mtime_ns != before, what="again")
    assert precious.read_text() == PRECIOUS and not metered.is_symlink()


def test_a_recording_follows_no_link(local: Cli) -> None:
    precious = local.user_home / "precious"
    precious.write_text(PRECIOUS)
    local.create("foo", "--record", "--", "sh", "-c", "echo hello; sleep 1000")
    cast = local.state_dir("foo") / "record.cast"
    until(lambda: cast.exists() and "hello" in cast.read_text())
    local("stop", "foo").ok()
    cast.unlink()
    cast.symlink_to(precious)
    local("start", "foo").ok()
    until(lambda: not cast.is_symlink() or precious.read_text() != PRECIOUS, what="it records")
    until(lambda: "hello" in cast.read_text())
    assert precious.read_text() == PRECIOUS
