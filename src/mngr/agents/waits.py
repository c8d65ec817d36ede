"""Words for why an agent waits that several programs share."""

from __future__ import annotations

from mngr.agents.jsonl import iso

UNREACHABLE = "unreachable"
"""The model's server does not answer, and the program goes on trying."""


def reset(at: float, now: float) -> str:
    """When a used-up plan comes back, or that it has: most programs do not go on by themselves."""
    when = f"{iso(at)[:19]}Z"
    return f"resets {when}" if now < at else f"was reset {when}: send it a message to go on"
