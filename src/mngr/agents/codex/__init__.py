"""The agent type `codex`."""
