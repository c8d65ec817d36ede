"""JSON that does not fit a dataclass is refused with the name of the field."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pytest

from mngr.errors import BadRecord
from mngr.model.struct import Json
from mngr_outcome.codec import from_json


class Weather(StrEnum):
    FINE = "fine"
    FOUL = "foul"


@dataclass(frozen=True)
class Walk:
    ends: tuple[str, str]
    weather: Weather = Weather.FINE


def test_what_fits_is_read() -> None:
    told: Json = {"ends": ["home", "hill"], "weather": "foul"}
    assert from_json(Walk, told) == Walk(("home", "hill"), Weather.FOUL)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"ends": ["home"]}, "has 1 entries, not 2"),
        ({"ends": ["home", "hill"], "weather": "dry"}, "is 'dry', not fine or foul"),
    ],
)
def test_what_does_not_fit_is_named(told: Json, words: str) -> None:
    with pytest.raises(BadRecord, match=words):
        from_json(Walk, told)
