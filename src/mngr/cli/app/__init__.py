"""The command line itself: parse, run, print."""
