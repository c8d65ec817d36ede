"""The mechanic: an agent without a model, and the program it brings along."""
