"""Work directories: create, copy, pull, push, and run commands in them."""
