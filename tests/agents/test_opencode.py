"""The type `opencode`: what it makes of what the plugin wrote, and what it starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.agents.base import Delivery, LaunchContext, Tokens, options
from mngr.agents.opencode import talk
from mngr.agents.opencode.agent import CHOOSING, VALUED, OpenCodeAgent
from mngr.errors import UsageError
from mngr.model.records import AgentRecord, Started
from mngr.model.state import Evidence
from mngr.model.struct import Json
from tests.support import fox, metering

RECORDED = (Path(__file__).parent / "recorded" / "opencode.jsonl").read_bytes()
SESSION = "ses_e1e3753ccffeCwyyM0RXGjdNdp"
FILES = {talk.FILE: RECORDED}
BEGAN = 1794789360.0
OPENCODE = OpenCodeAgent()


def record(**changes: object) -> AgentRecord:
    return fox.record("opencode", BEGAN, **changes)


def evidence(tail: bytes = b"", title: str = "", prompt: bool = False) -> Evidence:
    said: Json = {"launch": "L2", "time": 0.0, "input": {"prompt": "go"}}
    return fox.evidence(record(), tail, title, {"Prompt": said} if prompt else {})


def state(word: str, text: str = "", time: float = BEGAN + 100, **more: Json) -> bytes:
    line = {"kind": "state", "time": time, "session": SESSION, "state": word, "text": text}
    return json.dumps({**line, **more}).encode() + b"\n"


# records


def test_the_transcript_holds_what_was_said() -> None:
    turns = OPENCODE.transcript(FILES)
    assert [(turn.type, turn.text) for turn in turns] == [
        ("user_message", "first: make a file"),
        ("assistant_message", "On it."),
        ("assistant_message", ""),
        ("tool_result", "out\n"),
        ("assistant_message", "Done."),
    ]
    [tool] = turns[2].tools
    assert tool.name == "bash" and tool.id == turns[3].id
    assert turns[1].model == "scripted" and turns[0].time.startswith("2026-11-16T00:36:28")


def test_usage_counts_each_answer_once() -> None:
    expected = {"scripted": Tokens(input=1267, output=11, cache_read=2495)}
    assert metering.used(OPENCODE, FILES) == expected
    assert metering.used(OPENCODE, {talk.FILE: RECORDED * 2 + b'{"kind":"spe'}) == expected


def test_the_meter_writes_large_sums_in_full() -> None:
    value = {"id": "m", "model": "scripted", "input": 3_000_000_001, "output": 3_000_000_002}
    line = json.dumps({"kind": "spent", "value": value}, separators=(",", ":")).encode()
    expected = Tokens(input=3_000_000_001, output=3_000_000_002)
    assert metering.used(OPENCODE, {talk.FILE: line + b"\n"}) == {"scripted": expected}


def test_what_another_agent_was_told_to_do_costs_but_is_not_told() -> None:
    child = RECORDED.replace(b'"session":"ses_', b'"child":true,"session":"ses_x')
    child = child.replace(b'"msg_', b'"msg_x')
    both = {talk.FILE: RECORDED + child}
    assert OPENCODE.transcript(both) == OPENCODE.transcript(FILES)
    assert metering.used(OPENCODE, both)["scripted"].output == 22
    assert talk.last_session(both[talk.FILE]) == SESSION


# states


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (state("busy"), "working"),
        (state("idle"), "end_of_turn"),
        (state("interrupted", "Aborted"), "interrupted"),
        (state("error", "no\nsuch model"), "error: no such model"),
        (state("permission", "bash: touch x"), "permission: bash: touch x"),
        (state("retry", "too many", attempt=1, next=BEGAN + 102), "working: retrying: too"),
        (state("retry", "refused", attempt=4, next=BEGAN + 130), "error: refused (tried 4 times)"),
        (
            state("retry", "used up", attempt=1, next=BEGAN + 4000),
            "quota: resets 2026-11-16T01:42:40Z",
        ),
    ],
)
def test_the_last_word_is_the_state(line: bytes, reason: str) -> None:
    told = OPENCODE.signals(evidence(RECORDED + line))
    assert told.reason.startswith(reason) and told.since == BEGAN + 100


GONE = "Cannot connect to API: Is the computer able to access the url?"


def test_a_server_that_stays_away_is_unreachable_until_it_answers() -> None:
    first = state("retry", GONE, BEGAN + 100, attempt=3, next=BEGAN + 108)
    again = state("retry", GONE, BEGAN + 109, attempt=4, next=BEGAN + 209)
    trying = first + again + state("busy", time=BEGAN + 209)
    step: Json = {"id": "p", "messageID": "m", "type": "step-start"}
    begun = json.dumps({"kind": "part", "time": BEGAN + 210, "value": step}).encode() + b"\n"

    def told(tail: bytes, now: float = 211) -> str:
        return OPENCODE.signals(evidence(RECORDED + tail).replace(now=BEGAN + now)).reason

    assert told(first).startswith("working: retrying")
    assert told(first + again) == told(trying) == f"unreachable: {GONE} (tried 4 times)"
    assert OPENCODE.signals(evidence(RECORDED + trying)).since == BEGAN + 100
    assert told(trying + begun) == told(trying, now=300) == "working"
    assert told(trying + state("idle", time=BEGAN + 211)) == "end_of_turn"


def said(time: float, created: float) -> bytes:
    value: Json = {"id": "msg_z", "role": "user", "time": {"created": int(created * 1000)}}
    line = {"kind": "message", "time": time, "session": SESSION, "value": value}
    return json.dumps(line).encode() + b"\n"


@pytest.mark.parametrize("word", ["ready", "idle", "interrupted", "error"])
def test_what_it_was_just_told_is_work(word: str) -> None:
    rest = state(word)
    message = said(BEGAN + 105, BEGAN + 105)
    soon = evidence(rest + message).replace(now=BEGAN + 106)
    assert OPENCODE.signals(soon).reason == "working"
    for tail, now in {rest + message: 200, rest + said(BEGAN + 105, BEGAN + 90): 106}.items():
        assert OPENCODE.signals(evidence(tail).replace(now=BEGAN + now)).waiting


def test_what_an_earlier_launch_said_does_not_count() -> None:
    old = RECORDED + state("busy", time=BEGAN - 1)
    later = BEGAN + 1000
    at_rest = evidence(old).replace(started=Started(launch="L2", pid=7, time=later))
    assert OPENCODE.signals(at_rest).waiting == ""
    ready = at_rest.replace(tail=old + state("ready", time=later + 1))
    assert OPENCODE.signals(ready).waiting == "end_of_turn"


def test_before_it_has_begun_with_its_prompt_it_does_not_wait() -> None:
    assert OPENCODE.signals(evidence(state("ready"), prompt=True)).working
    assert OPENCODE.signals(evidence(prompt=True)).working
    assert OPENCODE.signals(evidence(state("ready"))).waiting == "end_of_turn"
    assert OPENCODE.signals(evidence()).reason == "starting"


def test_it_can_be_typed_to_once_it_has_named_its_terminal() -> None:
    titles = ["vm", "OpenCode", "OC | Fix the test", "OC"]
    assert [OPENCODE.ready(evidence(title=title)) for title in titles] == [False, True, True, False]


def test_one_that_resumes_is_ready_when_the_conversation_is_on_its_screen() -> None:
    later = Started(launch="L2", pid=7, time=BEGAN + 1000)
    found = [
        evidence(RECORDED + line, title=title).replace(started=later)
        for line in (b"", state("ready", time=BEGAN + 1001), state("busy", time=BEGAN + 1002))
        for title in ("OpenCode", "OC | x")
    ]
    assert [OPENCODE.ready(each) for each in found] == [False, True, False, True, True, True]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "role", "type", "text", "state", "messageID", "time", "input"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
LINES = st.builds(
    lambda kind, rest: json.dumps({"kind": kind, **rest}).encode(),
    st.sampled_from(["state", "message", "part", "spent", "session"]),
    st.dictionaries(
        st.sampled_from(["value", "time", "session", "state", "text", "next", "attempt"]), JSON
    ),
)


@given(st.lists(LINES | st.binary(max_size=30), max_size=8).map(b"\n".join))
def test_nothing_an_agent_writes_breaks_a_reading(data: bytes) -> None:
    files = {talk.FILE: data}
    for tail in (data, RECORDED + data):
        OPENCODE.signals(evidence(tail))
        OPENCODE.signals(evidence(tail, prompt=True))
    OPENCODE.transcript(files)
    talk.heard(files, "x")
    OPENCODE.prepare(context().replace(parent={talk.FILE: RECORDED + data}))
    assert OPENCODE.resume(context().replace(evidence=evidence(data))).argv[0] == "opencode"


# messages


def receipt(before: bytes, after: list[bytes]) -> str:
    """What a message becomes when the record grows like this, one look after the other."""
    looks = iter(after)
    now = [before]

    def look() -> dict[str, bytes]:
        now[0] = next(looks, now[0])
        return {talk.FILE: now[0]}

    delivery = Delivery(
        record=record(),
        text="first: make a file",
        unread=lambda: None,
        ended=lambda: False,
        pause=lambda _: None,
        before=evidence(before),
        told={talk.FILE: before},
        look=lambda: evidence(before),
        conversation=look,
        press_enter=lambda: None,
    )
    return OPENCODE.evidence(delivery).outcome


def again(*, answered: bool) -> bytes:
    lines = RECORDED.replace(b"msg_", b"msg_2").replace(b"prt_", b"prt_2").splitlines(True)
    return b"".join(lines[: 12 if answered else 6])


def test_a_message_is_delivered_when_it_stands_in_the_conversation() -> None:
    assert receipt(RECORDED, [RECORDED, RECORDED + again(answered=False)]) == "delivered"
    assert receipt(b"", [b"", RECORDED]) == "delivered"
    assert receipt(RECORDED, [RECORDED]) == "failed"


def test_a_busy_one_has_it_queued_until_it_answers() -> None:
    busy = RECORDED + state("busy")
    assert receipt(busy, [busy, busy + again(answered=False)]) == "queued"
    assert receipt(busy, [busy, busy + again(answered=True)]) == "delivered"


# launches


def context(prompt: str = "", **changes: object) -> LaunchContext:
    return LaunchContext(record=record(**changes), state_dir="/home/fox/state", prompt=prompt)


def test_a_terminal_on_which_it_would_crash_is_refused() -> None:
    with pytest.raises(UsageError, match="30 columns"):
        OPENCODE.prepare(context(width=30))
    OPENCODE.prepare(context(width=40))
    OPENCODE.prepare(context("go", width=30, headless=True))


def test_the_first_prompt_rides_in_argv() -> None:
    launch = OPENCODE.prepare(context("-x: go", argv=("--model", "a/b")))
    assert launch.argv == ("opencode", "--model", "a/b", "--prompt=-x: go")
    assert launch.took_prompt
    assert launch.env["OPENCODE_DB"] == "/home/fox/state/opencode/opencode.db"
    assert launch.links == {"transcript": "/home/fox/state/opencode/talk.jsonl"}
    assert not OPENCODE.prepare(context("x" * 100_000)).took_prompt


def test_elsewhere_the_users_login_and_settings_come_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, name in (("XDG_DATA_HOME", "auth.json"), ("XDG_CONFIG_HOME", "opencode.jsonc")):
        monkeypatch.setenv(variable, str(tmp_path))
        (tmp_path / "opencode").mkdir(exist_ok=True)
        (tmp_path / "opencode" / name).write_text(f"of {name}")
    here, away = OPENCODE.prepare(context()), context(pass_login=True).replace(local=False)
    assert OPENCODE.prepare(context().replace(local=False)).env == here.env
    there = OPENCODE.prepare(away)
    assert there.env == {**here.env, "OPENCODE_AUTH_CONTENT": "of auth.json"}
    assert there.files["opencode/opencode.jsonc"] == (b"of opencode.jsonc", 0o600)
    assert "opencode/opencode.jsonc" not in here.files


def test_secrets_in_the_settings_stay_here_unless_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "opencode" / "opencode.json"
    file.parent.mkdir()
    text = """{
      // mine: "s3cret"
      "model": "a/b", /* "s3cret" */
      "provider": {"acme": {"options": {"apiKey": "s3cret", "baseURL": "https://a.example//v1"}},
                   "fox": {"options": {"apiKey": "{env:FOX_KEY}", "later": "s3cret"},
                           "models": {"m": {"name": "M", "limit": {"context": 9}}}}},
      "permission": {"edit": "deny", "bash": {"git *": "allow"}},
      "agent": {"plan": {"model": "a/c", "prompt": "s3cret", "tools": {"bash": false}}},
      "plugin": ["s3cret"],
      "mcp": {"box": {"environment": {"ANY": "s3cret"}, "command": ["box", "a, ]", "//b"],}},
      "keybinds": {"leader": "ctrl+x"},
    }"""
    file.write_text(text)
    whole = OPENCODE.prepare(context(pass_login=True).replace(local=False))
    assert whole.files["opencode/opencode.jsonc"][0].decode() == text and whole.remarks == ()
    launch = OPENCODE.prepare(context().replace(local=False))
    assert "s3cret" not in repr(launch)
    assert json.loads(launch.files["opencode/opencode.jsonc"][0]) == {
        "model": "a/b",
        "provider": {
            "acme": {"options": {"baseURL": "https://a.example//v1"}},
            "fox": {
                "options": {"apiKey": "{env:FOX_KEY}"},
                "models": {"m": {"name": "M", "limit": {"context": 9}}},
            },
        },
        "permission": {"edit": "deny", "bash": {"git *": "allow"}},
        "agent": {"plan": {"model": "a/c", "tools": {"bash": False}}},
        "keybinds": {"leader": "ctrl+x"},
    }
    (told,) = launch.remarks
    assert told == (
        "opencode.json: not copied to another machine: provider.acme.options.apiKey, "
        "provider.fox.options.later, agent.plan.prompt, plugin, mcp; "
        "use --pass-login to copy all settings"
    )
    # What cannot be read cannot be known to hold no secret.
    file.write_text('{"model": ')
    launch = OPENCODE.prepare(context().replace(local=False))
    assert "opencode/opencode.jsonc" not in launch.files and "not copied" in launch.remarks[0]
    # A comment can hold a secret too.
    file.write_text('{"model": "a/b",} // s3cret')
    launch = OPENCODE.prepare(context().replace(local=False))
    assert launch.files["opencode/opencode.jsonc"][0] == b'{"model": "a/b"}'
    assert launch.remarks == ()


def test_a_run_without_a_screen_is_opencode_run() -> None:
    launch = OPENCODE.prepare(context("do  it now", headless=True, argv=("--format", "json")))
    assert launch.argv == ("opencode", "run", "--format", "json", "--", "do", "", "it", "now")


def test_start_resumes_the_newest_conversation_without_saying_the_prompt_again() -> None:
    argv = ("--model", "a/b", "--prompt", "say this", "--continue", "--agent=plan", "--", "x")
    resumed = OPENCODE.resume(context(argv=argv).replace(evidence=evidence(RECORDED, prompt=True)))
    words = ("opencode", "--model", "a/b", "--agent=plan", "--session", SESSION)
    assert resumed.argv == words and not resumed.files


def test_a_run_without_a_screen_is_run_again() -> None:
    seen = evidence(RECORDED, prompt=True)
    again = OPENCODE.resume(context(headless=True).replace(evidence=seen))
    first = OPENCODE.prepare(context("go", headless=True).replace(parent=FILES))
    assert again.argv == first.argv == ("opencode", "run", "--", "go")


def test_a_conversation_that_never_began_begins_again() -> None:
    ready = evidence(state("ready", session=""), prompt=True)
    assert OPENCODE.resume(context().replace(evidence=ready)).argv == ("opencode", "--prompt=go")
    nothing = OPENCODE.resume(context().replace(evidence=evidence(prompt=True)))
    assert nothing.argv == ("opencode", "--prompt=go")


def test_a_clone_goes_on_with_a_copy_under_an_id_of_its_own_and_owes_nothing() -> None:
    launch = OPENCODE.prepare(context("then this").replace(parent=FILES))
    session = launch.argv[3]
    script = "/home/fox/state/opencode/begin.sh"
    assert launch.argv == ("sh", script, "--session", session, "--prompt=then this")
    files = {path: content for path, (content, _) in launch.files.items()}
    assert not any(SESSION.encode() in content for content in files.values())
    assert OPENCODE.transcript(files) == OPENCODE.transcript(FILES)
    assert metering.used(OPENCODE, files) == {}
    exported = json.loads(files["opencode/session.json"])
    assert exported["info"]["id"] == session == talk.last_session(files[talk.FILE])
    roles = [each["info"]["role"] for each in exported["messages"]]
    assert roles == ["user", "assistant", "assistant"]


@given(st.lists(st.sampled_from(["-m", "--model=x", "word", "--", "--auto", "--prompt", "-c"])))
def test_options_keep_nothing_that_begins_a_conversation(words: list[str]) -> None:
    kept = list(options(words, VALUED, CHOOSING))
    assert not {"--prompt", "-c"} & {x for n, x in enumerate(kept) if kept[n - 1] != "-m"}
    assert options(kept, VALUED, CHOOSING) == tuple(kept)
