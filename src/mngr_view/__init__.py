"""Pages over what the other packages leave on disk."""
