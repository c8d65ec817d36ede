"""The plugin that OpenCode loads, fed with the events that the real program sends."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TypeAlias

from mngr.agents.base import Tokens
from mngr.agents.opencode import talk
from mngr.agents.opencode.agent import OpenCodeAgent
from mngr.agents.opencode.plugin import plugin
from mngr.model.struct import Json
from tests.support import metering

DRIVER = """
import { readFileSync } from "node:fs"
import { Mngr } from "./mngr.mjs"
const hooks = await Mngr({})
for (const event of JSON.parse(readFileSync("events.json"))) await hooks.event?.({ event })
"""


def run(folder: Path, *events: tuple[str, dict[str, Json]], mark: str = "") -> bytes:
    """What the plugin writes down when these events happen."""
    file = folder / "talk.jsonl"
    (folder / "mngr.mjs").write_bytes(plugin(str(file)))
    (folder / "driver.mjs").write_text(DRIVER)
    listed = [{"type": kind, "properties": properties} for kind, properties in events]
    (folder / "events.json").write_text(json.dumps(listed))
    env = {"PATH": os.environ["PATH"], "MNGR_OPENCODE": mark}
    subprocess.run(["node", "driver.mjs"], cwd=folder, env=env, check=True, timeout=60)
    return file.read_bytes() if file.exists() else b""


def session(id: str = "ses_1", **more: Json) -> tuple[str, dict[str, Json]]:
    return "session.created", {"info": {"id": id, "title": "t", "time": {"created": 5}, **more}}


def message(id: str, role: str, done: bool, **more: Json) -> tuple[str, dict[str, Json]]:
    time: dict[str, Json] = {"created": 5, **({"completed": 6} if done else {})}
    info = {"id": id, "role": role, "sessionID": "ses_1", "modelID": "m x", "time": time, **more}
    return "message.updated", {"info": info}


def part(message: str, id: str, **more: Json) -> tuple[str, dict[str, Json]]:
    ids = {"id": id, "messageID": message, "sessionID": "ses_1"}
    return "message.part.updated", {"part": {**ids, **more}}


def status(**status: Json) -> tuple[str, dict[str, Json]]:
    return "session.status", {"sessionID": "ses_1", "status": status}


SPENT: dict[str, Json] = {
    "tokens": {"input": 10, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}}
}
Event: TypeAlias = tuple[str, dict[str, Json]]
IDLE: Event = ("session.idle", {"sessionID": "ses_1"})
ASK: Event = ("permission.asked", {"id": "p1", "sessionID": "ses_1", "permission": "bash"})


def test_a_turn_is_written_down(tmp_path: Path) -> None:
    data = run(
        tmp_path,
        session(),
        message("msg_1", "user", done=False),
        part("msg_1", "prt_1", type="text", text="hello"),
        status(type="busy"),
        message("msg_2", "assistant", done=False),
        part("msg_2", "prt_2", type="text", text="th"),
        part("msg_2", "prt_2", type="text", text="there", time={"end": 1}),
        part("msg_2", "prt_3", type="tool", tool="bash", callID="c", state={"status": "running"}),
        part(
            *("msg_2", "prt_3"),
            type="tool",
            tool="bash",
            callID="c",
            state={"status": "completed", "input": {"command": "ls"}, "output": "a"},
        ),
        message("msg_2", "assistant", done=True, **SPENT),
        message("msg_2", "assistant", done=True, **SPENT),
        IDLE,
    )
    files = {talk.FILE: data}
    told = [(turn.type, turn.text) for turn in talk.transcript(files)]
    assert told == [
        ("user_message", "hello"),
        ("assistant_message", "there"),
        ("assistant_message", ""),
        ("tool_result", "a"),
    ]
    expected = Tokens(input=10, output=5, cache_read=4, cache_write=5)
    assert metering.used(OpenCodeAgent(), files) == {"m_x": expected}
    assert data.count(b'"kind":"spent"') == 1
    assert talk.last_moment(data, 0.0).word == "idle"
    assert talk.last_session(data) == "ses_1"
    assert (tmp_path / "talk.jsonl").stat().st_mode & 0o777 == 0o600


def words(data: bytes) -> list[str]:
    found = [json.loads(line) for line in data.splitlines()]
    return [" ".join(f"{x['state']} {x['text']}".split()) for x in found if x["kind"] == "state"]


def test_a_permission_stands_until_every_question_is_answered(tmp_path: Path) -> None:
    second: dict[str, Json] = {
        "id": "p2",
        "sessionID": "ses_1",
        "permission": "edit",
        "patterns": ["a", "b"],
    }
    data = run(
        tmp_path,
        status(type="busy"),
        (ASK[0], {**ASK[1], "metadata": {"command": "touch x"}}),
        ("permission.asked", second),
        status(type="busy"),
        ("permission.replied", {"sessionID": "ses_1", "requestID": "p1", "reply": "once"}),
        ("permission.replied", {"sessionID": "ses_1", "requestID": "p2", "reply": "reject"}),
    )
    assert words(data) == [
        *("ready", "busy", "permission bash: touch x", "permission edit: a, b"),
        *("permission edit: a, b", "busy"),
    ]


def test_how_a_turn_failed_is_not_covered_by_its_end(tmp_path: Path) -> None:
    aborted: Json = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
    refused: Json = {"name": "APIError", "data": {"message": "no such model"}}
    data = run(
        tmp_path,
        message("msg_1", "user", done=False),
        status(type="busy"),
        status(type="retry", attempt=2, message="too many", next=99_000),
        ("session.error", {"sessionID": "ses_1", "error": aborted}),
        IDLE,
        message("msg_2", "user", done=False),
        status(type="busy"),
        ("session.error", {"sessionID": "ses_1", "error": refused}),
        status(type="busy"),
        IDLE,
        message("msg_2", "user", done=False, summary={}),
        message("msg_3", "user", done=False),
        status(type="busy"),
        IDLE,
    )
    assert words(data) == [
        *("ready", "busy", "retry too many", "interrupted Aborted"),
        *("busy", "error no such model", "busy", "idle"),
    ]
    assert b'"attempt":2,"next":99}' in data


def test_what_is_not_the_agents_own_doing_is_left_out(tmp_path: Path) -> None:
    child: Event = ("session.idle", {"sessionID": "ses_2"})
    copied = message("msg_9", "assistant", done=True, **SPENT)
    data = run(tmp_path, session("ses_2", parentID="ses_1"), child, copied, status(type="busy"))
    assert words(data) == ["ready", "busy"]
    assert b'"spent"' not in data


def test_one_that_the_agent_starts_keeps_silent(tmp_path: Path) -> None:
    assert run(tmp_path, session(), IDLE, mark="1") == b""


def test_events_of_another_shape_do_no_harm(tmp_path: Path) -> None:
    kinds = ["session.updated", "message.updated", "message.part.updated", "session.status"]
    kinds += ["session.error", "permission.asked", "permission.replied", "question.asked"]
    data = run(tmp_path, *((kind, {}) for kind in kinds), ("new.event", {}), IDLE)
    assert words(data)[-1] == "idle"
