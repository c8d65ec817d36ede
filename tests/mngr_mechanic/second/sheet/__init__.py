# mypy: ignore-errors
"""Small tables from the command line."""

VERSION = "1.2"
