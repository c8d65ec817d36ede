from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr.errors import UsageError
from mngr.model.durations import parse_duration

UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("14d", 1_209_600),
        ("1h30m", 5_400),
        ("90", 90),
        ("250ms", 0.25),
        ("1.5h", 5_400),
        (" 1h 30m ", 5_400),
        ("2 d", 172_800),
        ("0", 0),
        ("1m500ms", 60.5),
        ("2w", 1_209_600),
    ],
)
def test_people_write_durations_like_this(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", " ", "x", "3x", "-1", "1h1h", "30m1h", "1.h", ".5s", "1e3", "inf", "nan", "٣", "h"]
)
def test_anything_else_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match=r"bad duration.*1h30m"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["101" + "0" * 400, "99999999d", "36501d"])
def test_a_duration_beyond_a_lifetime_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="longer than 100 years"):
        parse_duration(text)


@settings(deadline=None)
@given(st.lists(st.integers(0, 99), min_size=5, max_size=5))
def test_units_add_up(amounts: list[int]) -> None:
    written = "".join(f"{n}{unit}" for n, unit in zip(amounts, UNITS, strict=True))
    expected = sum(n * size for n, size in zip(amounts, UNITS.values(), strict=True))
    assert parse_duration(written) == expected


@settings(deadline=None)
@given(st.integers(0, 3_000_000_000))
def test_a_bare_number_is_seconds(seconds: int) -> None:
    assert parse_duration(str(seconds)) == parse_duration(f"{seconds}s") == seconds


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_duration_or_a_usage_error(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except UsageError:
        return
    assert seconds >= 0
