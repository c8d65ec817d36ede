"""Modal sandboxes, through Modal's SDK, which only the bridge imports."""
