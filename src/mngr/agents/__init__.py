"""Agent types: the programs that run in agents."""
