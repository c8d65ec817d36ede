"""What is made of the files Claude writes: recorded ones, torn ones and hostile ones."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr.agents.base import Tokens
from mngr.agents.claude import delivery, log
from mngr.agents.claude.agent import ClaudeAgent
from tests.support import metering

CLAUDE = ClaudeAgent()
RECORDED = Path(__file__).parent / "recorded" / "claude"
PROJECT = "claude/projects/-home-u-repo"
TALK = "ecf7af07-8772-4d9b-b34e-d12011ceee8b"
NESTED = "569cc81a-1bb9-4880-b332-ee3a430ccfdc"
OTHER = "01234567-89ab-4def-8123-456789abcdef"


def recorded(name: str) -> bytes:
    return (RECORDED / f"{name}.jsonl").read_bytes()


@pytest.fixture
def files() -> dict[str, bytes]:
    """A conversation, one of a program that the agent started, and one of a subagent."""
    return {
        f"{PROJECT}/{TALK}.jsonl": recorded("talk"),
        f"{PROJECT}/{NESTED}.jsonl": recorded("nested"),
        f"{PROJECT}/{TALK}/subagents/agent-a59cb5252e9713fc0.jsonl": recorded("subagent"),
        log.HISTORY: b'{"display":"nest now"}\n',
        log.LAUNCH: json.dumps({"input": {"session_id": TALK}}).encode(),
    }


def test_the_transcript_is_what_was_said_between_person_and_agent(files: dict[str, bytes]) -> None:
    turns = log.transcript(files)
    said = [(turn.type, turn.text) for turn in turns if turn.type != "tool_result" and turn.text]
    assert said == [
        ("user_message", "nest now"),
        ("assistant_message", "Nested done."),
        ("user_message", "sub now"),
        ("assistant_message", "Sub done"),
        ("assistant_message", "Done."),
        ("user_message", "long now"),
        ("user_message", "queued Aqueued B\nb2"),
        ("assistant_message", "No rule matches: queued Aqueued B\nb2"),
        ("user_message", "hold it"),
    ]
    calls = [tool for turn in turns for tool in turn.tools]
    results = [turn for turn in turns if turn.type == "tool_result"]
    assert [call.name for call in calls] == ["Bash", "Task", "Bash"]
    assert [call.id for call in calls] == [result.id for result in results]
    assert all(turn.time.startswith("2026-11-16T00:12:") for turn in turns)


def test_what_a_fork_repeats_is_told_once(files: dict[str, bytes]) -> None:
    forked = {**files, f"{PROJECT}/{OTHER}.jsonl": recorded("talk")}
    assert log.transcript(forked) == log.transcript(files)


def test_commands_are_told_as_they_were_typed() -> None:
    turns = log.transcript({f"{PROJECT}/{NESTED}.jsonl": recorded("commands")})
    said = [turn.text for turn in turns if turn.type == "user_message"]
    assert said == ["/clear", "/compact", "big again", "/compact"]


def test_usage_counts_each_answer_once_whoever_asked(files: dict[str, bytes]) -> None:
    assert metering.used(CLAUDE, files) == {
        "claude-opus-5-5": Tokens(input=8361, output=85, cache_read=16668, cache_write=70)
    }
    repeated = {**files, f"{PROJECT}/{OTHER}.jsonl": recorded("talk")}
    assert metering.used(CLAUDE, repeated) == metering.used(CLAUDE, files)
    # What its original was answered is not the clone's.
    cloned = {**files, log.PARENT: recorded("talk")}
    assert metering.used(CLAUDE, cloned)["claude-opus-5-5"].output == 15


def test_errors_are_neither_said_nor_paid_for() -> None:
    files = {f"{PROJECT}/{TALK}.jsonl": recorded("errors")}
    said = [each.text for each in log.transcript(files) if each.type == "assistant_message"]
    assert not any("API Error" in text for text in said)
    assert set(metering.used(CLAUDE, files)) == {"claude-opus-5-5"}


@pytest.mark.parametrize("parent", [False, True])
def test_a_text_that_looks_like_usage_is_not_usage(files: dict[str, bytes], parent: bool) -> None:
    # In a string, and in the input of a tool.
    fake = {"usage": {"input_tokens": 10**9, "output_tokens": 10**9}}
    entries = map(json.loads, recorded("nested").splitlines())
    entry = next(entry for entry in entries if entry["type"] == "assistant")
    block = {
        "type": "tool_use",
        "id": "t",
        "name": "Bash",
        "input": {**fake, "x": json.dumps(fake)},
    }
    entry["message"] |= {"id": "msg_tricky", "content": [block, {"type": "text", "text": "\n"}]}
    spent = entry["message"].pop("usage")
    entry["message"]["usage"] = spent  # as always, after the content
    files |= {log.PARENT: recorded("talk")} if parent else {}
    before = metering.used(CLAUDE, files)["claude-opus-5-5"]
    files |= {f"{PROJECT}/{OTHER}.jsonl": json.dumps(entry, separators=(",", ":")).encode()}
    after = metering.used(CLAUDE, files)["claude-opus-5-5"]
    assert after.input - before.input == spent["input_tokens"]
    assert after.output - before.output == spent["output_tokens"]


def test_a_file_can_neither_block_the_meter_nor_count_for_another_agent(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    talk = recorded("talk").replace(b"msg_", b"msg_x")
    metering.write(tmp_path / "fox", files | {f"{PROJECT}/nul.jsonl": b"\0\n"})
    metering.write(tmp_path / "hen", {f"{PROJECT}/forged\nfox/{PROJECT}/x.jsonl": talk})
    metering.write(tmp_path, {"elsewhere.jsonl": talk})
    os.mkfifo(tmp_path / "fox" / PROJECT / "pipe.jsonl")
    os.mkfifo(tmp_path / "fox" / log.PARENT)
    (tmp_path / "fox" / PROJECT / "link.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    sparse = tmp_path / "fox" / PROJECT / "sparse.jsonl"
    sparse.touch()
    os.truncate(sparse, 1 << 40)
    rows = metering.run(CLAUDE, tmp_path, "fox", "hen")
    assert rows == [["fox", "claude-opus-5-5", "8361", "85", "16668", "70"]]


def test_the_meter_says_nothing_where_nothing_was_said(tmp_path: Path) -> None:
    assert metering.run(CLAUDE, tmp_path, "fox") == metering.run(CLAUDE, tmp_path) == []


# whether a message was taken


def added(*entries: object) -> dict[str, bytes]:
    lines = b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)
    return {f"{PROJECT}/{TALK}.jsonl": lines}


def history(*shown: str) -> dict[str, bytes]:
    return {log.HISTORY: b"".join(json.dumps({"display": x}).encode() + b"\n" for x in shown)}


def user(content: object, **more: object) -> dict[str, object]:
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


QUEUED = {"type": "queue-operation", "operation": "enqueue", "content": "do it"}
COMMAND = "<command-name>/do</command-name>\n<command-args>it</command-args>"
LATER = {
    "type": "attachment",
    "attachment": {"type": "queued_command", "prompt": "do it", "commandMode": "prompt"},
}


@pytest.mark.parametrize(
    ("text", "new", "expected"),
    [
        ("do it", {}, ""),
        ("do it", added(user("do it")), "delivered"),
        ("do\tit ", added(user([{"type": "text", "text": "do    it"}])), "delivered"),
        ("do it", added(LATER), "delivered"),
        ("do it", added(QUEUED), "sent"),
        ("do it", history("do it"), "sent"),
        ("do it", history("[Pasted text #3 +90 lines]"), "sent"),
        ("do it", history("something else"), ""),
        ("do it", added(user("do it", isMeta=True)), ""),
        ("do it", added(user("do it", isSidechain=True)), ""),
        ("do it", added(user("do it", origin={"kind": "task"})), ""),
        ("do it", added({"type": "assistant", "message": {"content": "do it"}}), ""),
        ("/do it", added(user(COMMAND)), "delivered"),
        ("/do", added({"type": "system", "content": "Unknown command: /do"}), "refused"),
        ("do it", added({"type": "system", "content": "Unknown command: /do"}), ""),
    ],
)
def test_a_message_was_taken_when_the_files_say_so(
    text: str, new: dict[str, bytes], expected: str
) -> None:
    assert delivery.seen(text, new) == expected


def test_only_what_was_added_since_is_looked_at() -> None:
    before = {"a": b"one\n", "b": b"two\n"}
    now = {"a": b"one\nmore\n", "b": b"two\n", "c": b"new\n"}
    assert delivery.fresh(before, now) == {"a": b"more\n", "c": b"new\n"}
    assert delivery.fresh({"a": b"one\n"}, {"a": b"other"}) == {"a": b"other"}


# with any content of the files


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
KEYS = st.sampled_from(
    "type message content usage id model uuid timestamp isSidechain isMeta attachment origin "
    "prompt text tool_use_id input_tokens name input role display entrypoint kind".split()
)
ENTRY = st.dictionaries(KEYS, st.dictionaries(KEYS, JSON, max_size=4) | JSON, max_size=5)
KIND = st.sampled_from(["user", "assistant", "system", "attachment", "queue-operation"])


@given(st.lists(st.tuples(ENTRY, KIND), max_size=5), st.binary(max_size=40))
@settings(max_examples=100)
def test_no_file_can_break_what_reads_it(
    entries: list[tuple[dict[str, object], str]], noise: bytes
) -> None:
    lines = [json.dumps(entry | {"type": kind}, separators=(",", ":")) for entry, kind in entries]
    data = noise + b"\n" + "\n".join(lines).encode("utf-8", "surrogatepass") + noise
    files = {f"{PROJECT}/{TALK}.jsonl": data, log.HISTORY: data, log.LAUNCH: data}
    for turn in log.transcript(files):
        assert turn.type in ("user_message", "assistant_message", "tool_result")
    assert delivery.seen("do it", files) in ("", "delivered", "sent", "refused")


@given(st.integers(min_value=0), st.integers(min_value=0))
def test_a_torn_file_tells_what_is_whole_in_it(start: int, end: int) -> None:
    data = recorded("talk")
    whole = {turn.id: turn for turn in log.transcript({f"{PROJECT}/{TALK}.jsonl": data})}
    torn = data[start % len(data) : end % len(data)]
    for turn in log.transcript({f"{PROJECT}/{TALK}.jsonl": torn}):
        assert turn.text in whole[turn.id].text
