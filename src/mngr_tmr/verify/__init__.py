"""Verification: what a change does, measured in fresh clones in a sandbox."""
