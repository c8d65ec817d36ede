"""Limits on time, tokens and cost, prices and usage."""
