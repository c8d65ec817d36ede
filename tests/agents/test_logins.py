"""The login that a coding agent would use, from its own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mngr.agents import logins


def test_a_program_that_prints_a_key_is_a_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    (tmp_path / "settings.json").write_text('{"apiKeyHelper": "pass show claude"}')
    login = logins.claude({})
    assert login is not None and (login.kind, login.place) == ("key", "apiKeyHelper")
