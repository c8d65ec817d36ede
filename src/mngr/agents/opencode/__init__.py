"""The agent type `opencode`."""
