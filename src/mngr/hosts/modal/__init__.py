"""Sandboxes of Modal, through its SDK, which only the bridge imports."""
