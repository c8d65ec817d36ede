"""The home of an agent's Codex: the user's settings, and mngr's in a profile that overrides them.

The hooks are in the profile, which only the agent's own program uses: a Codex that the agent starts
has the same home but no hooks.
"""

from __future__ import annotations

import hashlib
import json
import os

from mngr.agents import hooks, portable
from mngr.agents.jsonl import read
from mngr.model.quoting import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mngr.agents.base import LaunchContext

    Toml = object
    Files = dict[str, tuple[bytes, int]]

PROFILE = "mngr"
EVENTS = {"SessionStart": "session_start", "PermissionRequest": "permission_request"}
TIMEOUT = 3
"""Seconds; for some events Codex allows no more."""

# Between the hook and the launcher are the program and the start scripts of its installer. A nested
# Codex has no hooks.
HOPS = 9

# A conversation begins with its first prompt. `transcript` is then a link to its file.
BEGUN = r"""
case $1 in SessionStart)
  id=${input#*\"session_id\":\"} id=${id%%\"*}
  case $id in *[!0-9a-f-]* | '') exit 0 ;; esac
  printf '%s\n' "$id" >> "$dir/codex/threads"
  for each in "$dir"/codex/sessions/*/*/*/rollout-*-"$id".jsonl; do
    [ -f "$each" ] && ln -sfn "$each" "$dir/.transcript.$$" &&
      mv -f "$dir/.transcript.$$" "$dir/transcript"
  done ;;
esac
"""

KEYS = ("OPENAI_API_KEY", "CODEX_API_KEY")

ABROAD: portable.Allowed = {
    **portable.leaves(
        "model model_provider model_reasoning_effort model_reasoning_summary model_verbosity "
        "model_context_window model_max_output_tokens model_auto_compact_token_limit "
        "model_supports_reasoning_summaries review_model plan_mode_reasoning_effort personality "
        "service_tier approval_policy sandbox_mode web_search disable_response_storage "
        "hide_agent_reasoning show_raw_agent_reasoning tool_output_token_limit"
    ),
    "features": {"*": portable.switch},
    "sandbox_workspace_write": portable.leaves(
        "network_access exclude_tmpdir_env_var exclude_slash_tmp"
    ),
    "shell_environment_policy": portable.leaves(
        "inherit ignore_default_excludes exclude include_only"
    ),
    "model_providers": {
        "*": portable.leaves("name base_url wire_api env_key requires_openai_auth")
    },
    "hooks": {"state": {"*": portable.leaves("trusted_hash")}},
}
"""Settings that are copied to another machine: none that names a program or may hold a secret."""
UNSAID = ("hooks.", "projects")
"""Settings that no agent gets, and directories of this machine: no remark is made about these."""


def users_home() -> str:
    return os.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex")


def environment(context: LaunchContext) -> dict[str, str]:
    return {"CODEX_HOME": f"{context.state_dir}/codex", **_filter(context)}


def log(context: LaunchContext) -> str:
    return os.path.join(context.state_dir, "codex", "log", "codex-tui.log")


def _filter(context: LaunchContext) -> dict[str, str]:
    """Return the log filter: only that the server is unreachable; all lines are 60 KB a turn.

    A filter of the user is kept, because it is meant for the programs that the agent runs.
    """
    if context.record.headless or "RUST_LOG" in context.env:
        return {}
    return {"RUST_LOG": "codex_core::responses_retry=warn"}


def files(context: LaunchContext, settings: Mapping[str, Toml]) -> Files:
    """Return the files with the settings, the instructions and the hooks."""
    home = users_home()
    made: Files = {
        "codex/hook.sh": (hooks.script(context.state_dir, hops=HOPS, more=BEGUN), 0o700),
        "codex/config.toml": (toml(base(settings, context)), 0o600),
        f"codex/{PROFILE}.config.toml": (toml(profile(settings, context)), 0o600),
    }
    for name in ("AGENTS.md", "AGENTS.override.md", "rules/default.rules"):
        content = read(os.path.join(home, name))
        if content:
            made[f"codex/{name}"] = (content, 0o600)
    return made


def base(settings: Mapping[str, Toml], context: LaunchContext) -> dict[str, Toml]:
    """Return the user's settings without hooks, with the work directory trusted.

    The daemon is disabled, because it would outlive the agent and run its hooks.
    """
    trusted = {path: {"trust_level": "trusted"} for path in context.work_dirs}
    return {
        **{key: value for key, value in settings.items() if key != "hooks"},
        "check_for_update_on_startup": False,
        "features": {**_table(settings, "features"), "daemon_auto_start": False},
        "projects": {**_table(settings, "projects"), **trusted},
    }


def profile(settings: Mapping[str, Toml], context: LaunchContext) -> dict[str, Toml]:
    """Return the profile: trusted hooks, a title that shows the state, no questions at resume."""
    path = os.path.join(context.state_dir, "codex", f"{PROFILE}.config.toml")
    script = os.path.join(context.state_dir, "codex", "hook.sh")
    table: dict[str, Toml] = {}
    state = _trusted_by_the_user(settings, context)
    for event, label in EVENTS.items():
        command = {"type": "command", "command": f"{quote(script)} {event}", "timeout": TIMEOUT}
        table[event] = [{"hooks": [command]}]
        state[f"{path}:{label}:0:0"] = {"trusted_hash": fingerprint(label, command)}
    return {
        "history": {"persistence": "save-all"},
        "log_dir": os.path.dirname(log(context)),
        **_kept_from_commands(settings, context),
        "tui": {
            "terminal_title": ["activity", "run-state"],
            "animations": False,
            "show_tooltips": False,
            "resume_cwd": "current",
        },
        "hooks": {**table, "state": state},
    }


def _kept_from_commands(settings: Mapping[str, Toml], context: LaunchContext) -> dict[str, Toml]:
    """Return a setting that hides the log filter from the programs that the agent runs."""
    excluded = _table(settings, "shell_environment_policy").get("exclude")
    names = [*(excluded if isinstance(excluded, list) else []), *_filter(context)]
    return {"shell_environment_policy": {"exclude": names}} if _filter(context) else {}


def fingerprint(label: str, command: Mapping[str, Toml]) -> str:
    """Return the hash by which Codex recognises a hook that the user has trusted."""
    identity = {"event_name": label, "hooks": [{**command, "async": False}]}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _trusted_by_the_user(settings: Mapping[str, Toml], context: LaunchContext) -> dict[str, Toml]:
    """Return the hooks of the project that the user trusts in the source directory."""
    source, here = context.record.source.rstrip("/"), context.record.work_dir
    return {
        here + path.removeprefix(source): value
        for path, value in _table(_table(settings, "hooks"), "state").items()
        if source and path.startswith(f"{source}/")
    }


# the login


def login(context: LaunchContext) -> tuple[Files, dict[str, str]]:
    """Return files and links; with a link, a renewed login stays the user's."""
    theirs = os.path.join(users_home(), "auth.json")
    content = read(theirs)
    if content and context.local:
        return {}, {"codex/auth.json": os.path.abspath(theirs)}
    if content and context.copies_login:
        return {"codex/auth.json": (content, 0o600)}, {}
    key = next((context.env[name] for name in KEYS if context.env.get(name)), "")
    if key:
        return {"codex/auth.json": (json.dumps({"OPENAI_API_KEY": key}).encode(), 0o600)}, {}
    return {}, {}


def needs_login(settings: Mapping[str, Toml]) -> bool:
    """Return whether the provider requires an account."""
    name = settings.get("model_provider", "openai")
    provider = _table(_table(settings, "model_providers"), str(name))
    return name == "openai" or bool(provider.get("requires_openai_auth"))


def provider_keys(settings: Mapping[str, Toml]) -> dict[str, str]:
    """Return the variables with the keys of the user's own providers."""
    found: dict[str, str] = {}
    for provider in _table(settings, "model_providers").values():
        key = str(provider.get("env_key") or "") if isinstance(provider, dict) else ""
        if key and key in os.environ:
            found[key] = os.environ[key]
    return found


# files


def read_settings(home: str) -> dict[str, Toml]:
    """Return the user's settings; {} if the file is not TOML, which stops the user's Codex too."""
    import tomllib

    try:
        return tomllib.loads(read(os.path.join(home, "config.toml")).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        return {}


def _table(holder: Mapping[str, Toml], key: str) -> dict[str, Toml]:
    value = holder.get(key)
    return dict(value) if isinstance(value, dict) else {}


def toml(table: Mapping[str, Toml]) -> bytes:
    """Return a table as TOML."""
    import tomlkit

    return tomlkit.dumps(table).encode("utf-8", "surrogateescape")
