"""Settings: their layers, their schema, and reading and editing their files."""
