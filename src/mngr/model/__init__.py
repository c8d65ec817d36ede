"""Records, states, events and addresses. Pure: no I/O and no clock."""
