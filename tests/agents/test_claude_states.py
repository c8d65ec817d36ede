"""The state of a Claude agent, from its program, its hooks and its transcript."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.agents.base import Delivery
from mngr.agents.claude.agent import ClaudeAgent
from mngr.model.events import iso
from mngr.model.records import Started
from mngr.model.state import Evidence
from tests.support.records import agent_record

RECORDED = Path(__file__).parent / "recorded" / "claude"
START = 1794787000.0
"""2026-11-15T23:56:40Z; the recordings are of the half hour after it."""
LATER = START + 7200

RECORD = agent_record(type="claude", create_time=START, launch_time=START)
CLAUDE = ClaudeAgent()


def signal(time: float, launch: str = "L1", /, **input: object) -> dict[str, object]:
    return {"launch": launch, "time": time, "input": input}


def evidence(
    word: str = "",
    *,
    tail: bytes = b"",
    waits_for: str = "",
    started: float = START,
    **said: object,
) -> Evidence:
    """Return evidence; `said` are the hooks. The program's status is a minute older than LATER."""
    told = {"startedAt": (started + 1) * 1000, "statusUpdatedAt": (LATER - 60) * 1000}
    told = {key: int(value) for key, value in told.items()}
    status = told | ({"status": word} if word else {}) | {"waitingFor": waits_for}
    return Evidence(
        id=RECORD.id,
        rev=1,
        record=RECORD,
        started=Started(launch="L1", pid=7, time=START),
        signals={"SessionStart": signal(START + 2), **said},  # type: ignore[dict-item]
        tail=tail,
        status=json.dumps(status).encode(),
    )


def recorded(name: str, lines: int | None = None) -> bytes:
    whole = (RECORDED / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    return b"".join(whole[:lines])


def told(found: Evidence) -> str:
    signals = CLAUDE.signals(found)
    assert bool(signals.waiting) != bool(signals.working)
    return signals.reason


TOOL = {"tool_name": "Bash", "tool_input": {"command": "rm  -r\nx", "description": "d"}}
CHOICE = {"question": "Which?", "options": [{"label": "Red"}, {"label": "Blue"}]}
QUESTION = {"tool_name": "AskUserQuestion", "tool_input": {"questions": [CHOICE]}}
STOP, ASKED = signal(LATER), signal(LATER - 61)
USED_UP = "You've hit your limit · resets 1:17pm (UTC)"
WEEK_USED_UP = "You've hit your weekly limit · resets"


def limited(words: str) -> Evidence:
    stop = signal(LATER, error="rate_limit", last_assistant_message=words)
    return evidence("idle", StopFailure=stop)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (evidence("busy", Stop=STOP), "working"),
        (evidence("idle", Stop=STOP), "end_of_turn"),
        (evidence("shell", Stop=STOP), "end_of_turn"),
        (evidence("waiting", waits_for="dialog open"), "permission: dialog open"),
        (evidence("waiting", PermissionRequest=signal(LATER, **TOOL)), "permission: Bash: rm -r x"),
        (
            evidence("waiting", PermissionRequest=signal(LATER, **QUESTION)),
            "permission: Which? (Red, Blue)",
        ),
        # an older request is not the current one
        (
            evidence("waiting", waits_for="x", PermissionRequest=signal(START + 3, **TOOL)),
            "permission: x",
        ),
        (
            evidence("waiting", Notification=signal(LATER, message="Claude needs\nyou")),
            "permission: Claude needs you",
        ),
        # without a hook, the call without a result shows the question
        (
            evidence("waiting", waits_for="permission prompt", tail=recorded("talk", 20)),
            "permission: Bash: sleep 5; echo x > b",
        ),
        # no hook runs when the user interrupts
        (evidence("idle", UserPromptSubmit=ASKED), "interrupted"),
        (evidence("idle", tail=recorded("interrupted", 13)), "interrupted"),
        (evidence("idle", tail=recorded("interrupted", 13), Stop=STOP), "end_of_turn"),
        (evidence("idle", tail=recorded("interrupted"), Stop=STOP), "end_of_turn"),
        # killed during its turn and started again
        (evidence("idle", tail=recorded("talk")), "interrupted"),
        (evidence("idle", tail=recorded("talk", 27)), "end_of_turn"),
        (
            evidence("idle", tail=recorded("quota", 8)),
            "quota: resets 2026-11-16T01:17:01Z",
        ),
        (
            limited(USED_UP),
            "quota: resets 13:17 (UTC)",
        ),
        (limited(f"{WEEK_USED_UP} Sep 15 at 7pm (UTC)"), "quota: resets Sep 15 at 19:00 (UTC)"),
        (limited(f"{WEEK_USED_UP} Jan 2, 2027, 9am"), "quota: resets Jan 2, 2027, 09:00"),
        (limited(f"{WEEK_USED_UP} Oct 14"), "quota: resets Oct 14"),
        (limited(f"{WEEK_USED_UP} Monday (UTC)"), "quota: resets Monday (UTC)"),
        (
            evidence("idle", StopFailure=signal(LATER, error="billing_error")),
            "quota: billing_error",
        ),
        (
            evidence("idle", StopFailure=signal(LATER, error="server_error"), Stop=ASKED),
            "error: server_error",
        ),
        (
            evidence("idle", tail=recorded("errors", 6)),
            "error: API Error: Request rejected (429) · This request would exceed your limit.",
        ),
        (evidence("idle", tail=recorded("errors", 6), Stop=STOP), "end_of_turn"),
        (evidence("idle", tail=recorded("commands", 3)), "end_of_turn"),
        # files of another launch are ignored
        (evidence("busy", started=START - 600), "end_of_turn"),
        (evidence("idle", Stop=signal(LATER, "L0"), UserPromptSubmit=ASKED), "interrupted"),
    ],
)
def test_the_program_says_whether_it_works_and_the_rest_says_why_not(
    found: Evidence, reason: str
) -> None:
    assert told(found) == reason


PROMPTED = signal(START, prompted=True)
SENT = signal(LATER - 59)
"""A second after the program last called itself idle."""


@pytest.mark.parametrize(
    ("found", "later", "reason"),
    [
        (evidence("idle", Launch=PROMPTED), 1, "working"),
        (evidence("idle", Launch=PROMPTED), 40, "end_of_turn"),
        (evidence("idle", Launch=PROMPTED, Stop=ASKED), 1, "end_of_turn"),
        (evidence("idle", UserPromptSubmit=SENT), 2, "working"),
        (evidence("idle", UserPromptSubmit=SENT), 40, "interrupted"),
        (evidence("idle", UserPromptSubmit=ASKED), 2, "interrupted"),
        (evidence("idle", Launch=PROMPTED, UserPromptSubmit=SENT, Stop=STOP), 2, "end_of_turn"),
    ],
)
def test_a_prompt_that_it_is_about_to_begin_with_is_work(
    found: Evidence, later: float, reason: str
) -> None:
    """`later` is the number of seconds since the program reported that it is idle."""
    assert told(found.replace(now=LATER - 60 + later)) == reason


def entry(type: str, time: float, **more: object) -> bytes:
    said = {"type": type, "timestamp": iso(time), **more}
    return json.dumps(said, separators=(",", ":")).encode() + b"\n"


BEGUN = entry("user", LATER - 70, message={"role": "user", "content": "go on"})
PUT_OFF = entry("queue-operation", LATER - 80, operation="enqueue", content="go on")
FETCHED = entry("queue-operation", LATER - 75, operation="dequeue")
DROPPED = entry("queue-operation", LATER - 75, operation="popAll")


@pytest.mark.parametrize(
    ("tail", "later", "reason"),
    [
        (PUT_OFF, 1, "working"),
        (PUT_OFF + FETCHED, 1, "working"),
        (PUT_OFF + FETCHED + BEGUN, 10, "end_of_turn"),
        (PUT_OFF + DROPPED, 1, "end_of_turn"),
        (PUT_OFF, 100, "end_of_turn"),
        (PUT_OFF.replace(b"2026", b"2025"), 1, "end_of_turn"),
    ],
)
def test_what_came_while_it_was_busy_is_work(tail: bytes, later: float, reason: str) -> None:
    found = evidence("idle", tail=recorded("talk", 27) + tail, Stop=ASKED)
    assert told(found.replace(now=LATER - 60 + later)) == reason


TASK = entry("queue-operation", LATER - 78, operation="enqueue", content="<task-notification>x")
MORE = entry("queue-operation", LATER - 77, operation="enqueue", content=f"stop\n{'x' * 90}")
ABSORBED = entry("queue-operation", LATER - 74, operation="remove", content="go on")
REST = f"stop {'x' * 74}…"


@pytest.mark.parametrize(
    ("tail", "messages"),
    [
        (PUT_OFF, ("go on",)),
        (PUT_OFF + FETCHED, ()),
        (PUT_OFF + DROPPED, ()),
        (PUT_OFF + TASK + MORE, ("go on", REST)),
        (PUT_OFF + TASK + MORE + ABSORBED, (REST,)),
        (PUT_OFF + TASK + MORE + FETCHED, (REST,)),
        (FETCHED + MORE + ABSORBED, ()),
        (PUT_OFF.replace(b"2026", b"2025"), ()),
        (recorded("talk") + recorded("interrupted"), ()),
    ],
)
def test_queued_messages_are_known(tail: bytes, messages: tuple[str, ...]) -> None:
    assert CLAUDE.unread(evidence("busy", tail=tail)) == messages


ANSWERED = entry("assistant", LATER - 62, message={"content": [{"type": "text"}]})


@pytest.mark.parametrize(
    ("tail", "later", "reason"),
    [
        (BEGUN, 0.5, "working"),
        (BEGUN + ANSWERED, 0.5, "end_of_turn"),
        (recorded("talk", 27), 0.5, "working"),  # neither the prompt nor the answer
        (BEGUN, 9, "end_of_turn"),
    ],
)
def test_a_turn_ends_once_its_answer_is_in_the_transcript(
    tail: bytes, later: float, reason: str
) -> None:
    found = evidence("idle", tail=tail, UserPromptSubmit=signal(LATER - 69), Stop=ASKED)
    assert told(found.replace(now=LATER - 61 + later)) == reason


def test_a_quota_that_was_reset_says_so() -> None:
    found = evidence("idle", tail=recorded("quota", 8))
    again = "quota: was reset 2026-11-16T01:17:01Z: send it a message to continue"
    assert told(found.replace(now=LATER)) == again
    assert told(found.replace(now=LATER - 3600)) == "quota: resets 2026-11-16T01:17:01Z"


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (evidence(), "end_of_turn"),
        (evidence(Launch=signal(START, prompted=True)), "working"),
        (evidence(UserPromptSubmit=ASKED), "working"),
        (evidence(UserPromptSubmit=ASKED, Stop=STOP), "end_of_turn"),
        (
            evidence(UserPromptSubmit=signal(START + 5), tail=recorded("interrupted", 13)),
            "interrupted",
        ),
        (evidence(UserPromptSubmit=ASKED, tail=recorded("interrupted", 13)), "working"),
        (evidence(PermissionRequest=signal(LATER, **TOOL)), "permission: Bash: rm -r x"),
        # the tool has returned its result since
        (
            evidence(
                UserPromptSubmit=signal(START + 3),
                PermissionRequest=signal(START + 4, **TOOL),
                tail=recorded("talk", 4),
            ),
            "working",
        ),
        # a queued message is a separate turn, for which no hook runs
        (evidence(Stop=signal(START + 5), tail=recorded("talk")), "working"),
    ],
)
def test_a_version_that_keeps_no_status_is_read_by_hooks_and_transcript(
    found: Evidence, reason: str
) -> None:
    assert told(found) == reason


def test_it_is_starting_until_it_says_that_its_session_has_begun() -> None:
    found = evidence("busy", SessionStart=signal(START - 100, "L0"))
    assert told(found) == "starting" and not CLAUDE.ready(found)
    assert CLAUDE.ready(evidence("idle"))


@pytest.mark.parametrize(
    ("asked", "allow", "deny"),
    [
        (signal(LATER, **TOOL), ("1",), ("Escape",)),
        (signal(LATER, **QUESTION), (), ("Escape",)),
        (signal(LATER, tool_name="ExitPlanMode", tool_input={}), (), ("Escape",)),
        (signal(START + 3, **TOOL), (), ("Escape",)),
    ],
)
def test_yes_is_said_only_to_the_plain_question_that_is_open(
    asked: object, allow: tuple[str, ...], deny: tuple[str, ...]
) -> None:
    found = evidence("waiting", PermissionRequest=asked)
    assert CLAUDE.answer(found, True) == allow
    assert CLAUDE.answer(found, False) == deny


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
EVENT = st.sampled_from(
    "SessionStart Stop StopFailure UserPromptSubmit PermissionRequest Notification Launch".split()
)
SIGNAL = st.fixed_dictionaries(
    {"launch": st.just("L1"), "time": st.floats() | JSON, "input": st.dictionaries(st.text(), JSON)}
)


@given(
    st.dictionaries(EVENT, SIGNAL | JSON),
    st.sampled_from(["busy", "idle", "waiting", ""]),
    st.binary(max_size=50),
    JSON,
)
def test_no_signal_can_break_a_listing(
    said: dict[str, object], word: str, noise: bytes, status: object
) -> None:
    found = evidence(word, tail=noise).updated({"signals": said})
    odd = json.dumps({"status": word, "startedAt": 1 << 52, "statusUpdatedAt": status}).encode()
    for each in (found, found.replace(status=odd), found.replace(status=noise)):
        assert iso(CLAUDE.signals(each).since)
        CLAUDE.answer(each, True)


# the delivery of a message


class Told:
    """A delivery whose files arrive one after the other; the last ones stay."""

    def __init__(self, *looks: dict[str, bytes], before: str = "idle", word: str = "idle") -> None:
        self.looks, self.pressed, self.paused = list(looks), 0, 0.0
        self.before, self.word = before, word

    def delivery(self) -> Delivery:
        return Delivery(
            record=RECORD,
            text="do it",
            unread=lambda: None,
            ended=lambda: False,
            pause=self.pause,
            before=evidence(self.before),
            told={},
            look=lambda: evidence(self.word),
            conversation=self.next,
            press_enter=self.press,
        )

    def next(self) -> dict[str, bytes]:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def pause(self, seconds: float) -> None:
        self.paused += seconds

    def press(self) -> None:
        self.pressed += 1


HISTORY = {"claude/history.jsonl": b'{"display":"do it"}\n'}
TAKEN = {"claude/projects/p/s.jsonl": b'{"type":"user","message":{"content":"do it"}}\n'}


def outcome(said: Told) -> str:
    return CLAUDE.evidence(said.delivery()).outcome


def test_a_message_is_delivered_once_the_transcript_has_it() -> None:
    said = Told({}, HISTORY, HISTORY, HISTORY | TAKEN)
    assert outcome(said) == "delivered" and said.pressed == 0


def test_a_busy_program_has_queued_what_it_sent_off() -> None:
    said = Told({}, HISTORY, before="busy")
    assert outcome(said) == "queued" and said.pressed == 0


def test_a_hook_tells_of_a_message_whose_files_have_grown_too_large() -> None:
    said = Told({}, before="busy")
    now = evidence("busy", UserPromptSubmit=signal(LATER, prompt="do it"))
    delivery = said.delivery().replace(look=lambda: now)
    assert CLAUDE.evidence(delivery).outcome == "queued"
    old = delivery.replace(before=now)  # the same text in an earlier message
    assert CLAUDE.evidence(old).outcome == "failed"


def test_a_command_that_leaves_no_trace_but_in_the_history_is_delivered() -> None:
    assert outcome(Told(HISTORY)) == "delivered"


def test_enter_is_pressed_again_only_while_the_text_stands_there() -> None:
    lost = Told(*[{}] * 20, HISTORY | TAKEN)
    assert outcome(lost) == "delivered" and lost.pressed == 1
    never = Told({})
    assert outcome(never) == "failed" and never.pressed == 6 and 50 < never.paused < 90


def test_enter_is_never_pressed_into_a_question() -> None:
    asks = Told({}, word="waiting")
    assert outcome(asks) == "failed" and asks.pressed == 0


def test_nothing_is_typed_before_the_input_box_is_there() -> None:
    """SessionStart came 2.5 s after a resumed launch, the box 3.4 s, and `idle` 3.6 s."""
    begun = START + 2
    assert not CLAUDE.ready(evidence("idle").replace(signals={}))
    assert not CLAUDE.ready(evidence().replace(now=begun + 20))
    assert CLAUDE.ready(evidence("idle").replace(now=begun))
    assert CLAUDE.ready(evidence("busy").replace(now=begun))
    # files of an earlier launch are ignored
    assert not CLAUDE.ready(evidence("idle", started=START - 60).replace(now=begun + 20))


def test_a_version_that_does_not_say_what_it_is_at_is_typed_to_in_the_end() -> None:
    begun = START + 2
    without = evidence().replace(status=b"")
    assert not CLAUDE.ready(without.replace(now=begun + 1))
    assert CLAUDE.ready(without.replace(now=begun + 6))
    assert CLAUDE.ready(evidence().replace(now=begun + 31))
