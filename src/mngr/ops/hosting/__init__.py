"""Create, start, stop, end and audit hosts."""
