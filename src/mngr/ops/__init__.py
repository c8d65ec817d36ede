"""The verbs. They reach a host only through its five methods."""
