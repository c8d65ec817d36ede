"""What can go wrong with a real program: each its own state or reason, none stuck at RUNNING."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.cli import Cli, lives, until
from tests.support.real import ASKING, PATIENCE, Stage, stage


@pytest.fixture
def claude(local: Cli) -> Iterator[Stage]:
    with stage(local, "claude") as ready:
        yield ready


def test_errors_and_interruptions_are_reasons_to_wait(real: Stage) -> None:
    server = real.server
    server.on("storm:", fail=429, retry_after=1, times=2).then(say="It has passed.")
    server.on("broken:", say="This is not the whole answer.", broken=True).then(say="Whole.")
    server.on("slow:", say="Too late.", hold="slow")
    server.on("refused:", fail=400, text="the model does not like this")
    server.on("fine:", say="Fine.")

    real.create("fox", "storm: it begins")
    real.answered("fox", "storm:")
    assert len(server.conversation("storm:").asked) >= 3

    real.say("fox", "broken: speak").ok()
    real.answered("fox", "broken:")

    real.say("fox", "slow: think").ok()
    server.until_held("slow")
    real.reaches("fox", "RUNNING")
    interrupt(real, "fox")
    real.reaches("fox", "WAITING", "interrupted")
    server.release("slow")

    real.say("fox", "refused: this").ok()
    real.reaches("fox", "WAITING", "error")
    assert "does not like this" in real.state("fox")[1]

    server.vanish()
    real.say("fox", "fine: are you there").ok()
    real.reaches("fox", "WAITING", GONE[real.program])
    assert "onnect" in real.state("fox")[1]
    server.return_()
    if real.program == "claude":
        real.say("fox", "fine: again").ok()
    real.answered("fox", "fine:")


GONE = {"claude": "error", "codex": "unreachable", "opencode": "unreachable"}
"""Claude gives up after some tries; the others go on for as long as it takes."""


def interrupt(real: Stage, name: str) -> None:
    """Escape, as the user presses it; OpenCode asks for it once more."""
    window = f"={real.cli.agent(name)['id']}:agent"
    real.cli.tmux("send-keys", "-t", window, "Escape")
    if real.program == "opencode":
        real.until(name, lambda: "again" in real.cli("capture", name).out, "esc again")
        real.cli.tmux("send-keys", "-t", window, "Escape")


def test_a_program_killed_in_its_turn_resumes_the_conversation(real: Stage) -> None:
    server, cli = real.server, real.cli
    server.on("first:", say="Begun.", run="true").then(say="Never heard.", hold="work")
    server.on("second:", say="I remember.")
    real.create("fox", "first: a long task")
    server.until_held("work")
    # Programs write down what was said a moment after they have heard it.
    real.until("fox", lambda: "Begun." in cli("transcript", "fox").out, "Begun.")
    kill_program(real, "fox")
    assert real.reaches("fox", "FAILED") == "signal SIGKILL"

    cli("start", "fox", timeout=PATIENCE).ok()
    real.say("fox", "second: go on").ok()
    talk = real.answered("fox", "second:")
    assert talk.prompts[0] == "first: a long task" and talk.prompts[-1] == "second: go on"
    assert "Begun." in talk.said
    server.release("work")


def kill_program(real: Stage, name: str) -> None:
    """All that the launcher started, as the kernel does when memory is short."""
    launcher = real.cli.agent(name)["pid"]
    found = children(launcher)
    assert found
    for pid in reversed(found):
        with suppress(ProcessLookupError):  # some end by themselves
            os.kill(pid, signal.SIGKILL)
    until(lambda: not any(map(lives, found)), 30, "the program is gone")


def children(pid: int) -> list[int]:
    """Its descendants, nearest first."""
    try:
        words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    nearest = [int(word) for word in words]
    return nearest + [each for child in nearest for each in children(child)]


def test_a_permission_is_asked_and_answered_both_ways(real: Stage) -> None:
    server, cli = real.server, real.cli
    server.on("allow:", say="May I?", run="touch allowed", ask=True).then(say="Thank you.")
    server.on("deny:", say="And this?", run="touch denied", ask=True).then(say="A pity.")
    server.on("after:", say="Still here.")
    if real.program == "opencode":
        ask_in_opencode(real)
    real.create("fox", "allow: make a file", *ASKING[real.program])
    real.reaches("fox", "WAITING", "permission", about="touch allowed")
    real.say("fox", "this is not an answer").fails(1, "waits for permission")
    assert "touch allowed" in cli("answer", "fox").ok().out
    cli("answer", "fox", "--allow", timeout=PATIENCE).ok()
    real.answered("fox", "allow:")
    assert (cli.work_dir("fox") / "allowed").exists()

    real.say("fox", "deny: make another").ok()
    real.reaches("fox", "WAITING", "permission", about="touch denied")
    cli("answer", "fox", "--deny", timeout=PATIENCE).ok()
    real.until(
        "fox",
        lambda: (
            real.state("fox")[0] == "WAITING" and not real.state("fox")[1].startswith("permission")
        ),
        "the denied turn is over",
    )
    assert not (cli.work_dir("fox") / "denied").exists()
    real.say("fox", "after: all that").ok()
    talk = real.answered("fox", "after:")
    assert talk.count("this is not an answer") == 0


def ask_in_opencode(real: Stage) -> None:
    config = real.cli.env["OPENCODE_CONFIG_CONTENT"]
    real.cli.env["OPENCODE_CONFIG_CONTENT"] = '{"permission": {"bash": "ask"}, ' + config[1:]


@pytest.mark.parametrize("real", ["claude", "codex"], indirect=True)
def test_a_used_up_plan_is_a_quota_with_its_reset(real: Stage) -> None:
    """On a terminal of twenty columns, where every line of the program is broken."""
    server, cli = real.server, real.cli
    if real.program == "claude":
        del cli.env["ANTHROPIC_API_KEY"]
        cli.env |= server.environment("claude", plan=True)
    cli.env["TZ"] = "UTC"
    reset = int(time.time()) // 3600 * 3600 + 2 * 3600
    server.on("short:", say="Narrow.", run="echo narrow > seen").then(say="It is.")
    server.on("much:", quota=reset)
    narrow = ("--tmux-width", "20", "--tmux-height", "8")
    real.create("fox", "short: is it narrow", options=narrow)
    real.answered("fox", "short:")
    text = "much: is said in a line that is longer than the terminal is wide\nand in another"
    real.say("fox", text).ok()
    reason = real.reaches("fox", "WAITING", "quota")
    assert told_time(reason) == f"{datetime.fromtimestamp(reset, UTC):%H:%M}"
    assert server.conversation("much:").prompts == ["short: is it narrow", text]
    assert server.conversation("much:").count("much:") == 1


def told_time(reason: str) -> str:
    """The time of day in "quota: resets 2:00 AM", as a program says it, or in ISO 8601."""
    found = re.search(r"resets .*?(?<!\d)(\d\d?):(\d\d)(?::\d\d)?(?: ([AP])M)?", reason)
    assert found, reason
    hour = int(found[1]) % 12 + 12 * (found[3] == "P") if found[3] else int(found[1])
    return f"{hour:02d}:{found[2]}"


def test_a_nested_claude_changes_nothing(claude: Stage) -> None:
    server, cli = claude.server, claude.cli
    nested = "claude -p 'nested: hello' > said 2>&1; echo $? >> said"
    server.on("nested:", say="I am inside.", run="touch inside").then(say="Inside is done.")
    server.on("outer:", say="Starting it.", run=nested).then(say="Outer is done.", hold="outer")
    server.on("later:", say="Later.")
    claude.create("fox", "outer: start another", options=("--env", "IS_SANDBOX=1"))
    server.until_held("outer")
    # The nested one has begun and ended, and said so to the same hooks.
    assert (cli.work_dir("fox") / "said").read_text() == "Inside is done.\n0\n"
    assert claude.state("fox")[0] == "RUNNING"
    server.release("outer")
    outer = claude.answered("fox", "outer:")
    said = [each["text"] for each in claude.transcript("fox")]
    assert "Outer is done." in said and "I am inside." not in said
    cli("restart", "fox", timeout=PATIENCE).ok()
    claude.say("fox", "later: still you").ok()
    later = claude.answered("fox", "later:")
    assert later.prompts == ["outer: start another", "later: still you"]
    assert outer.id == later.id
