"""Work directories: where they come from, copying, pulling, pushing, running commands there."""
