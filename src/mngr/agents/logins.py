"""Find out which login a coding agent uses: a key, a long-lived token, or a renewable login.

A renewable login has one refresh token, which each renewal replaces. So if several clients share
it, a renewal logs the others out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from mngr.agents.base import Login
from mngr.agents.jsonl import load, number, table, text
from mngr.model.struct import Json

CLAUDE_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
CLAUDE_CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
CLAUDE_TOKEN = "CLAUDE_CODE_OAUTH_TOKEN"  # noqa: S105 - the name of a variable
CLAUDE_ADVICE = f"run `claude setup-token` and set {CLAUDE_TOKEN}, or use ANTHROPIC_API_KEY"
CODEX_ADVICE = "log in with an API key: `printenv OPENAI_API_KEY | codex login --with-api-key`"
OPENCODE_ADVICE = "log in with an API key: `opencode auth login`"


def claude(env: Mapping[str, str]) -> Login | None:
    from mngr.agents.claude import home as claude_home

    for name in (*CLAUDE_KEYS, *CLAUDE_CLOUDS):
        if env.get(name):
            return Login(kind="key", place=name)
    if env.get(CLAUDE_TOKEN):
        return Login(kind="token", place=CLAUDE_TOKEN)
    folder = claude_home.user_folder()
    if load(os.path.join(folder, "settings.json")).get("apiKeyHelper"):
        return Login(kind="key", place="apiKeyHelper")
    path = os.path.join(folder, claude_home.CREDENTIALS)
    account = table(load(path).get("claudeAiOauth"))
    if account:
        return _account(path, CLAUDE_ADVICE, account.get("refreshToken"), account.get("expiresAt"))
    if sys.platform == "darwin":
        return None  # it may be in the keychain
    return Login(kind="none", advice=f"run `claude` and log in, or {CLAUDE_ADVICE}")


def codex(env: Mapping[str, str]) -> Login | None:
    from mngr.agents.codex import home as codex_home

    home = codex_home.users_home()
    if not codex_home.needs_login(codex_home.read_settings(home)):
        return None
    path = os.path.join(home, "auth.json")
    content = load(path)
    tokens = table(content.get("tokens"))
    if tokens.get("refresh_token") and text(content.get("auth_mode")) != "apikey":
        return Login(kind="renewable", place=path, advice=CODEX_ADVICE)
    if content.get("OPENAI_API_KEY"):
        return Login(kind="key", place=path)
    name = next((name for name in codex_home.KEYS if env.get(name)), "")
    if name:
        return Login(kind="key", place=name)
    return Login(kind="none", advice=f"run `codex login`, or {CODEX_ADVICE}")


def opencode() -> Login | None:
    """Return the login; None without one, because some of its models require no account."""
    from mngr.agents.opencode.agent import AUTH, user_file

    path = user_file(*AUTH)
    accounts = [table(value) for value in load(path).values()]
    for account in accounts:
        if account.get("type") == "oauth":
            return _account(path, OPENCODE_ADVICE, account.get("refresh"), account.get("expires"))
    if accounts:
        return Login(kind="key", place=path)
    return None


def _account(path: str, advice: str, refresh: Json, expires: Json) -> Login:
    """Return an account as a login, a token if it cannot be renewed; times are in milliseconds."""
    kind = "renewable" if text(refresh) else "token"
    return Login(kind=kind, place=path, advice=advice, expires=number(expires) / 1000)
