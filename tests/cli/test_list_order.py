"""The columns and the sort order of `list`."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mngr.cli.commands.list_rows import parse_fields, parse_sort
from mngr.errors import UsageError
from mngr.model.struct import Json
from mngr.query import Fields, select

FIELDS = Fields(
    {
        "name": "string",
        "state": "string",
        "create_time": "string",
        "labels": "string map",
        "idle_seconds": "double",
        "host": {"id": "string", "name": "string"},
        "plugin": "map",
    }
)


def test_columns_are_known_names_or_keys_of_open_maps() -> None:
    asked = "name, state,host.name,labels.team,labels.app.io/x-y,plugin.claude.cost"
    assert parse_fields(asked, FIELDS) == [name.strip() for name in asked.split(",")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,stat", "unknown field 'stat' in --fields; did you mean 'state'?"),
        ("host.nme", "unknown field 'host.nme' in --fields; did you mean 'host.name'?"),
        ("name.first", "unknown field 'name.first' in --fields; did you mean 'name'?"),
        ("", "--fields has an empty field name"),
        ("name,,state", "--fields has an empty field name"),
    ],
)
def test_an_unknown_column_names_the_nearest(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_fields(text, FIELDS)
    assert message in str(caught.value)


def names_by(sort: str, rows: list[dict[str, Json]]) -> list[Json]:
    return [row["name"] for row in parse_sort(sort, FIELDS)(rows)]


ROWS: list[dict[str, Json]] = [
    {"name": "b", "idle_seconds": 5, "labels": {"team": "red"}},
    {"name": "a", "idle_seconds": None, "labels": {}},
    {"name": "d", "idle_seconds": 20, "labels": {"team": "blue"}},
    {"name": "c", "idle_seconds": 5, "labels": {"team": "red"}},
]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("name", "abcd"),
        ("-name", "dcba"),
        ("name:asc", "abcd"),
        ("name:desc", "dcba"),
        ("idle_seconds", "bcda"),
        ("-idle_seconds", "dbca"),
        ("idle_seconds,-name", "cbda"),
        ("-idle_seconds, name:desc", "dcba"),
        ("labels.team", "dbca"),
        ("labels.team:desc,name", "bcda"),
    ],
)
def test_rows_sort_by_several_columns_with_nulls_last(sort: str, order: str) -> None:
    assert names_by(sort, ROWS) == list(order)


@pytest.mark.parametrize(
    ("sort", "message"),
    [
        ("-crate_time", "unknown field 'crate_time' in --sort; did you mean 'create_time'?"),
        ("name:down", "unknown field 'name:down' in --sort; did you mean 'name'?"),
        ("-name:asc", "'-name:asc' in --sort gives the direction twice; use name:asc"),
        ("name,", "--sort has an empty field name"),
    ],
)
def test_a_mistake_in_a_sort_order_names_the_nearest(sort: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_sort(sort, FIELDS)
    assert message in str(caught.value)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=4
)


def shown(row: Mapping[str, Json]) -> object:
    """Return the value by which a row is sorted; equal values have the same rank."""
    value = select(row, "plugin.x")
    if value is None or value != value:
        return None
    if isinstance(value, (bool, int, float, str)):
        return isinstance(value, bool), value
    return json.dumps(value, sort_keys=True)


@example([3.0, float("nan"), 1.0], False, random.Random(0))
@given(st.lists(VALUES, max_size=12), st.booleans(), st.randoms(use_true_random=False))
def test_sorting_any_values_is_total_and_stable(
    values: list[Json], down: bool, shuffler: random.Random
) -> None:
    sort = parse_sort("-plugin.x" if down else "plugin.x", FIELDS)
    rows: list[dict[str, Json]] = [{"plugin": {"x": v}, "at": at} for at, v in enumerate(values)]
    ordered = sort(rows)
    shuffled = list(rows)
    shuffler.shuffle(shuffled)
    assert [shown(row) for row in sort(shuffled)] == [shown(row) for row in ordered]
    for one, other in itertools.pairwise(ordered):
        assert shown(one) != shown(other) or one["at"] < other["at"]  # type: ignore[operator]
    nulls = [shown(row) is None for row in ordered]
    assert nulls == sorted(nulls)


@given(st.lists(SCALARS.filter(lambda value: value is not None and value == value), max_size=12))
def test_descending_is_ascending_turned_around(values: list[Json]) -> None:
    rows: list[dict[str, Json]] = [{"plugin": {"x": value}} for value in values]
    up = parse_sort("plugin.x", FIELDS)(rows)
    down = parse_sort("plugin.x:desc", FIELDS)(rows)
    assert [shown(row) for row in up] == [shown(row) for row in reversed(down)]
