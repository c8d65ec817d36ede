"""Make, start, stop, end and audit hosts."""
