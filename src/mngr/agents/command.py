"""Any program: exec'd without a shell."""

from __future__ import annotations

from mngr.agents.base import AgentType


class CommandAgent(AgentType):
    name = "command"
