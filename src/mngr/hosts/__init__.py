"""Hosts: the machines that agents run on."""
