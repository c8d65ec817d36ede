"""Snapshots, and what an agent did: compare, merge, rewind."""
