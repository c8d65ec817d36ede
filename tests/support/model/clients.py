"""Point each client at the server."""

from __future__ import annotations

import json

KEY = "sk-test-" + "0123456789" * 4


TOKEN = "sk-ant-oat01-" + "0123456789" * 6


def environment(program: str, url: str, plan: bool = False) -> dict[str, str]:
    """Return the variables; a test adds the home directories it requires."""
    if program == "claude":
        return {
            "ANTHROPIC_BASE_URL": url,
            **({"CLAUDE_CODE_OAUTH_TOKEN": TOKEN} if plan else {"ANTHROPIC_API_KEY": KEY}),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # Pauses between attempts double, starting at half a second; three are enough.
            "CLAUDE_CODE_MAX_RETRIES": "3",
        }
    if program == "codex":
        return {"SCRIPTED_API_KEY": KEY}
    if program == "opencode":
        return {
            "OPENCODE_CONFIG_CONTENT": opencode_config(url),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }
    raise LookupError(program)


def codex_config(url: str) -> str:
    return f"""\
model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"
request_max_retries = 2
stream_max_retries = 2

[analytics]
enabled = false
"""


def opencode_config(url: str) -> str:
    model = {"name": "Scripted", "tool_call": True, "limit": {"context": 200000, "output": 32000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"scripted": model},
    }
    return json.dumps(
        {
            "autoupdate": False,
            "share": "disabled",
            "snapshot": False,
            "model": "scripted/scripted",
            "small_model": "scripted/scripted",
            "provider": {"scripted": provider},
        }
    )
