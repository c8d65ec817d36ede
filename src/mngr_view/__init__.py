"""Pages over what runs leave on disk: static, escaped, and they need nothing but a browser."""
