"""Snapshots, and the changes of an agent: compare, merge, rewind."""
