"""Providers that create hosts with a program: containers, allocations, pods, any engine."""
