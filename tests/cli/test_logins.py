"""One renewable login in several agents is said, and doctor knows what each agent would use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli

CLAUDE = {"accessToken": "a", "refreshToken": "r", "expiresAt": 4_000_000_000_000}
FILES = {
    "claude": (".claude/.credentials.json", {"claudeAiOauth": CLAUDE}),
    "codex": (".codex/auth.json", {"OPENAI_API_KEY": None, "tokens": {"refresh_token": "r"}}),
    "opencode": (".local/share/opencode/auth.json", {"x": {"type": "oauth", "refresh": "r"}}),
}
ADVICE = {"claude": "claude setup-token", "codex": "--with-api-key", "opencode": "auth login"}


def write(cli: Cli, name: str, content: object) -> Path:
    path = cli.user_home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Agents that do nothing, in front of those that are installed."""
    cli: Cli = request.getfixturevalue("mngr" if "mngr" in request.fixturenames else "local")
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_text("#!/bin/sh\nexec sleep 1000\n")
        (folder / name).chmod(0o755)
    cli.env["PATH"] = f"{folder}:{cli.env['PATH']}"


def notes(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("Note: ")]


@pytest.mark.parametrize("kind", sorted(FILES))
@pytest.mark.dear
def test_a_renewable_login_in_a_second_agent_is_said(mngr: Cli, kind: str) -> None:
    path = write(mngr, *FILES[kind])
    none = ("--no-connect", "--transfer", "none")
    assert notes(mngr("create", "one", kind, *none).ok().err) == []
    [note] = notes(mngr("create", "two", kind, *none).ok().err)
    assert f"two shares the renewable login in {path} with one: " in note
    assert "can log the others out" in note and ADVICE[kind] in note
    mngr("stop", "one").ok()
    assert notes(mngr("restart", "two").ok().err) == []
    [note] = notes(mngr("start", "one").ok().err)
    assert "one shares the renewable login" in note and "with two" in note
    assert notes(mngr("start", "one").ok().err) == []
    assert "with one" in notes(mngr("restart", "two").ok().err)[0]
    assert "r" not in {*json.dumps(mngr.agent("one")).split('"')}


def test_a_long_lived_token_or_a_key_is_nothing_to_remark(local: Cli) -> None:
    write(local, *FILES["claude"])
    local("create", "one", "claude", "--no-connect").ok()
    for number, variable in enumerate(("CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY")):
        words = ("create", f"safe-{number}", "claude", "--no-connect", "--env", f"{variable}=x")
        assert notes(local(*words).ok().err) == []


def login(cli: Cli, kind: str = "claude", **env: str) -> tuple[str, str, str]:
    rows: list[dict[str, Any]] = cli("doctor", "--format", "json", env=env).ok().json()["checks"]
    found = {row["check"]: row for row in rows}.get(f"login {kind}", {})
    return found.get("status", ""), found.get("detail", ""), found.get("remedy", "")


def test_doctor_says_which_login_each_agent_uses(local: Cli) -> None:
    status, detail, remedy = login(local)
    assert (status, detail) == ("absent", "no login for claude was found")
    assert "claude setup-token" in remedy and "ANTHROPIC_API_KEY" in remedy
    key = login(local, ANTHROPIC_API_KEY="x")
    assert key == ("ok", "claude uses the key in ANTHROPIC_API_KEY", "")
    token = login(local, CLAUDE_CODE_OAUTH_TOKEN="x")
    assert token == ("ok", "claude uses the long-lived token in CLAUDE_CODE_OAUTH_TOKEN", "")
    path = write(local, *FILES["claude"])
    status, detail, remedy = login(local)
    assert (status, detail) == ("warning", f"claude uses the renewable login in {path}")
    assert "parallel agents can log each other out" in remedy and "claude setup-token" in remedy
    write(local, FILES["claude"][0], {"claudeAiOauth": CLAUDE | {"expiresAt": 1000}})
    assert "expired at 1970-01-01T00:00:01Z and is renewed" in login(local)[1]
    write(local, FILES["claude"][0], {"claudeAiOauth": {"accessToken": "a", "expiresAt": 1000}})
    status, detail, remedy = login(local)
    assert (status, detail) == ("warning", f"the token in {path} expired at 1970-01-01T00:00:01Z")
    for kind in ("codex", "opencode"):
        write(local, *FILES[kind])
        status, detail, remedy = login(local, kind)
        assert status == "warning" and "renewable" in detail and ADVICE[kind] in remedy
    write(local, FILES["codex"][0], {"OPENAI_API_KEY": "sk-secret"})
    assert login(local, "codex")[0] == "ok"
    write(local, FILES["opencode"][0], {"x": {"type": "api", "key": "k"}})
    assert login(local, "opencode")[0] == "ok"


@pytest.mark.parametrize("content", ["[]", "{", '{"claudeAiOauth": 3}', '{"tokens": []}', "\0" * 9])
def test_a_login_that_cannot_be_read_is_none(local: Cli, content: str) -> None:
    for name, _ in FILES.values():
        write(local, name, None).write_text(content)
    assert login(local)[0] == "absent"
    assert login(local, "codex")[0] == "absent"
