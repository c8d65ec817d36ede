"""From accepted changes to one linear branch that passes its gate at every commit."""
