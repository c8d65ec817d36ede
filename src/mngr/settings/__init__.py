"""Settings: where they come from, what there is, reading and editing their files."""
