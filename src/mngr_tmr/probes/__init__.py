"""pytest plugins that run inside the project's tests, and reading what they report."""
