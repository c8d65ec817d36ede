"""How many examples a property is tried on, where each of them costs more than usual."""

from __future__ import annotations

from hypothesis import settings


def examples(count: int) -> settings:
    """This many in `make test`; ten times as many in `make soak`."""
    thorough = settings.get_current_profile_name() == "soak"
    return settings(max_examples=count * 10 if thorough else count)
