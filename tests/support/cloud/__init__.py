"""Modal's service on the loopback: the real SDK talks to it, and sandboxes are local processes."""
