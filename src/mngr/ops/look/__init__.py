"""Read agents and what they print: list, capture, events, wait, doctor."""
