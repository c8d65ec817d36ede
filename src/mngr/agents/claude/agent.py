"""Claude Code, with a separate configuration folder in the agent's state directory.

So the user's other sessions never run mngr's hooks, and the conversation stays with the agent: in
the trash, after a restore, and in a clone.
"""

from __future__ import annotations

from collections.abc import Mapping

from mngr.agents.base import AgentType, Delivery, Launch, LaunchContext, Login, Receipt
from mngr.agents.claude import log
from mngr.agents.claude import state as claude_state
from mngr.model.state import Evidence, Signals

NOT_A_YES = ("AskUserQuestion", "ExitPlanMode")
"""Questions whose first choice is not simply yes."""


class ClaudeAgent(AgentType):
    name = "claude"
    program = "claude"
    install = "npm install -g @anthropic-ai/claude-code"
    forks = True
    headless = "claude -p"
    # Not CLAUDE_CODE_*: if Claude itself runs mngr, some of these describe its own session.
    environment = (
        "ANTHROPIC_*",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_*",
        "CLAUDE_CODE_SKIP_*",
        "CLAUDE_CODE_MAX_*",
        "CLAUDE_CODE_DISABLE_*",
        "CLAUDE_CODE_ENABLE_*",
        "CLAUDE_CODE_SUBAGENT_MODEL",
        "CLAUDE_CODE_EFFORT_LEVEL",
        "MAX_THINKING_TOKENS",
        "DISABLE_AUTOUPDATER",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "NODE_EXTRA_CA_CERTS",
        "SSL_CERT_FILE",
    )
    conversation = log.FILES
    reader = log
    # The input may contain a draft, or a prompt that Escape put back. Each Ctrl-U removes a line,
    # which Ctrl-Y restores; Backspace leaves the mode in which input is a shell command.
    clear_keys = ("C-u",) * 20 + ("BSpace",)

    def login(self, env: Mapping[str, str]) -> Login | None:
        from mngr.agents import logins

        return logins.claude(env)

    def prepare(self, context: LaunchContext) -> Launch:
        from mngr.agents.claude import launch  # not needed by `list`

        return launch.first(context)

    def resume(self, context: LaunchContext) -> Launch:
        from mngr.agents.claude import launch

        return launch.again(context)

    def signals(self, evidence: Evidence) -> Signals:
        return claude_state.read(evidence)

    def ready(self, evidence: Evidence) -> bool:
        return claude_state.has_input_box(evidence)

    def unread(self, evidence: Evidence) -> tuple[str, ...]:
        return claude_state.unread(evidence)

    def typed(self, text: str) -> str:
        """Return the text; a final backslash gets a space, or Enter would only add a line."""
        return f"{text} " if text.endswith("\\") else text

    def evidence(self, delivery: Delivery) -> Receipt:
        from mngr.agents.claude import delivery as claude_delivery

        return claude_delivery.receipt(delivery)

    def answer(self, evidence: Evidence, allow: bool) -> tuple[str, ...]:
        """Return the keys; Escape denies, the first choice allows if a tool asks for permission."""
        now = claude_state.status(evidence)
        asked = claude_state.request(evidence, now)
        if not allow:
            return ("Escape",)
        if asked is None or asked.input.get("tool_name") in NOT_A_YES:
            return ()
        return ("1",)
