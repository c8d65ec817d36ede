"""The program that runs on the agent's host: it imports only the standard library."""
