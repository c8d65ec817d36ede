"""The journal of a run, and the data that its events describe."""
