"""The operations. They use a host only through its five methods."""
