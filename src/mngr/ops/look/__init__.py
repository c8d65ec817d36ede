"""Read agents and their output: list, capture, events, wait, doctor."""
