"""The only place that builds git's argv."""
