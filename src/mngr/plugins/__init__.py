"""Plugins: what they register, where installed ones are found, and what mngr brings itself."""

from __future__ import annotations

from mngr.plugins.registry import Registry

__all__ = ["Registry"]
