"""The program that runs on the agent's host: the standard library and nothing else."""
