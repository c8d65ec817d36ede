"""The nouns: records, states, events and addresses. Pure: no I/O and no clock."""
