"""mngr runs coding agents, or any command, side by side."""

__version__ = "0.1.0"
