"""The type `codex`: what it makes of the program's records, and what it starts."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.agents.base import LaunchContext, Tokens, options
from mngr.agents.codex import home as codex_home
from mngr.agents.codex import rollout as codex_rollout
from mngr.agents.codex.agent import VALUED, CodexAgent
from mngr.errors import UsageError
from mngr.model.records import AgentRecord
from mngr.model.state import Evidence
from mngr.model.struct import Json
from tests.support import fox, metering
from tests.support.cli import Cli, lives, until

RECORDED = (Path(__file__).parent / "recorded" / "codex.jsonl").read_bytes()
THREAD = "01a1e1af-a24f-7be1-9959-d31d8b696517"
PATH = f"codex/sessions/2026/11/16/rollout-2026-11-16T00-09-06-{THREAD}.jsonl"
FILES = {PATH: RECORDED, codex_rollout.THREADS: f"{THREAD}\n".encode()}
BEGAN = 1794787740.0
CODEX = CodexAgent()


def record(**changes: object) -> AgentRecord:
    return fox.record("codex", BEGAN, **changes)


def evidence(
    tail: bytes = b"", title: str = "", said: dict[str, Json] | None = None, **changes: object
) -> Evidence:
    return fox.evidence(record(**changes), tail, title, said)


def signal(input: dict[str, Json] | None = None, launch: str = "L2", time: float = 0.0) -> Json:
    return {"launch": launch, "time": time, "input": input or {}}


def upto(*words: str) -> bytes:
    """The recording up to the first line that holds all these words."""
    lines = RECORDED.splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines) if all(w.encode() in line for w in words))
    return b"".join(lines[: end + 1])


# records


def test_the_transcript_holds_what_was_said_and_not_what_codex_adds() -> None:
    turns = CODEX.transcript(FILES)
    user = [turn.text for turn in turns if turn.type == "user_message"]
    assert user[:3] == ["please run it", "please ask me", "again, ask me"]
    assert "queued one\nsecond line" in user
    assert user[-3:] == ["please bad", "please broken", "please quota"]
    said = [turn for turn in turns if turn.type == "assistant_message" and turn.text]
    assert [turn.text for turn in said][:3] == ["Working.", "All done.", "After the question."]
    assert {turn.model for turn in said} == {"scripted"}
    [tool] = next(turn.tools for turn in turns if turn.tools)
    assert (tool.name, tool.input) == ("exec_command", {"cmd": "echo changed > a; echo out"})
    result = next(turn for turn in turns if turn.type == "tool_result")
    assert result.id == tool.id and result.text.endswith("Output:\nout\n")


def test_usage_counts_each_response_once_with_the_cache_apart() -> None:
    doubled = {PATH: RECORDED + RECORDED}
    assert (
        metering.used(CODEX, doubled)
        == metering.used(CODEX, FILES)
        == {"scripted": Tokens(input=16070, output=139, cache_read=31965)}
    )


def test_conversations_of_a_nested_codex_cost_but_are_not_told() -> None:
    other = THREAD.replace("01a1", "0000")
    nested = {PATH.replace(THREAD, other): RECORDED.replace(b"please", b"nested")}
    turns = CODEX.transcript({**FILES, **nested})
    assert turns == CODEX.transcript(FILES)
    assert metering.used(CODEX, {**FILES, **nested})["scripted"].output == 2 * 139


def test_the_meter_writes_large_sums_in_full(tmp_path: Path) -> None:
    usage: Json = {"input_tokens": 6_000_000_003, "cached_input_tokens": 3_000_000_002}
    lines: list[Json] = [
        {"type": "turn_context", "payload": {"model": "scripted"}},
        {"type": "token_usage_record", "payload": {"response_id": "r", "usage": usage}},
    ]
    text = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
    metering.write(tmp_path / "fox", {PATH: text.encode() + b"\n"})
    os.mkfifo(tmp_path / "fox" / PATH.replace("01a1", "01a2"))
    rows = metering.run(CODEX, tmp_path, "fox")
    assert rows == [["fox", "scripted", "3000000001", "0", "3000000002", "0"]]


# states


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("task_started",), "working"),
        (("task_complete", "All done."), "end_of_turn"),
        (("turn_aborted", "interrupted"), "interrupted"),
        (("task_complete", '"other"'), "error: scripted"),
        (("task_complete", "internal_server_error"), "error: We’re currently experiencing"),
        (("task_complete", "usage_limit_exceeded"), "quota: resets 1:07 AM"),
    ],
)
def test_the_end_of_the_rollout_tells_how_the_turn_stands(
    words: tuple[str, ...], reason: str
) -> None:
    said: dict[str, Json] = {"SessionStart": signal()}
    for title in ("", "Ready", "Working", "vm"):
        told = CODEX.signals(evidence(upto(*words), title, said))
        assert told.reason.startswith(reason)
        assert told.since > BEGAN


def test_a_quota_has_its_reset_in_utc_where_codex_was_told() -> None:
    window = b'{"used_percent":100.0,"window_minutes":300,"resets_at":1794791220}'
    other = b'{"used_percent":40.0,"window_minutes":10080,"resets_at":1794999999}'
    limits = b'"rate_limits":{"primary":%b,"secondary":%b}' % (window, other)
    tail = upto("usage_limit_exceeded").replace(
        b'"type":"token_count",', b'"type":"token_count",%b,' % limits
    )
    told = CODEX.signals(evidence(tail, "Ready"))
    assert told.reason == "quota: resets 2026-11-16T01:07:00Z"


def test_a_quota_that_was_reset_says_so() -> None:
    moment = codex_rollout.TurnState(reset=1794791220.0)
    assert codex_rollout.reset_time(moment, 1794791219.0) == "resets 2026-11-16T01:07:00Z"
    assert codex_rollout.reset_time(moment, 1794791221.0).startswith("was reset 2026-11-16T01:07")


def retry(second: int, pause: int, turn: str) -> bytes:
    said = "stream connection failed; waiting to retry"
    told = f"turn_id={turn} error=Connection failed: error sending request retry_delay={pause}s"
    when = f"2026-11-16T01:00:{second:02d}.5Z"
    return f"{when}  WARN codex_core::responses_retry: {said} {told}\n".encode()


def test_a_server_that_stays_away_is_unreachable_until_something_is_written_down() -> None:
    tail = upto("task_started")
    turn = codex_rollout.last_moment(tail, "").turn
    assert turn
    gone = retry(1, 5, turn) + retry(7, 10, turn) + retry(18, 20, turn)
    now = 1794790800.0 + 19

    def told(log: bytes, later: float = 0.0, tail: bytes = tail) -> str:
        found = evidence(tail, "Thinking", {"SessionStart": signal()})
        return CODEX.signals(found.replace(status=log, now=now + later)).reason

    assert told(gone).startswith("unreachable: Connection failed: error sending request (")
    assert told(gone[: gone.rindex(b"2026")]) == "working"
    assert told(gone.replace(turn.encode(), b"another")) == "working"
    assert told(gone, later=90) == "working"
    answer = b'{"timestamp":"2026-11-16T01:00:39.1Z","type":"response_item","payload":{}}\n'
    assert told(gone, tail=tail + answer) == "working"
    found = evidence(tail, "Thinking", {}).replace(status=gone, now=now)
    assert CODEX.signals(found).since == 1794790801.5


def test_its_log_is_kept_small_and_its_filter_from_what_the_agent_runs(home: Path) -> None:
    launch = CODEX.prepare(context())
    assert launch.links["status"] == "/home/fox/state/codex/log/codex-tui.log"
    assert launch.env["RUST_LOG"] == "codex_core::responses_retry=warn"
    assert settings(context(), "mngr.config.toml")["shell_environment_policy"] == {
        "exclude": ["RUST_LOG"]
    }
    mine = context().replace(env={"RUST_LOG": "debug"})
    assert "RUST_LOG" not in CODEX.prepare(mine).env
    assert "shell_environment_policy" not in settings(mine, "mngr.config.toml")


def test_what_an_earlier_launch_left_unfinished_is_not_work() -> None:
    tail = upto("task_started").replace(b"2026-11-16", b"2026-11-15")
    assert CODEX.signals(evidence(tail, "Ready")).waiting == "end_of_turn"
    assert CODEX.signals(evidence(tail, "vm")).reason == "starting"


ASKED: dict[str, Json] = {
    "SessionStart": signal(time=BEGAN + 1),
    "PermissionRequest": signal(
        {"tool_name": "Bash", "tool_input": {"command": "touch\n/etc/x", "description": "Why?"}},
        time=1794787762.57,
    ),
}


@pytest.mark.parametrize("title", ["[ ! ] Action Required", "[ . ] Action Required | fox", "vm"])
def test_a_permission_comes_with_its_question(title: str) -> None:
    told = CODEX.signals(evidence(upto("please ask me", "item_completed"), title, ASKED))
    assert told.reason == "permission: Bash: touch /etc/x (Why?)"
    assert told.since == 1794787762.57


def test_a_permission_is_over_once_it_was_answered() -> None:
    asking = upto("please ask me", "item_completed")
    assert CODEX.signals(evidence(asking, "Working", ASKED)).working
    assert CODEX.signals(evidence(upto("fc_10_0"), "vm", ASKED)).waiting == "permission"
    answered = upto("function_call_output", "call_10_0")
    assert CODEX.signals(evidence(answered, "vm", ASKED)).working


def test_at_rest_before_the_first_prompt_it_waits_unless_a_prompt_is_on_its_way() -> None:
    assert CODEX.signals(evidence(title="Ready")).waiting == "end_of_turn"
    prompt = {"Prompt": signal({"prompt": "go"})}
    assert not CODEX.signals(evidence(title="Ready", said=prompt)).waiting
    assert CODEX.signals(evidence(title="Starting")).working
    assert CODEX.signals(evidence(title="vm")).reason == "starting"


def test_a_last_line_larger_than_the_tail_does_not_hide_the_end() -> None:
    tail = b'x"' * 8000 + b"}}\n"
    said: dict[str, Json] = {"SessionStart": signal(), "Prompt": signal({"prompt": "go"})}
    assert CODEX.signals(evidence(tail, "Ready", said)).waiting == "end_of_turn"
    assert CODEX.signals(evidence(tail, "Working", said)).working


def test_one_that_is_not_logged_in_says_so() -> None:
    said: dict[str, Json] = {"Login": signal(), "Prompt": signal({"prompt": "go"})}
    assert "codex login" in CODEX.signals(evidence(title="vm", said=said)).reason
    assert CODEX.signals(evidence(title="Working", said=said)).working


def test_it_can_be_typed_to_once_its_title_says_so() -> None:
    titles = ["vm", "Starting", "Ready", "Working", "fox | Ready"]
    assert [CODEX.ready(evidence(title=title)) for title in titles] == [False, False, *[True] * 3]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "payload", "item", "content", "text", "error", "message"])
            | st.sampled_from(["info", "usage", "output", "input_tokens", "timestamp", "id"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
KINDS = ["event_msg", "response_item", "turn_context", "token_usage_record", "session_meta"]
TYPES = ["task_complete", "turn_aborted", "token_count", "message", "function_call"]
LINES = st.builds(
    lambda kind, type, payload, rest: json.dumps(
        {"type": kind, "payload": {**payload, "type": type}, **rest}
    ).encode(),
    st.sampled_from(KINDS),
    st.sampled_from(TYPES) | JSON,
    st.dictionaries(st.sampled_from(["error", "item", "usage", "info", "role", "content"]), JSON),
    st.dictionaries(st.sampled_from(["timestamp", "ordinal"]), JSON),
)
HOSTILE = st.lists(LINES | st.binary(max_size=40), max_size=8).map(b"\n".join)


@given(HOSTILE, st.text(max_size=30), st.dictionaries(st.sampled_from([*ASKED, "Prompt"]), JSON))
def test_nothing_an_agent_writes_breaks_a_reading(
    data: bytes, title: str, said: dict[str, Json]
) -> None:
    files = {PATH: data, codex_rollout.HISTORY: data, codex_rollout.THREADS: data}
    kept: dict[str, Json] = {key: signal({"tool_input": value}) for key, value in said.items()}
    for shown in (title, "Ready", "[ ! ] Action Required"):
        CODEX.signals(evidence(data, shown, kept))
        CODEX.signals(evidence(data, shown, said))
        CODEX.ready(evidence(data, shown, said))
    CODEX.transcript(files)
    resumed = CODEX.resume(context().replace(evidence=evidence(data, title, said)))
    assert resumed.argv[0] == "codex"


@given(st.integers(min_value=0, max_value=len(RECORDED)))
def test_a_torn_tail_reads_like_a_whole_one(start: int) -> None:
    whole = CODEX.signals(evidence(RECORDED, "Ready"))
    torn = CODEX.signals(evidence(RECORDED[start:], "Ready"))
    last = RECORDED.rstrip(b"\n").rfind(b"\n") + 1
    assert torn == whole if start <= last else torn.waiting == "end_of_turn"


# launches


def context(prompt: str = "", **changes: object) -> LaunchContext:
    return LaunchContext(record=record(**changes), state_dir="/home/fox/state", prompt=prompt)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own Codex home, empty."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    return tmp_path


def settings(context: LaunchContext, name: str) -> dict[str, Any]:
    content, mode = CODEX.prepare(context).files[f"codex/{name}"]
    assert mode == 0o600
    return tomllib.loads(content.decode())


def test_the_first_prompt_rides_in_argv(home: Path) -> None:
    launch = CODEX.prepare(context("-x: go", argv=("--model", "m")))
    assert launch.argv == ("codex", "--profile", "mngr", "--model", "m", "--", "-x: go")
    assert launch.took_prompt
    assert launch.env["CODEX_HOME"] == "/home/fox/state/codex"
    assert not CODEX.prepare(context("x" * 100_000)).took_prompt


def test_a_run_without_a_screen_is_codex_exec(home: Path) -> None:
    launch = CODEX.prepare(context("go", headless=True, argv=("--json",)))
    words = ("codex", "exec", "--skip-git-repo-check", "--profile", "mngr", "--json", "--", "go")
    assert launch.argv == words


def test_start_resumes_the_newest_conversation_without_saying_the_prompt_again(
    home: Path,
) -> None:
    said: dict[str, Json] = {
        "SessionStart": signal({"session_id": THREAD}, launch="L1"),
        "Prompt": signal({"prompt": "go"}, launch="L1"),
    }
    argv = ("--model", "m", "say this", "-i=a.png", "--search", "--", "or this")
    resumed = CODEX.resume(context(argv=argv).replace(evidence=evidence(said=said)))
    words = ("codex", "resume", THREAD, "--profile", "mngr", "--model", "m", "-i=a.png", "--search")
    assert resumed.argv == words and not resumed.files


def test_a_run_without_a_screen_is_run_again(home: Path) -> None:
    said: dict[str, Json] = {
        "SessionStart": signal({"session_id": THREAD}, launch="L1"),
        "Prompt": signal({"prompt": "go"}, launch="L1"),
    }
    again = CODEX.resume(context(headless=True).replace(evidence=evidence(said=said)))
    assert again.argv == CODEX.prepare(context("go", headless=True).replace(parent=FILES)).argv


def test_a_conversation_that_never_began_begins_again(home: Path) -> None:
    said: dict[str, Json] = {"Prompt": signal({"prompt": "go"}, launch="L1")}
    resumed = CODEX.resume(context().replace(evidence=evidence(said=said)))
    assert resumed.argv[-2:] == ("--", "go")
    hostile: dict[str, Json] = {"SessionStart": signal({"session_id": "--yolo"}, launch="L1")}
    assert "--yolo" not in CODEX.resume(context().replace(evidence=evidence(said=hostile))).argv


def test_a_clone_goes_on_under_an_id_of_its_own_and_owes_nothing(home: Path) -> None:
    launch = CODEX.prepare(context("then this").replace(parent=FILES))
    thread = launch.argv[2]
    assert launch.argv[:2] == ("codex", "resume") and thread != THREAD
    assert launch.argv[-2:] == ("--", "then this")
    files = {path: content for path, (content, _) in launch.files.items()}
    assert files[codex_rollout.THREADS] == f"{thread}\n".encode()
    assert not any(THREAD.encode() in content for content in files.values())
    assert metering.used(CODEX, files) == {}
    texts = [turn.text for turn in CODEX.transcript(files)]
    assert texts == [turn.text for turn in CODEX.transcript(FILES)]
    begun = json.loads(files["signals/SessionStart.json"])
    assert begun["input"] == {"session_id": thread} and begun["launch"] != "L2"


def test_the_users_settings_are_taken_over_but_their_hooks_are_not(home: Path) -> None:
    text = """
    model = "gpt-x"
    notify = ["say", 'a "b"']
    [hooks]
    [[hooks.Stop]]
    [[hooks.Stop.hooks]]
    type = "command"
    command = "true"
    [hooks.state."/home/fox/repo/.codex/hooks.json:stop:0:0"]
    trusted_hash = "sha256:1"
    [features]
    apps = false
    [projects."/else where"]
    trust_level = "untrusted"
    [[mcp_servers.x.things]]
    a.b = [1, 2.5, true, 1979-05-27T07:32:00Z]
    """
    (home / "config.toml").write_text(text)
    (home / "AGENTS.md").write_text("Be brief.")
    theirs = tomllib.loads(text)
    made = settings(context(), "config.toml")
    for key in ("model", "notify", "mcp_servers"):
        assert made[key] == theirs[key]
    assert "hooks" not in made
    assert made["features"] == {"apps": False, "daemon_auto_start": False}
    assert made["projects"]["/home/fox/den"]["trust_level"] == "trusted"
    assert made["projects"]["/else where"]["trust_level"] == "untrusted"
    assert CODEX.prepare(context()).files["codex/AGENTS.md"][0] == b"Be brief."
    state = settings(context(), "mngr.config.toml")["hooks"]["state"]
    assert state["/home/fox/den/.codex/hooks.json:stop:0:0"] == {"trusted_hash": "sha256:1"}


PRIVATE = """
model = "gpt-x"
model_max_output_tokens = 5
approval_policy = "never"
notify = ["ring", "s3cret"]
a_setting_of_a_later_version = "s3cret"
[features]
apps = false
later = "s3cret"
[projects."/s3cret"]
trust_level = "trusted"
[hooks.state."/home/den/.codex/hooks.json:stop:0:0"]
trusted_hash = "sha256:1"
[model_providers.acme]
base_url = "https://acme.example/v1"
env_key = "ACME_KEY"
wire_api = "responses"
experimental_bearer_token = "s3cret"
http_headers = { X-Org = "s3cret" }
[model_providers.fox]
base_url = "https://fox:s3cret@fox.example/"
[model_providers.hen]
base_url = "https://hen.example/?k=s3cret"
[mcp_servers.box]
command = "box"
args = ["--level", "3"]
bearer_token_env_var = "BOX_TOKEN"
[mcp_servers.box.env]
ANYTHING = "s3cret"
[mcp_servers.fox]
args = ["--api-key", "s3cret"]
url = "https://fox:s3cret@fox.example/"
[[mcp_servers.fox.more]]
apiKeys = { one = "s3cret" }
name = "more"
[shell_environment_policy]
set = { PROXY = "s3cret" }
inherit = "core"
"""


def test_secrets_in_the_settings_stay_here_unless_asked_for(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", "s3cret")
    (home / "config.toml").write_text(PRIVATE)
    theirs = tomllib.loads(PRIVATE)
    away = context().replace(local=False)
    for whole in (context(), context(pass_login=True).replace(local=False)):
        launch = CODEX.prepare(whole)
        assert launch.env["ACME_KEY"] == "s3cret" and launch.remarks == ()
        made = settings(whole, "config.toml")
        own = ("hooks", "features", "projects")
        assert {key: made[key] for key in theirs if key not in own} == {
            key: value for key, value in theirs.items() if key not in own
        }
    launch = CODEX.prepare(away)
    assert "s3cret" not in repr(launch)
    told, key = launch.remarks
    assert told == (
        "config.toml: not copied to another machine: notify, a_setting_of_a_later_version, "
        "features.later, model_providers.acme.experimental_bearer_token, "
        "model_providers.acme.http_headers and 4 more; use --pass-login to copy all settings"
    )
    assert "--pass-env ACME_KEY" in key
    made = settings(away, "config.toml")
    assert made["model"] == "gpt-x" and made["model_max_output_tokens"] == 5
    assert made["approval_policy"] == "never" and made["features"]["apps"] is False
    assert made["model_providers"]["acme"] == {
        "base_url": "https://acme.example/v1",
        "env_key": "ACME_KEY",
        "wire_api": "responses",
    }
    assert "mcp_servers" not in made and made["model_providers"]["fox"] == {}
    assert made["shell_environment_policy"] == {"inherit": "core"}


def test_our_hooks_are_trusted_as_they_stand_and_nothing_else_is(home: Path) -> None:
    hooks = settings(context(), "mngr.config.toml")["hooks"]
    state = hooks.pop("state")
    assert set(hooks) == {"SessionStart", "PermissionRequest"} and len(state) == len(hooks)
    text = (
        '{"event_name":"session_start","hooks":[{"async":false,"command":'
        '"/home/fox/state/codex/hook.sh SessionStart","timeout":3,"type":"command"}]}'
    )
    key = "/home/fox/state/codex/mngr.config.toml:session_start:0:0"
    expected = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    assert state[key] == {"trusted_hash": expected}


def test_broken_settings_of_the_user_are_left_out(home: Path) -> None:
    (home / "config.toml").write_bytes(b"model = \xff[")
    assert "model" not in settings(context(), "config.toml")


def test_a_profile_of_the_users_own_is_refused(home: Path) -> None:
    for words in (("-p", "x"), ("--profile=x",), ("--profile", "x")):
        with pytest.raises(UsageError, match="profile"):
            CODEX.prepare(context(argv=words))


def test_the_login_is_linked_here_and_copied_elsewhere_if_asked(home: Path) -> None:
    (home / "auth.json").write_text("{}")
    here = CODEX.prepare(context())
    assert here.links["codex/auth.json"] == str(home / "auth.json")
    assert "codex/auth.json" not in here.files and "signals/Login.json" not in here.files
    assert "codex/auth.json" not in CODEX.prepare(context().replace(local=False)).files
    there = CODEX.prepare(context(pass_login=True).replace(local=False))
    assert there.files["codex/auth.json"] == (b"{}", 0o600)
    assert "codex/auth.json" not in there.links


def test_a_key_is_a_login_and_nothing_at_all_is_said(home: Path) -> None:
    launch = CODEX.prepare(context().replace(env={"OPENAI_API_KEY": "sk-1"}))
    assert launch.files["codex/auth.json"] == (b'{"OPENAI_API_KEY": "sk-1"}', 0o600)
    assert "signals/Login.json" in CODEX.prepare(context()).files


def test_keys_that_the_users_providers_need_are_handed_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = '[model_providers.x]\nenv_key = "X_KEY"\n[model_providers.y]\nenv_key = "Y_KEY"\n'
    (home / "config.toml").write_text('model_provider = "x"\n' + provider)
    monkeypatch.setenv("X_KEY", "secret")
    launch = CODEX.prepare(context())
    assert launch.env["X_KEY"] == "secret" and "Y_KEY" not in launch.env
    assert "signals/Login.json" not in launch.files


TOML = st.recursive(
    st.booleans() | st.integers(-(2**62), 2**62) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=6), TOML, max_size=4))
def test_settings_are_written_as_they_were_read(table: dict[str, object]) -> None:
    assert tomllib.loads(codex_home.toml(table).decode()) == table


@given(st.lists(st.sampled_from(["-m", "--model=x", "word", "--", "--search", "-", ""])))
def test_options_keep_no_word_that_could_be_a_prompt(words: list[str]) -> None:
    kept = list(options(words, VALUED))
    assert [x for n, x in enumerate(kept) if not x.startswith("-") and kept[n - 1] != "-m"] == []
    assert options(kept, VALUED) == tuple(kept)


LEAVES_DAEMONS = """#!/bin/sh
setsid sh "$0-app-server" < /dev/null > /dev/null 2>&1 &
until [ -s "$0.pid" ]; do sleep 0.01; done
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only Linux tells a process's owner")
def test_the_servers_it_leaves_running_end_with_it(mngr: Cli, tmp_path: Path) -> None:
    place = tmp_path / "codex"
    place.write_text(LEAVES_DAEMONS)
    place.chmod(0o700)
    Path(f"{place}-app-server").write_text(f"echo $$ > {place}.pid; while :; do sleep 1000; done\n")
    path = f"{tmp_path}:{mngr.env['PATH']}"
    mngr.env["PATH"] = path
    words = ("--transfer", "none", "--env", f"PATH={path}", "--env", "OPENAI_API_KEY=x")
    mngr("create", "foo", "codex", "--no-connect", *words).ok()
    mngr("wait", "foo", "DONE", "--timeout", "30").ok()
    daemon = int(Path(f"{place}.pid").read_text())
    until(lambda: not lives(daemon), what="the server ended with its agent")
