"""mngr runs coding agents, or any command, in parallel."""

__version__ = "0.1.0"
