"""Modal's service on loopback: the real SDK uses it, and sandboxes are local processes."""
