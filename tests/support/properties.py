"""The number of examples of a property whose examples are expensive."""

from __future__ import annotations

from hypothesis import settings


def examples(count: int) -> settings:
    """Run this many examples in `make test`, and ten times as many in `make soak`."""
    thorough = settings.get_current_profile_name() == "soak"
    return settings(max_examples=count * 10 if thorough else count)
