"""The journal of a run, and the nouns that its events become."""
