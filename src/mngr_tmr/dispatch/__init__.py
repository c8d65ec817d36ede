"""Agents at work: launch, look, remind, collect, stop."""
