"""The command line: one small module per command that parses, calls the API and renders."""
