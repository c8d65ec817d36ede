"""Plugins: the registry, installed plugins, and the built-in ones."""

from __future__ import annotations

from mngr.plugins.registry import Registry

__all__ = ["Registry"]
