"""Leave third-party tests to test_third_party.py, which runs those that are installed."""

from __future__ import annotations

collect_ignore = ["third_party"]
