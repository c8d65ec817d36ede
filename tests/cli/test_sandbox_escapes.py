"""What an agent in a sandbox puts into its state directory does nothing outside the sandbox."""

from __future__ import annotations

import json
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
    until(lambda: cast.exists() and "hello" in cast.read_text(), what="it records")
    assert precious.read_text() == PRECIOUS


# A repository that asks a program for objects that are missing, in place of the user's.
FORGE = r"""
set -e
cd "$MNGR_AGENT_WORK_DIR"; git init -q evil; cd evil
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=b
git commit -q --allow-empty -m x
git config core.repositoryFormatVersion 1; git config extensions.partialClone evil
git config remote.evil.promisor true; git config remote.evil.url "$PWD"
git config remote.evil.uploadpack "touch RAN; false"
tree=.git/worktrees/$(basename "$MNGR_AGENT_WORK_DIR")
mkdir -p "$tree"; echo MISSING > "$tree/HEAD"; base=$(git rev-parse HEAD); evil=$PWD
cd "$MNGR_AGENT_STATE_DIR"
set_to() { sed -i "s|\"$1\":\"[^\"]*\"|\"$1\":\"$2\"|" agent.99.json; }
cat agent.1.json > agent.99.json
set_to source "$evil"; set_to repository "$evil/.git"; set_to base_commit "$base"
set_to work_dir "$evil"
"""
MISSING = "1234567890" * 4


@needs_bwrap
def test_it_cannot_choose_the_repository_in_which_git_runs(mngr: Cli) -> None:
    ran = mngr.user_home / "ran"
    mngr.create("safe", "--sandbox", "--transfer", "git-worktree")
    before = mngr.agent("safe")
    forge = FORGE.replace("RAN", str(ran)).replace("MISSING", MISSING)
    mngr("exec", "safe", forge).ok()
    for words in (["list"], ["pull"], ["merge", "--dry-run"], ["push", "--dry-run"]):
        mngr(*words, *(["safe"] if words != ["list"] else []))
    assert mngr.agent("safe")["work_dir"] == before["work_dir"]
    mngr("destroy", "--force", "safe").ok()
    assert not ran.exists()
    mngr("gc", "-S", "trash.keep=0s").ok()
    assert not any((mngr.home / "sandboxes").iterdir())


@pytest.mark.parametrize(("field", "value"), [("base_commit", "--output={}"), ("name", "x\x1b]0;")])
def test_a_record_whose_fields_are_options_is_none(
    mngr: Cli, precious: Path, field: str, value: str
) -> None:
    mngr.create("foo", "--transfer", "git-mirror")
    mngr.commit("more", cwd=mngr.work_dir("foo"))
    record = json.loads((mngr.state_dir("foo") / "agent.1.json").read_bytes())
    record[field] = value.format(precious)
    (mngr.state_dir("foo") / "agent.99.json").write_text(json.dumps(record))
    mngr("pull", "foo", "--dry-run", "--branch", "x").ok()
    mngr("pull", "foo").ok()
    mngr("destroy", "foo", "--headless")
    assert precious.read_text() == PRECIOUS


@needs_bwrap
def test_it_cannot_change_the_script_of_a_new_limit(mngr: Cli) -> None:
    ran = mngr.user_home / "ran"
    change = f'f=limit.sh; rm -f $f; echo "touch {ran}; exit 1" > $f'
    loop = f'cd "$MNGR_AGENT_STATE_DIR"; while :; do {change}; done 2>/dev/null'
    mngr.create("safe", "--sandbox", "--timeout", "2h", "--", "sh", "-c", loop)
    for hours in range(3, 9):
        mngr("limit", "safe", "--timeout", f"{hours}h").ok()
    assert not ran.exists()


@needs_bwrap
def test_a_process_left_inside_cannot_change_the_launcher_of_the_next_start(mngr: Cli) -> None:
    ran = mngr.user_home / "ran"
    change = f'f=launch.sh; rm -f $f; echo "touch {ran}" > $f'
    loop = f'cd "$MNGR_AGENT_STATE_DIR"; echo > ready; while :; do {change}; done 2>/dev/null'
    mngr.create("safe", "--sandbox", "--", "true")
    mngr("wait", "safe").ok()
    running = mngr.start("exec", "safe", loop)
    try:
        until((mngr.state_dir("safe") / "ready").exists, what="the loop has begun")
        mngr("start", "safe")
        assert not ran.exists()
    finally:
        running.kill()
        running.communicate()
