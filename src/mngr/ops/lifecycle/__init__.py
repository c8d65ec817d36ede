"""Create, launch, start, stop, destroy, restore and collect agents."""
