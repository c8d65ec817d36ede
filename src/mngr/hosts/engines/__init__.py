"""Providers that make hosts with a program: containers, allocations, pods, any engine."""
