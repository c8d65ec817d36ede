"""Short notes, kept as lines of JSON."""

__version__ = "0.1.0"
