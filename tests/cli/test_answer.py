"""A permission that is asked for is shown, and answered only on evidence."""

from __future__ import annotations

import pytest

from mngr.api import Mngr
from mngr.ops.talk import answering
from tests.support.cli import Cli, until
from tests.support.scribe import know, scribe

NONE = ("--transfer", "none")


def test_a_question_is_shown_and_answered_both_ways(mngr: Cli) -> None:
    scribe(mngr, "foo", *NONE, "-m", "ask to run \x27rm -rf x\x27")
    assert mngr.agent("foo")["state_reason"] == "permission: to run 'rm -rf x'"
    assert mngr("answer", "foo").ok().out == "to run 'rm -rf x'\n"
    (row,) = mngr("answer", "--all-pending", "--format", "json").ok().json()["agents"]
    assert (row["name"], row["question"]) == ("foo", "to run 'rm -rf x'")
    mngr("message", "foo", "-m", "y").fails(1, "waits for permission", "mngr answer foo")
    assert mngr("answer", "foo", "--allow", "--dry-run").ok().out == "to run 'rm -rf x'\n"
    done = mngr("answer", "foo", "--allow", "--format", "json").ok().json()
    assert (done["answer"], done["question"]) == ("allow", "to run 'rm -rf x'")
    assert not done["state_reason"].startswith("permission")
    until(lambda: mngr.agent("foo")["state_reason"] == "end_of_turn", timeout=30)
    asking = mngr("message", "foo", "-m", "ask again", "--wait")
    asking.fails(1, "foo is waiting (permission: again)", "mngr answer foo")
    assert asking.out == ""
    assert mngr("answer", "foo", "no").ok().out.startswith("Denied foo; it is ")
    until(lambda: mngr.agent("foo")["state_reason"] == "end_of_turn", timeout=30)
    said = mngr("transcript", "foo", "--role", "tool", "--format", "{text}").ok().out
    assert said == "to run 'rm -rf x': allowed\nagain: denied\n"
    mngr("answer", "foo", "--deny").fails(1, "foo has no permission request", "end_of_turn")
    assert mngr("answer", "--all-pending").ok().out == "No pending requests found\n"


def test_an_agent_that_does_not_go_on_was_not_answered(local: Cli) -> None:
    """Its program is stopped, so that the keys are typed but not read."""
    scribe(local, "foo", *NONE, "-m", "ask")
    pid = local.tmux("list-panes", "-aF", "#{pane_pid}").strip()
    children = f"pgrep -P {pid}"
    local("exec", "foo", f"kill -STOP $({children})").ok()
    local("answer", "foo", "--allow", "--timeout", "0.3s").fails(124, "still waiting")
    local("exec", "foo", f"kill -CONT $({children})").ok()
    until(lambda: local.agent("foo")["state_reason"] == "end_of_turn", timeout=30)


def test_a_key_that_was_lost_is_pressed_again(local: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may say that it asks before it listens."""
    scribe(local, "foo", *NONE, "-m", "mishear may I?")
    for name, value in local.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(answering, "AGAIN", 0.5)
    answered = Mngr().answer("foo", True)
    assert not answered.verdict.reason.startswith("permission")
    until(lambda: local.agent("foo")["state_reason"] == "end_of_turn", timeout=30)
    said = local("transcript", "foo", "--role", "tool", "--format", "{text}").ok().out
    assert said == "may I?: allowed\n"


def test_what_cannot_be_answered_is_left_to_you(local: Cli) -> None:
    scribe(local, "foo", *NONE, "-m", "ask the unanswerable")
    local("answer", "foo", "--deny").fails(
        1, "cannot answer this request of type 'scribe'", "connect foo"
    )
    assert local("answer", "foo").ok().out == "the unanswerable\n"


def test_wrong_input(local: Cli) -> None:
    know(local)
    local.create("plain", *NONE)
    local("answer").fails(2, "no agent given", "--all-pending")
    local("answer", "plain").fails(1, "plain has no permission request: it is RUNNING")
    local("answer", "plain", "alow").fails(2, "'alow'", "'allow'")
    local("answer", "plain", "no", "--allow").fails(2, "allow and deny")
    local("answer", "--all-pending", "--allow").fails(2, "--all-pending")
    local("answer", "plan", "--allow").fails(4, "plan")
