"""Report pages of runs: static, escaped, and readable with only a browser."""
