"""The doors: one small module per command that parses, calls the api and renders."""
