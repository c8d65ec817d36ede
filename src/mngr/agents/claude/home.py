"""The configuration folder of one agent: what the user has set, our hooks, no questions at start.

Dialogs that only ask whether to begin are answered beforehand, since whoever creates an agent has
said so. Permission to use a tool is never given here, but for what the user's own settings allow.
"""

from __future__ import annotations

import json
import os
import sys

from mngr.agents.jsonl import table
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
"""A hook that hangs holds up the program."""

QUIET = (
    "DISABLE_AUTOUPDATER",
    "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL",
    "CLAUDE_CODE_DISABLE_FEEDBACK_SURVEY",
)
"""One agent must not replace the program under the others, nor each of them fetch a catalogue; and
a survey would take a message that begins with a digit for its answer."""

OWN_LOGIN = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
STATE = ("theme", "verbose", "autoCompactEnabled", "bypassPermissionsModeAccepted")
LOGIN_STATE = ("oauthAccount", "mcpServers")
"""These go only where the user's own files are at home."""
PROJECT = ("allowedTools", "enabledMcpjsonServers", "disabledMcpjsonServers")
NOT_TAKEN = ("hooks", "disableAllHooks", "enabledPlugins", "extraKnownMarketplaces", "editorMode")
"""Plugins lie elsewhere; in vim's normal mode, a message would be commands."""
ABROAD = ("model", "permissions", "effortLevel", "outputStyle", "language", "includeCoAuthoredBy")
"""What of the settings goes to another machine: nothing that names files or holds secrets."""
TAKEN = ("CLAUDE.md", "keybindings.json", "commands", "agents", "skills", "output-styles", "rules")
FILE_LIMIT, TOTAL_LIMIT = 256 << 10, 4 << 20

BYPASS = ("--dangerously-skip-permissions", "--allow-dangerously-skip-permissions")


def environment(context: LaunchContext) -> dict[str, str]:
    found = {name: context.env.get(name, "1") for name in QUIET}
    found["CLAUDE_CONFIG_DIR"] = os.path.join(context.state_dir, FOLDER)
    # The folder, not a copy: whoever renews the login, all others see it. The program replaces the
    # file when it does, so a link to it would not last.
    if _shares_login(context):
        found["CLAUDE_SECURESTORAGE_CONFIG_DIR"] = user_folder()
    return found


def _shares_login(context: LaunchContext) -> bool:
    """On macOS the login is in the keychain, under a name that this setting would change."""
    if not context.local or sys.platform == "darwin":
        return False
    return os.path.exists(os.path.join(user_folder(), CREDENTIALS))


def files(context: LaunchContext) -> dict[str, tuple[bytes, int]]:
    found = {
        **{f"{FOLDER}/{name}": (data, 0o600) for name, data in _copies(user_folder())},
        f"{FOLDER}/.claude.json": (_dump(state(context)), 0o600),
        f"{FOLDER}/settings.json": (_dump(settings(context)), 0o600),
    }
    if context.copies_login and not any(context.env.get(key) for key in OWN_LOGIN):
        login = _read(os.path.join(user_folder(), CREDENTIALS))
        if login:
            found[f"{FOLDER}/{CREDENTIALS}"] = (login, 0o600)
    return found


def user_folder() -> str:
    return os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")


def _user_state() -> dict[str, Json]:
    folder = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~")
    return _load(os.path.join(folder, ".claude.json"))


def state(context: LaunchContext) -> dict[str, Json]:
    """What the program notes about itself; with this, it asks nothing before it begins."""
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
        "projects": dict.fromkeys(_paths(context), project),
        "customApiKeyResponses": {"approved": [key[-20:]] if key else [], "rejected": []},
    }
    if _bypasses(record.argv):
        found["bypassPermissionsModeAccepted"] = True
    return found


def _paths(context: LaunchContext) -> list[str]:
    """The program goes by the real path; elsewhere than here, that cannot be known."""
    record = context.record
    paths = [record.work_dir, os.path.join(record.work_dir, record.cwd).rstrip("/")]
    return [*paths, *map(os.path.realpath, paths)] if context.local else paths


def _refused_servers(context: LaunchContext, known: dict[str, Json]) -> Json:
    """Return the project's MCP servers that the user disabled or has not decided on."""
    brought = table(_load(os.path.join(context.record.source, ".mcp.json")).get("mcpServers"))
    settings = _load(os.path.join(user_folder(), "settings.json"))
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
    """The user's, and our hooks beside theirs."""
    user = _load(os.path.join(user_folder(), "settings.json"))
    theirs = table(user.get("hooks")) if context.local and not user.get("disableAllHooks") else {}
    names = [name for name in user if name not in NOT_TAKEN] if context.local else ABROAD
    hooks: dict[str, Json] = dict(theirs)
    for event in EVENTS:
        before = theirs.get(event)
        hooks[event] = [*(before if isinstance(before, list) else []), _hook(context, event)]
    return {**{name: user[name] for name in names if name in user}, "hooks": hooks}


def _hook(context: LaunchContext, event: str) -> Json:
    """`exec`: between hook and program there is then no shell, whichever shell it is."""
    words = f"exec {quote(os.path.join(context.state_dir, HOOK))} {event}"
    return {"hooks": [{"type": "command", "command": words, "timeout": SECONDS}]}


def _copies(folder: str) -> Iterator[tuple[str, bytes]]:
    """The user's instructions, commands and the like, as they are now."""
    left = TOTAL_LIMIT
    for name in _listed(folder):
        data = _read(os.path.join(folder, name))
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


def _read(path: str) -> bytes:
    try:
        if os.path.getsize(path) > FILE_LIMIT * 16 or not os.path.isfile(path):
            return b""
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""  # not there, or not ours to read


def _load(path: str) -> dict[str, Json]:
    try:
        return table(json.loads(_read(path) or b"{}"))
    except (ValueError, RecursionError):
        return {}


def _dump(value: Mapping[str, Json]) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"
