"""The agent type `claude`."""
