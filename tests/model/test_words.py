"""Sets of words behave as those of enum.StrEnum do, as far as they are used."""

from __future__ import annotations

import enum
import json

import pytest

from mngr.model.state import EndKind, State


def test_each_word_is_text_and_found_by_its_text() -> None:
    assert State("RUNNING") is State.RUNNING == "RUNNING"
    assert f"{State.RUNNING} {EndKind.TIMED_OUT}" == "RUNNING timed out"
    assert json.dumps([State.DONE, EndKind.PLAIN]) == '["DONE", ""]'
    assert "DONE" in {State.DONE}


def test_all_words_are_listed_in_their_order() -> None:
    class Expected(enum.StrEnum):
        PLAIN = ""
        NEVER_BEGAN = "never began"
        UNREPORTED = "unreported"
        TIMED_OUT = "timed out"
        OVER_LIMIT = "over its limit"

    assert [*EndKind] == [*Expected]
    assert [*EndKind.__members__] == [*Expected.__members__]
    assert isinstance(State.LOST, State)
    assert not isinstance(EndKind.PLAIN, State)


def test_any_other_text_is_refused() -> None:
    with pytest.raises(ValueError, match="'ASLEEP' is not a valid State"):
        State("ASLEEP")
