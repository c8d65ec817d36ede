"""The configuration folder of one agent: the user's settings, mngr's hooks, no dialogs at start.

Dialogs that only ask whether to begin are answered in advance, because creating the agent answers
them. Permission to use a tool is never given here, except what the user's own settings allow.
"""

from __future__ import annotations

import json
import os
import sys

from mngr.agents.jsonl import load, read, table
from mngr.model.quoting import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mngr.agents.base import LaunchContext
    from mngr.model.struct import Json

FOLDER = "claude"
HOOK = f"{FOLDER}/hook.sh"
CREDENTIALS = ".credentials.json"
EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "Stop",
    "StopFailure",
    "PermissionRequest",
    "Notification",
)
SECONDS = 10
"""Timeout of a hook, because a hook that hangs blocks the program."""

QUIET = (
    "DISABLE_AUTOUPDATER",
    "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL",
    "CLAUDE_CODE_DISABLE_FEEDBACK_SURVEY",
)
"""An agent must not update the program while others run it, nor download a catalogue; and a survey
would take a message that begins with a digit as its answer."""

OWN_LOGIN = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
STATE = ("theme", "verbose", "autoCompactEnabled", "bypassPermissionsModeAccepted")
LOGIN_STATE = ("oauthAccount", "mcpServers")
"""Copied only if the host has the user's files."""
PROJECT = ("allowedTools", "enabledMcpjsonServers", "disabledMcpjsonServers")
NOT_TAKEN = ("hooks", "disableAllHooks", "enabledPlugins", "extraKnownMarketplaces", "editorMode")
"""Plugins are in other folders; in vim's normal mode, a message would be commands."""
ABROAD = ("model", "permissions", "effortLevel", "outputStyle", "language", "includeCoAuthoredBy")
"""Settings that are copied to another machine: none that names files or holds secrets."""
TAKEN = ("CLAUDE.md", "keybindings.json", "commands", "agents", "skills", "output-styles", "rules")
FILE_LIMIT, TOTAL_LIMIT = 256 << 10, 4 << 20

BYPASS = ("--dangerously-skip-permissions", "--allow-dangerously-skip-permissions")


def environment(context: LaunchContext) -> dict[str, str]:
    """Return the variables that make the program use the agent's folder and the user's login."""
    found = {name: context.env.get(name, "1") for name in QUIET}
    found["CLAUDE_CONFIG_DIR"] = os.path.join(context.state_dir, FOLDER)
    # The folder itself, so that all clients see a renewed login. The program replaces the file when
    # it renews the login, so a link to the file would not last.
    if _shares_login(context):
        found["CLAUDE_SECURESTORAGE_CONFIG_DIR"] = user_folder()
    return found


def _shares_login(context: LaunchContext) -> bool:
    """Return whether the login is a file; on macOS it is in the keychain, by folder."""
    if not context.local or sys.platform == "darwin":
        return False
    return os.path.exists(os.path.join(user_folder(), CREDENTIALS))


def files(context: LaunchContext) -> dict[str, tuple[bytes, int]]:
    """Return the files of the configuration folder."""
    found = {
        **{f"{FOLDER}/{name}": (data, 0o600) for name, data in _copies(user_folder())},
        f"{FOLDER}/.claude.json": (_dump(state(context)), 0o600),
        f"{FOLDER}/settings.json": (_dump(settings(context)), 0o600),
    }
    if context.copies_login and not any(context.env.get(key) for key in OWN_LOGIN):
        login = read(os.path.join(user_folder(), CREDENTIALS))
        if login:
            found[f"{FOLDER}/{CREDENTIALS}"] = (login, 0o600)
    return found


def user_folder() -> str:
    return os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")


def _user_state() -> dict[str, Json]:
    folder = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~")
    return load(os.path.join(folder, ".claude.json"))


def state(context: LaunchContext) -> dict[str, Json]:
    """Return the program's own state file, with which it shows no dialogs at its start."""
    record, user = context.record, _user_state()
    key = context.env.get("ANTHROPIC_API_KEY", "")
    kept = (*STATE, *LOGIN_STATE) if context.local else STATE
    known = table(table(user.get("projects")).get(record.source)) if context.local else {}
    project: dict[str, Json] = {name: known[name] for name in PROJECT if name in known}
    project |= {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    project["disabledMcpjsonServers"] = _refused_servers(context, known)
    found: dict[str, Json] = {
        "theme": "dark",
        **{name: user[name] for name in kept if name in user},
        "hasCompletedOnboarding": True,
        "projects": dict.fromkeys(context.work_dirs, project),
        "customApiKeyResponses": {"approved": [key[-20:]] if key else [], "rejected": []},
    }
    if _bypasses(record.argv):
        found["bypassPermissionsModeAccepted"] = True
    return found


def _refused_servers(context: LaunchContext, known: dict[str, Json]) -> Json:
    """Return the project's MCP servers that the user disabled or has not decided on."""
    brought = table(load(os.path.join(context.record.source, ".mcp.json")).get("mcpServers"))
    settings = load(os.path.join(user_folder(), "settings.json"))
    if settings.get("enableAllProjectMcpServers"):
        brought = {}
    places = (known, settings)
    enabled = [name for each in places for name in _names(each.get("enabledMcpjsonServers"))]
    refused = [name for each in places for name in _names(each.get("disabledMcpjsonServers"))]
    return [*refused, *(name for name in brought if name not in (*enabled, *refused))]


def _names(value: Json) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _bypasses(argv: tuple[str, ...]) -> bool:
    """Return whether bypassPermissions was requested, which confirms its warning."""
    words = [part for word in argv for part in word.split("=", 1)]
    modes = [words[at] for at in range(1, len(words)) if words[at - 1] == "--permission-mode"]
    return "bypassPermissions" in modes or any(word in BYPASS for word in argv)


def settings(context: LaunchContext) -> dict[str, Json]:
    """Return the user's settings with mngr's hooks added to the user's."""
    user = load(os.path.join(user_folder(), "settings.json"))
    theirs = table(user.get("hooks")) if context.local and not user.get("disableAllHooks") else {}
    names = [name for name in user if name not in NOT_TAKEN] if context.local else ABROAD
    hooks: dict[str, Json] = dict(theirs)
    for event in EVENTS:
        before = theirs.get(event)
        hooks[event] = [*(before if isinstance(before, list) else []), _hook(context, event)]
    return {**{name: user[name] for name in names if name in user}, "hooks": hooks}


def _hook(context: LaunchContext, event: str) -> Json:
    """Return a hook; with `exec` no shell is between the hook and the program."""
    words = f"exec {quote(os.path.join(context.state_dir, HOOK))} {event}"
    return {"hooks": [{"type": "command", "command": words, "timeout": SECONDS}]}


def _copies(folder: str) -> Iterator[tuple[str, bytes]]:
    """Yield the user's instructions, commands and similar files, up to a total size."""
    left = TOTAL_LIMIT
    for name in _listed(folder):
        data = read(os.path.join(folder, name))
        if data and len(data) <= min(left, FILE_LIMIT):
            left -= len(data)
            yield name, data


def _listed(folder: str) -> Iterator[str]:
    for name in TAKEN:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            yield name
        for parent, _, names in os.walk(path):
            yield from (os.path.relpath(os.path.join(parent, each), folder) for each in names)


def _dump(value: Mapping[str, Json]) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"
