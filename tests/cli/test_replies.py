"""`message --wait` returns what the agent answered to that message."""

from __future__ import annotations

from tests.support.cli import Cli
from tests.support.scribe import scribe

NONE = ("--transfer", "none")


def test_the_answer_to_this_message_comes_back(mngr: Cli) -> None:
    scribe(mngr, "foo", *NONE, "-m", "one")
    done = mngr("message", "foo", "-m", "one", "--wait").ok()
    assert (done.out, done.err) == ("You said: one\n", "foo: delivered\n")
    (row,) = (
        mngr("message", "foo", "-m", "two", "--wait", "--format", "json").ok().json()["results"]
    )
    assert (row["outcome"], row["reply"]) == ("delivered", "You said: two")
    scribe(mngr, "bar", *NONE)
    both = mngr("message", "foo", "bar", "-m", "three", "--wait").ok().out
    assert both == "foo:\nYou said: three\n\nbar:\nYou said: three\n\n"


def test_a_busy_agent_answers_later_or_too_late(local: Cli) -> None:
    scribe(local, "foo")
    local("message", "foo", "-m", "think").ok()
    late = local("message", "foo", "-m", "now", "--wait", "--timeout", "0.1s")
    late.fails(124, "foo has not replied: it is RUNNING")
    patient = local.start("message", "foo", "-m", "at last", "--wait")
    (local.work_dir("foo") / "go").touch()
    out, err = patient.communicate(timeout=60)
    assert (patient.returncode, out) == (0, b"You said: at last\n"), err


def test_errors_quotas_and_endings_are_no_answers(local: Cli) -> None:
    scribe(local, "foo", *NONE)
    for text, reason in (("fail server gone", "error: server gone"), ("quota 9pm", "quota: 9pm")):
        done = local("message", "foo", "-m", text, "--wait")
        done.fails(1, f"foo is waiting ({reason})")
        assert done.out == ""
    assert local("message", "foo", "-m", "again", "--wait").ok().out == "You said: again\n"
    local("message", "foo", "-m", "exit 3", "--wait").fails(1, "foo is FAILED (exit code 3)")
    local("message", "foo", "-m", "x", "--wait").fails(1, "nothing was sent")


def test_what_keeps_no_conversation_is_not_even_asked(local: Cli) -> None:
    local.create("cat", *NONE, "--", "cat")
    local("message", "cat", "-m", "hello", "--wait").fails(1, "has no transcript")
    assert "hello" not in local("capture", "cat").out
    assert "message_delivered" not in local("event", "cat").out
