"""How Claude is started, and what it finds in its folder."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mngr.agents.base import Launch, LaunchContext
from mngr.agents.claude.agent import ClaudeAgent
from mngr.agents.claude.launch import LINKS, session_of
from mngr.model.records import AgentRecord
from mngr.model.state import Evidence
from tests.support.records import agent_record

CLAUDE = ClaudeAgent()
ID = "agent-0123456789abcdef0123456789abcdef"
OWN = "01234567-89ab-4def-8123-456789abcdef"
OTHER = "76543210-89ab-4def-8123-456789abcdef"


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder, empty."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    folder = tmp_path / "user" / ".claude"
    folder.mkdir(parents=True)
    return folder


def record(*argv: str, **changes: object) -> AgentRecord:
    places = {"work_dir": "/den/fox", "source": "/den/source"}
    return agent_record(**{"id": ID, "type": "claude", "argv": argv, **places, **changes})


def first(*argv: str, prompt: str = "", **context: object) -> Launch:
    given = {"record": record(*argv), "state_dir": "/state", "prompt": prompt, **context}
    return CLAUDE.prepare(LaunchContext(**given))  # type: ignore[arg-type]


def again(*argv: str, tail: bytes = b"", headless: bool = False, **signals: object) -> Launch:
    mine = record(*argv, headless=headless, launch="L2", launches=2)
    evidence = Evidence(id=ID, rev=2, record=mine, tail=tail, signals=signals)  # type: ignore[arg-type]
    return CLAUDE.resume(LaunchContext(record=mine, state_dir="/state", evidence=evidence))


def said(time: object, session: str, **more: object) -> dict[str, object]:
    return {"launch": "L1", "time": time, "input": {"session_id": session, **more}}


def written(launch: Launch, name: str) -> Any:
    return json.loads(launch.files[f"claude/{name}"][0])


SPOKEN = b'{"type":"user","message":{"content":"x"}}\n'
PROMPTED = {"launch": "L1", "time": 1.0, "input": {"session_id": OWN, "prompt": True}}
KEPT = ("sh", "-c", 'exec "$@" -- "$(cat "$0")"', "/state/prompt.txt")


def test_the_session_is_named_after_the_agent() -> None:
    assert session_of(ID) == OWN
    assert first().argv == ("claude", "--session-id", OWN)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("fix it", ("--", "fix it")),
        ("-v", ("--", "-v")),
        ("doctor", ("--", "doctor ")),
        ("/compact", ("--", "/compact")),
        ("x" * 98304, ("--", "x" * 98304)),
        ("x" * 98305, ()),
    ],
)
def test_the_first_prompt_rides_in_argv(prompt: str, words: tuple[str, ...]) -> None:
    launch = first("--allowedTools", "Bash", "Edit", prompt=prompt)
    base = ("claude", "--session-id", OWN, "--allowedTools", "Bash", "Edit")
    assert launch.argv == (*base, *words)
    assert launch.took_prompt == bool(words)


def test_without_a_terminal_it_prints() -> None:
    headless = record("--model", "x", headless=True)
    assert first(record=headless, prompt="a b").argv == (
        *("claude", "-p", "--session-id", OWN, "--model", "x", "--", "a b"),
    )
    own = record("--print", "a b", headless=True)
    assert first(record=own).argv == ("claude", "--session-id", OWN, "--print", "a b")


def test_a_choice_of_conversation_is_the_users() -> None:
    assert first("--resume", OTHER).argv == ("claude", "--resume", OTHER)
    assert first("--session-id=x").argv == ("claude", "--session-id=x")


def test_a_clone_forks_the_last_conversation_of_its_original() -> None:
    entry = b'{"type":"user","entrypoint":"%s","message":{"content":"x"},"timestamp":"%s"}\n'
    old = entry % (b"cli", b"2026-11-16T00:00:00.000Z")
    new = entry % (b"cli", b"2026-11-16T00:00:01.000Z")
    nested = entry % (b"sdk-cli", b"2026-11-16T00:00:02.000Z")
    folder = "claude/projects/p"
    third = OTHER.replace("7", "8")
    parent = {f"{folder}/{OWN}.jsonl": new, f"{folder}/{OTHER}.jsonl": old}
    parent[f"{folder}/{third}.jsonl"] = nested
    launch = first("--model", "x", prompt="go on", parent=parent)
    assert launch.argv == (
        *("claude", "--resume", "/state/claude/parent.jsonl", "--fork-session"),
        *("--session-id", OWN, "--model", "x", "--", "go on"),
    )
    assert launch.files["claude/parent.jsonl"] == (new, 0o600)
    # Stopped before a word was said, it forks again.
    told = json.loads(launch.files["signals/Launch.json"][0])
    told["input"]["prompt"] = False
    assert again("--model", "x", Launch=told).argv == launch.argv[:-2]
    later = again("--model", "x", Launch=told, tail=SPOKEN, Stop=said(5.0, OWN))
    assert later.argv == ("claude", "--resume", OWN, "--model", "x")


def test_it_goes_on_with_the_conversation_it_was_in_last() -> None:
    launch = again(
        *("--model", "x", "--permission-mode", "plan"),
        tail=SPOKEN,
        Launch=PROMPTED,
        Stop=said(5.0, OWN),
        SessionStart=said(9.0, OTHER, source="clear"),
    )
    assert launch.argv == (
        *("claude", "--resume", OTHER, "--model", "x", "--permission-mode", "plan"),
    )
    # What the program has changed in its folder stays.
    assert set(launch.files) == {"claude/hook.sh", "signals/Launch.json"}


def test_words_about_which_conversation_are_not_said_twice() -> None:
    words = ("--resume", OTHER, "--fork-session", "-c", "--session-id=z", "--model", "x")
    assert again(*words, tail=SPOKEN, Stop=said(5.0, OWN)).argv == (
        *("claude", "--resume", OWN, "--model", "x"),
    )
    assert again("-r", "--model", "x", tail=SPOKEN).argv[-2:] == ("--model", "x")


def test_what_never_began_begins_with_its_prompt() -> None:
    assert again("--model", "x", Launch=PROMPTED).argv == (
        *(*KEPT, "claude", "--session-id", OWN, "--model", "x"),
    )
    assert again(Launch=said(1.0, OWN)).argv == ("claude", "--session-id", OWN)
    # Where its file exists, though nothing was said, the program refuses the id.
    words = again(tail=b'{"type":"mode"}\n', SessionStart=said(2.0, OWN)).argv
    assert words[:2] == ("claude", "--session-id") and words[2] != OWN


def test_a_printing_one_is_asked_again_in_the_same_conversation() -> None:
    launch = again(tail=SPOKEN, headless=True, Launch=PROMPTED, Stop=said(5.0, OWN))
    assert launch.argv == (*KEPT, "claude", "-p", "--resume", OWN)


@pytest.mark.parametrize("session", ["--dangerously-skip-permissions", "x" * 36, OTHER + "\n", ""])
def test_an_agent_cannot_smuggle_words_into_its_next_start(session: str) -> None:
    launch = again(tail=SPOKEN, Stop=said(5.0, session), SessionStart=said("now", OTHER))
    assert launch.argv == ("claude", "--resume", OWN)


def test_nothing_is_asked_at_the_start_and_nothing_is_allowed() -> None:
    env = {"ANTHROPIC_API_KEY": "sk-ant-" + "k" * 10 + "0123456789" * 2}
    launch = first(env=env)
    state = written(launch, ".claude.json")
    assert state["hasCompletedOnboarding"] and state["theme"]
    assert state["projects"]["/den/fox"]["hasTrustDialogAccepted"]
    assert state["customApiKeyResponses"]["approved"] == ["0123456789" * 2]
    assert "bypassPermissionsModeAccepted" not in state
    assert "permissions" not in written(launch, "settings.json")
    assert launch.env["CLAUDE_CONFIG_DIR"] == "/state/claude"
    assert launch.env["DISABLE_AUTOUPDATER"] == "1"
    assert first(env={"DISABLE_AUTOUPDATER": "0"}).env["DISABLE_AUTOUPDATER"] == "0"
    assert "CLAUDE_SECURESTORAGE_CONFIG_DIR" not in launch.env
    assert all(mode & 0o077 == 0 for _, mode in launch.files.values())


@pytest.mark.parametrize(
    "words",
    [
        ("--dangerously-skip-permissions",),
        ("--permission-mode", "bypassPermissions"),
        ("--permission-mode=bypassPermissions",),
    ],
)
def test_passing_bypass_permissions_confirms_it(words: tuple[str, ...]) -> None:
    assert written(first(*words), ".claude.json")["bypassPermissionsModeAccepted"] is True
    other = first("--permission-mode", "plan", "bypassPermissions")
    assert "bypassPermissionsModeAccepted" not in written(other, ".claude.json")


HOOKS = {"Stop": [{"hooks": [{"type": "command", "command": "beep"}]}], "PreToolUse": []}
SETTINGS = {
    "model": "opus",
    "permissions": {"deny": ["WebFetch"]},
    "env": {"TOKEN": "secret"},
    "enabledPlugins": {"x": True},
    "hooks": HOOKS,
}
STATE = {
    "theme": "light",
    "oauthAccount": {"emailAddress": "u@example.com"},
    "mcpServers": {"x": {"env": {"TOKEN": "secret"}}},
    "projects": {"/den/source": {"allowedTools": ["Bash(ls:*)"], "history": ["private"]}},
}


@pytest.fixture
def settled(user: Path) -> Path:
    (user / "settings.json").write_text(json.dumps(SETTINGS))
    (user.parent / ".claude.json").write_text(json.dumps(STATE))
    (user / ".credentials.json").write_text('{"claudeAiOauth": {"accessToken": "secret"}}')
    (user / "CLAUDE.md").write_text("Be kind.\n")
    (user / "commands" / "deep").mkdir(parents=True)
    (user / "commands" / "deep" / "do.md").write_text("Do.\n")
    (user / "commands" / "huge.md").write_bytes(b"x" * (300 << 10))
    return user


def test_on_this_machine_it_has_what_the_user_has(settled: Path) -> None:
    launch = first()
    settings, state = written(launch, "settings.json"), written(launch, ".claude.json")
    assert settings["model"] == "opus" and settings["env"] == {"TOKEN": "secret"}
    assert "enabledPlugins" not in settings
    stops = [hook["hooks"][0]["command"] for hook in settings["hooks"]["Stop"]]
    assert stops == ["beep", "exec /state/claude/hook.sh Stop"]
    assert state["theme"] == "light" and state["oauthAccount"] == STATE["oauthAccount"]
    assert state["projects"]["/den/fox"]["allowedTools"] == ["Bash(ls:*)"]
    assert "history" not in state["projects"]["/den/fox"]
    assert launch.files["claude/CLAUDE.md"][0] == b"Be kind.\n"
    assert launch.files["claude/commands/deep/do.md"][0] == b"Do.\n"
    assert "claude/commands/huge.md" not in launch.files
    # The login itself is shared, not copied, so that all agents see a renewed one.
    assert launch.env["CLAUDE_SECURESTORAGE_CONFIG_DIR"] == str(settled)
    assert "claude/.credentials.json" not in launch.files


def test_to_another_machine_goes_the_login_if_asked_but_no_other_secret(settled: Path) -> None:
    assert "claude/.credentials.json" not in first(local=False).files
    launch = first(local=False, record=record(pass_login=True))
    login = (settled / ".credentials.json").read_bytes()
    assert launch.files.pop("claude/.credentials.json") == (login, 0o600)
    assert "CLAUDE_SECURESTORAGE_CONFIG_DIR" not in launch.env
    everything = b"".join(data for data, _ in launch.files.values())
    assert b"secret" not in everything and b"beep" not in everything
    assert written(launch, "settings.json")["permissions"] == SETTINGS["permissions"]
    # With its own key it requires no login.
    keyed = first(local=False, record=record(pass_login=True), env={"ANTHROPIC_API_KEY": "k"})
    assert "claude/.credentials.json" not in keyed.files


def test_hooks_that_the_user_switched_off_stay_off_and_ours_on(settled: Path) -> None:
    (settled / "settings.json").write_text(json.dumps(SETTINGS | {"disableAllHooks": True}))
    settings = written(first(), "settings.json")
    assert "disableAllHooks" not in settings and len(settings["hooks"]["Stop"]) == 1


def test_servers_that_the_user_has_not_decided_on_are_not_used(user: Path, tmp_path: Path) -> None:
    """Otherwise the agent would ask before its session begins, when mngr cannot see it."""
    brought = '{"mcpServers": {"old": {}, "new": {}, "no": {}}}'
    (tmp_path / ".mcp.json").write_text(brought)
    (user / "settings.json").write_text('{"enabledMcpjsonServers": ["old"]}')
    mine = record(source=str(tmp_path))
    known = {"projects": {str(tmp_path): {"disabledMcpjsonServers": ["no"]}}}
    (user.parent / ".claude.json").write_text(json.dumps(known))
    project = written(first(record=mine), ".claude.json")["projects"]["/den/fox"]
    assert project["disabledMcpjsonServers"] == ["no", "new"]
    (user / "settings.json").write_text('{"enableAllProjectMcpServers": true}')
    project = written(first(record=mine), ".claude.json")["projects"]["/den/fox"]
    assert project["disabledMcpjsonServers"] == ["no"]


@pytest.mark.parametrize("content", [b"[]", b"{", b"\xff\xfe", b"[" * 100_000, b""])
def test_broken_files_of_the_user_are_as_none(user: Path, content: bytes) -> None:
    (user / "settings.json").write_bytes(content)
    (user.parent / ".claude.json").write_bytes(content)
    assert written(first(), ".claude.json")["theme"] == "dark"


@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("/odd 'place'/claude/projects/-work-fox/ID.jsonl", "claude/projects/-work-fox/ID.jsonl"),
        ("/s/claude/projects/a b/ID.jsonl", ""),
        ("/s/claude/projects/../ID.jsonl", ""),
        ("/s/claude/projects/a/b/ID.jsonl", ""),
        ("/etc/passwd", ""),
    ],
)
def test_the_hook_links_to_the_conversation_in_the_agents_own_folder(
    tmp_path: Path, path: str, link: str
) -> None:
    input = json.dumps({"session_id": "x", "transcript_path": path}, separators=(",", ":"))
    script = f'dir=$2 input=$3\n{LINKS}\necho "$PPID"'
    words = ["sh", "-c", script, "sh", "SessionStart", str(tmp_path), input]
    done = subprocess.run(words, capture_output=True, check=True)
    made = tmp_path / "transcript"
    assert (str(made.readlink()) if made.is_symlink() else "") == link
    pid = done.stdout.decode().strip()
    assert str((tmp_path / "status").readlink()) == f"claude/sessions/{pid}.json"
