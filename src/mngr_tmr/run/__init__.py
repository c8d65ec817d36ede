"""One run from the tests it collects to the branch it publishes."""
