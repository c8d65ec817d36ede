from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.model.events import epoch, iso


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01", 0.0),
        ("1970-01-01T00:00:01", 1.0),
        ("1970-01-01T01:00:00.5+01:00", 0.5),
        ("1970-01-01T00:00:00Z", 0.0),
        ("0001-01-01T00:00:00+23:59", -62135683140.0),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_time_without_an_offset_is_utc_and_other_text_is_none(
    text: str, seconds: float | None
) -> None:
    assert epoch(text) == seconds


@given(st.integers(0, 4_000_000_000))
def test_a_time_that_was_written_is_read_again(seconds: int) -> None:
    assert epoch(iso(seconds + 0.5)) == seconds + 0.5
