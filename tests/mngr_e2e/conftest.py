"""The tests of other people's command lines are run by test_third_party.py, with those at hand."""

from __future__ import annotations

collect_ignore = ["third_party"]
