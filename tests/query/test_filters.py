from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mngr.errors import UsageError
from mngr.model.struct import Json
from mngr.query import Fields, compile_filter, parse_fields, parse_sort, select

FIELDS = Fields(
    {
        "id": "string",
        "name": "string",
        "state": "string",
        "create_time": "string",
        "labels": "string map",
        "project": "string",
        "idle_seconds": "double",
        "exit_code": "int",
        "host": {"id": "string", "name": "string", "provider_name": "string", "tags": "string map"},
        "plugin": "map",
    }
)

AGENT: dict[str, Json] = {
    "id": "agent-1",
    "name": "otter",
    "state": "RUNNING",
    "create_time": "2025-03-01T12:00:00Z",
    "labels": {"team": "red", "a-b": "dashed", "size": "5", "rank": "first"},
    "project": None,
    "idle_seconds": 700,
    "exit_code": None,
    "host": {"id": "host-1", "name": "localhost", "provider_name": "local", "tags": {}},
    "plugin": {"claude": {"cost": 1.5, "tools": ["edit", "bash"]}, "note": "hi"},
}

NOON_NEXT_DAY = 1_740_916_800.0


def matches(expression: str, agent: dict[str, Json] = AGENT) -> bool:
    return compile_filter(expression, FIELDS, clock=lambda: NOON_NEXT_DAY)(agent)


def refusal(expression: str) -> str:
    with pytest.raises(UsageError) as caught:
        matches(expression)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "expression",
    [
        'state == "RUNNING" && host.provider_name == "local"',
        'name in ["otter", "heron"]',
        'name.startsWith("ot") && name.endsWith("er") && name.contains("tt")',
        'name.matches("^o.*r$")',
        'labels.team == "red"',
        'labels["a-b"] == "dashed"',
        '"team" in labels && !("nope" in labels)',
        "idle_seconds >= 700 && idle_seconds < 700.5 && idle_seconds != -700",
        '"bash" in plugin.claude.tools',
        "plugin.claude.cost > 1",
        "labels == labels && plugin.claude != labels",
        'host["name"] == "localhost"',
        r""" 'ot'.startsWith("o") && name.matches(r'^\w+$') """,
        "!!(true || false && false)",
    ],
)
def test_a_filter_matches_what_it_describes(expression: str) -> None:
    assert matches(expression)
    assert not matches(f"!({expression}\n)")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('labels.nope == "x"', False),
        ('labels.nope != "x"', True),
        ("labels.nope == null", True),
        ("has(labels.nope)", False),
        ("!has(labels.nope)", True),
        ("has(labels.team)", True),
        ("has(exit_code)", False),
        ('labels.nope > "a"', False),
        ('labels.nope <= "a"', False),
        ('labels.nope.startsWith("a")', False),
        ('!labels.nope.startsWith("a")', True),
        ('labels.nope.startsWith("a") == false', True),
        ('labels.nope in ["a"]', False),
        ("plugin.nope.deeper.still == 1", False),
        ("plugin.note.deeper == 1", False),
        ("plugin.nope", False),
        ("plugin.nope || true", True),
        ('"a" in plugin.nope', False),
        ("plugin.nope == now - plugin.nope", True),
        ("exit_code == null", True),
        ("exit_code != 0", True),
        ("exit_code > 0", False),
        ("exit_code <= 0", False),
    ],
)
def test_what_is_missing_reads_as_null_and_null_passes_no_test(
    expression: str, expected: bool
) -> None:
    assert matches(expression) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('now - create_time > duration("23h")', True),
        ('now - create_time > duration("1d")', False),
        ('create_time < now - duration("2h")', True),
        ('create_time > timestamp("2025-03-01T13:00:00+02:00")', True),
        ('create_time == timestamp("2025-03-01T13:00:00+01:00")', True),
        ('create_time > "2025-02"', True),
        ('create_time + duration("1d") == now', True),
        ('create_time - timestamp("2025-03-01") == duration("12h")', True),
        ('idle_seconds > duration("11m")', True),
        ('idle_seconds > duration("12m")', False),
        ('duration("1h") - duration("2h") < duration("1s")', True),
        ("project < now", False),
        ('plugin.note < now || plugin.note == "hi"', True),
    ],
)
def test_times_kept_as_text_and_spans_kept_as_seconds_compare_directly(
    expression: str, expected: bool
) -> None:
    assert matches(expression) is expected


def test_now_is_read_at_every_test_and_not_once() -> None:
    clock = itertools.count(NOON_NEXT_DAY, 3600)
    older = compile_filter('now - create_time > duration("25h")', FIELDS, clock=lambda: next(clock))
    assert [older(AGENT) for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('stat == "x"', "unknown field 'stat' in --include; did you mean 'state'?"),
        ('STATE == "x"', "unknown field 'STATE' in --include; did you mean 'state'?"),
        ('host.nme == "x"', "unknown field 'host.nme' in --include; did you mean 'host.name'?"),
        ('host["nme"] == "x"', "unknown field 'host.nme' in --include; did you mean 'host.name'?"),
        ('provider == "x"', "'provider' in --include; did you mean 'host.provider_name'?"),
        ("state == RUNNING", 'write "RUNNING" with quotes if it is text'),
        (
            'labels.a-b == "x"',
            "unknown field 'b' in --include; a key with a dash is written ['a-b']",
        ),
        ('labels.a.b == "x"', """'labels.a.b' in --include; a key with dots is written ["a.b"]"""),
        ('name.startswith("x")', "unknown function 'startswith' at character 6 of --include"),
        ("all(labels)", "unknown function 'all' at character 1 of --include; there are contains"),
        ("size(name) > 1", "unknown function 'size' at character 1 of --include"),
        ('name.startsWith("a", "b")', "expected ')', found ','"),
        ("idle_seconds / 60 > 11", "unexpected '/' at character 14"),
        ('state == "DONE" ? false : true', "unexpected '?' at character 17"),
        ('state = "x"', "unexpected '=' at character 7 of --include; use == to compare"),
        ("true and true", "unexpected 'and' at character 6 of --include; use && for and"),
        ("labels.a -", "expected a value, found the end at character 11 of --include"),
        ("true && ", "expected a value, found the end at character 9 of --include"),
        ("", "expected a value, found the end at character 1 of --include"),
        ("(true", "expected ')', found the end at character 6"),
        ('"a". == 1', "expected a name, found '==' at character 6"),
        ('name == "x', "missing closing quote at character 9"),
        (r'name == "\q"', "unknown escape in text at character 9"),
        (r'name == "\ud800"', "unknown escape in text at character 9"),
        ("12ab == 1", "invalid number at character 1"),
        ("name", "expected true or false, found string in --include; compare it"),
        ("true || name", "expected true or false, found string"),
        ("!name", "expected true or false, found string"),
        ("-name == 1", "expected a value, found '-' at character 1"),
        ('idle_seconds > "x"', "cannot compare double with string at character 14 of --include"),
        ('exit_code == "0"', "cannot compare int with string at character 11"),
        ("labels.size > 3", "cannot compare string with int at character 13"),
        ("labels > 3", "cannot compare map with int"),
        ('now - create_time > "1h"', "cannot compare duration with string at character 19"),
        ('"x" in name', "'in' requires a list or a map, not string at character 5 of --include"),
        ("exit_code + 1 == 2", "cannot use '+' on int and int at character 11 of --include; only"),
        ("labels.contains('x')", "contains() requires text, not map at character 8"),
        ('timestamp("yesterday") < now', "'yesterday' is not a timestamp at character 1"),
        ('duration("soon") > duration("1h")', "'soon' is not a duration at character 1"),
        ("duration(5) > idle_seconds", "duration() takes text in quotes"),
        ('now > "yesterday"', "'yesterday' is not a timestamp"),
        ('name.matches("(")', "bad pattern: missing )"),
        ("name.matches(state)", "matches() takes text in quotes"),
        ("has(1)", "has() takes one field"),
        ("has(name) == has(nme)", "unknown field 'nme'"),
        ('host["a\\nb"] == ""', "unknown field 'host.a\\nb'"),
    ],
)
def test_a_mistake_in_a_filter_is_one_line_that_says_what_to_write(
    expression: str, message: str
) -> None:
    assert message in refusal(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("plugin.note > 3", "cannot compare string with int at character 13 of --include; text is"),
        ("plugin.note", "expected true or false, found string in --include"),
        ('"x" in plugin.note', "'in' requires a list or a map, not string"),
        ("plugin.claude.startsWith('x')", "startsWith() requires text, not map"),
        ("plugin.note < now", "'hi' is not a timestamp"),
        ("false || plugin.note > 3", "cannot compare string with int"),
    ],
)
def test_a_mistake_that_only_a_row_can_show_is_one_line_too(expression: str, message: str) -> None:
    assert message in refusal(expression)


def test_errors_name_the_option_the_expression_came_from() -> None:
    with pytest.raises(UsageError, match="unknown field 'nme' in --until"):
        compile_filter("nme == 1", FIELDS, where="--until")


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 5000,
        "[" * 5000,
        "now" + " - duration('1s')" * 5000 + " < now",
        "labels" + ".a" * 5000,
        "plugin" + ".a" * 5000 + " > 'x' && 1",
        "name" + ".contains('x')" * 5000,
        "x" * 100_001,
        'name.matches("' + "a" * 1001 + '")',
        'name.matches("' + "(" * 900 + ")" * 900 + '")',
        'name.matches("a{1,99999999999999999999}")',
        "9" * 6000 + " > 1",
        "1e999 > 1",
    ],
    ids=lambda expression: f"{expression[:20]} ({len(expression)})",
)
def test_a_gigantic_expression_fails_with_one_line(expression: str) -> None:
    assert len(refusal(expression)) < 300


def test_a_long_list_of_alternatives_is_not_too_deep() -> None:
    names = [f"agent-{number}" for number in range(2000)]
    assert matches(" || ".join(f'id == "{name}"' for name in names))
    assert matches(f"id in {names}")
    assert matches("!" * 5000 + "true")


def test_matches_refuses_text_too_long_to_search() -> None:
    long = {**AGENT, "name": "x" * 65_537}
    with pytest.raises(UsageError, match="at most 65,536 characters"):
        compile_filter('name.matches("x")', FIELDS)(long)


def test_deeply_nested_data_fails_with_one_line() -> None:
    deep: Json = []
    for _ in range(5000):
        deep = [deep]
    agent: dict[str, Json] = {"plugin": {"a": deep, "b": [deep]}}
    with pytest.raises(UsageError, match="nested too deeply"):
        compile_filter("plugin.a == plugin.b", FIELDS)(agent)


def test_rows_with_names_of_their_own_allow_unknown_fields_only_at_the_top() -> None:
    events = Fields({"type": "string", "host": {"name": "string"}}, more=True)
    assert compile_filter("exit_code == 3", events)({"exit_code": 3})
    assert not compile_filter("exit_code == 3", events)({})
    assert parse_fields("type,anything.at.all", events) == ["type", "anything.at.all"]
    with pytest.raises(UsageError, match=r"unknown field 'host\.nam'"):
        compile_filter("host.nam == 3", events)


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


def test_selecting_follows_dots_and_finds_keys_that_hold_dots() -> None:
    row: dict[str, Json] = {"labels": {"a.b": 1, "a": {"b": 2, "c": 3}}, "name": "x"}
    found = [select(row, name) for name in ("labels.a.b", "labels.a.c", "name", "name.x", "nope.x")]
    assert found == [1, 3, "x", None, None]


@given(st.lists(st.text(st.characters(exclude_characters="."), min_size=1), min_size=1, max_size=6))
def test_selecting_a_path_finds_what_was_put_there(path: list[str]) -> None:
    value: Json = "here"
    for key in reversed(path):
        value = {key: value}
    assert isinstance(value, dict)
    assert select(value, ".".join(path)) == "here"


def names_by(sort: str, rows: list[dict[str, Json]]) -> list[Json]:
    return [row["name"] for row in sorted(rows, key=parse_sort(sort, FIELDS))]


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


def x_of(row: dict[str, Json]) -> Json:
    return select(row, "plugin.x")


@example([3.0, float("nan"), 1.0], False, random.Random(0))
@given(st.lists(VALUES, max_size=12), st.booleans(), st.randoms(use_true_random=False))
def test_sorting_any_values_is_total_and_stable(
    values: list[Json], down: bool, shuffler: random.Random
) -> None:
    key = parse_sort("-plugin.x" if down else "plugin.x", FIELDS)
    rows: list[dict[str, Json]] = [{"plugin": {"x": v}, "at": at} for at, v in enumerate(values)]
    ordered = sorted(rows, key=key)
    shuffled = list(rows)
    shuffler.shuffle(shuffled)
    assert [key(row) for row in sorted(shuffled, key=key)] == [key(row) for row in ordered]
    for one, other in itertools.pairwise(ordered):
        assert key(one) != key(other) or one["at"] < other["at"]  # type: ignore[operator]
    unordered = [value is None or value != value for value in map(x_of, ordered)]
    assert unordered == sorted(unordered)


@given(st.lists(SCALARS.filter(lambda value: value is not None and value == value), max_size=12))
def test_descending_is_ascending_turned_around(values: list[Json]) -> None:
    rows: list[dict[str, Json]] = [{"plugin": {"x": value}} for value in values]
    up = sorted(rows, key=parse_sort("plugin.x", FIELDS))
    down = sorted(rows, key=parse_sort("plugin.x:desc", FIELDS))
    ranks = [parse_sort("plugin.x", FIELDS)(row) for row in reversed(down)]
    assert ranks == [parse_sort("plugin.x", FIELDS)(row) for row in up]
