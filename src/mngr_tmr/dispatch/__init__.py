"""The agents of a run: launch, read, remind, collect and stop them."""
