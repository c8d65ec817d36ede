from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.errors import UsageError
from mngr.model.struct import Json
from mngr.query import Fields, compile_filter, mentioned, select

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
        ('labels.nope == null && !has(labels["no-pe"])', True),
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
        ('now > "2025-02-28" && "2025-03-02T12:00:00" == now', True),
        ('now - duration("1d") == create_time', True),
        ('now - timestamp("2025-03-01") == duration("36h")', True),
        ("now - idle_seconds > create_time", True),
        ('idle_seconds > duration("11m")', True),
        ('idle_seconds > duration("12m")', False),
        ("project < now", False),
        ('plugin.note < now || plugin.note == "hi"', True),
    ],
)
def test_times_kept_as_text_and_spans_kept_as_seconds_compare_directly(
    expression: str, expected: bool
) -> None:
    assert matches(expression) is expected


def test_now_is_read_at_every_test_and_not_once() -> None:
    hours = [0]
    older = compile_filter(
        'now - create_time > duration("25h")', FIELDS, clock=lambda: NOON_NEXT_DAY + 3600 * hours[0]
    )
    assert not older(AGENT)
    hours[0] = 2
    assert older(AGENT)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('stat == "x"', "unknown field 'stat' at character 1 of --include; did you mean 'state'?"),
        ('true && STATE == "x"', "'STATE' at character 9 of --include; did you mean 'state'?"),
        ('host.nme == "x"', "unknown field 'host.nme' at character 1 of --include; did you mean"),
        ('host["nme"] == "x"', "'host.nme' at character 1 of --include; did you mean 'host.name'?"),
        ('provider == "x"', "'provider' at character 1 of --include; did you mean 'host.provider"),
        ("state == RUNNING", 'write "RUNNING" with quotes if it is text'),
        ('labels.a-b == "x"', """unexpected '-' at character 9 of --include; use labels["a-b"]"""),
        (
            'name.startswith("x")',
            "function '.startswith' at character 5 of --include; did you mean",
        ),
        ('startsWith(name, "x")', "unknown function 'startsWith' at character 1"),
        ("all(labels)", "unknown function 'all' at character 1 of --include; there are has, "),
        ('name.startsWith("a", "b")', "expected ')', found ','"),
        ('state = "x"', "unexpected '=' at character 7 of --include; use =="),
        ('true && state = "x"', "unexpected '=' at character 15 of --include; use =="),
        ("true and true", "unexpected 'and' at character 6 of --include; use &&"),
        ("true && not true", "expected a field, found 'not' at character 9 of --include; use !"),
        ("labels.a -", "unexpected '-' at character 10 of --include"),
        ("true && ", "expected a value, found the end at character 9 of --include"),
        ("", "expected a value, found the end at character 1 of --include"),
        ("(true", "expected ')', found the end at character 6"),
        ("true)", "unexpected ')' at character 5"),
        ("name in [1 2]", "expected ',', found '2' at character 12"),
        ('"a". == 1', "unexpected '.' at character 4"),
        ('name == "x', "found '\"' at character 9 of --include; use the same quote at both ends"),
        ("12ab == 1", "expected a value, found '12ab' at character 1"),
        ("name", "expected true or false, found text in --include; compare it"),
        ("true || name", "expected true or false, found text"),
        ("!name", "expected true or false, found text"),
        ('!name == "x"', "expected true or false, found text"),
        ("-name == 1", "expected a value, found '-' at character 1"),
        (
            'idle_seconds > "x"',
            "cannot compare number with text at character 14 of --include; write",
        ),
        ('exit_code == "0"', "cannot compare number with text at character 11"),
        ("labels.size > 3", "cannot compare text with number at character 13"),
        ("labels > 3", "cannot compare map with number"),
        ("labels > labels", "a map has no order at character 8"),
        ('now - create_time > "1h"', "cannot compare number with text at character 19"),
        ("now - labels > 3", "cannot subtract map from a timestamp at character 5"),
        ("now == 3", "cannot compare timestamp with number at character 5"),
        ('"x" in name', "'in' requires a list or a map, not text at character 5 of --include; use"),
        ("labels.contains('x')", "expected text, found map at character 7"),
        ('timestamp("yesterday") < now', "'yesterday' is not a timestamp at character 1"),
        ('duration("soon") > duration("1h")', "bad duration 'soon' at character 1 of --include"),
        ('now > "yesterday"', "'yesterday' is not a timestamp at character 5"),
        ('plugin.nope.matches("(")', "bad pattern: missing )"),
        ("has(1)", "expected a field, found '1' at character 5"),
        ("has(name) == has(nme)", "unknown field 'nme' at character 18"),
        ('host["a\tb"] == ""', "unknown field 'host.a\\tb'"),
    ],
)
def test_a_mistake_in_a_filter_is_one_line_that_says_what_to_write(
    expression: str, message: str
) -> None:
    assert message in refusal(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("exit_code + 1 == 2", "unexpected '+' at character 11"),
        ("idle_seconds / 60 > 11", "unexpected '/' at character 14"),
        ("exit_code % 2 == 0", "unexpected '%' at character 11"),
        ("exit_code - 1 == 2", "unexpected '-' at character 11"),
        ("now + duration('1h') > now", "unexpected '+' at character 5"),
        ("create_time - now > 3", "unexpected '-' at character 13"),
        ("now - now - now > 3", "unexpected '-' at character 11"),
        ("timestamp('2025-03-01') - now > 3", "unexpected '-' at character 25"),
        ('state == "DONE" ? false : true', "unexpected '?' at character 17"),
        ("size(name) > 1", "unknown function 'size' at character 1"),
        ("int(name) > 1", "unknown function 'int' at character 1"),
        ("plugin.claude.tools.exists(x, x == 1)", "unknown function '.exists' at character 20"),
        ("plugin.claude.tools[0] == 1", "expected text in quotes, found '0' at character 21"),
        ("name in [state]", "expected a value, found 'state' at character 10"),
        ("[[1]] == []", "expected a value, found '[' at character 2"),
        ("{} == labels", "expected a value, found '{' at character 1"),
        ("name.contains(state)", "expected text in quotes, found 'state' at character 15"),
        ("name.matches(state)", "expected text in quotes, found 'state' at character 14"),
        ("duration(5) > idle_seconds", "expected text in quotes, found '5' at character 10"),
        ("1e3 > 1", "expected a value, found '1e3' at character 1"),
        ("0x10 > 1", "expected a value, found '0x10' at character 1"),
        ("1u > 1", "expected a value, found '1u' at character 1"),
        (".5 > 1", "expected a value, found '.' at character 1"),
        (r'name == "\n"', "found '\"' at character 9 of --include; use the same quote at both"),
        ("b'a' == name", "unknown field 'b' at character 1"),
        ("true // ever", "unexpected '/' at character 6"),
    ],
)
def test_cel_outside_of_the_subset_is_an_error_that_names_it(expression: str, message: str) -> None:
    assert message in refusal(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("plugin.note > 3", "cannot compare text with number at character 13 of --include; write"),
        ("plugin.note", "expected true or false, found text in --include"),
        ('"x" in plugin.note', "'in' requires a list or a map, not text"),
        ("plugin.claude.startsWith('x')", "expected text, found map at character 14"),
        ("plugin.note < now", "'hi' is not a timestamp"),
        ("false || plugin.note > 3", "cannot compare text with number"),
    ],
)
def test_a_mistake_that_only_a_row_can_show_is_one_line_too(expression: str, message: str) -> None:
    assert message in refusal(expression)


def test_errors_name_the_option_the_expression_came_from() -> None:
    with pytest.raises(UsageError, match="unknown field 'nme' at character 1 of --until"):
        compile_filter("nme == 1", FIELDS, where="--until")


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 5000,
        "!" * 5000 + "true",
        "[" * 5000,
        "now" + " - (now" * 5000 + ")" * 5000 + " < now",
        "labels" + ".a" * 5000,
        "plugin" + ".a" * 5000 + " > 'x'",
        "name" + ".contains('x')" * 5000,
        "true || " * 12_500 + "true",
        'name.matches("' + "a" * 1001 + '")',
        'name.matches("' + "(" * 900 + ")" * 900 + '")',
        'name.matches("a{1,99999999999999999999}")',
        "9" * 6000 + " > 1",
        "1" * 19 + " > 1",
        'duration("' + "9" * 5000 + '") > 1',
        "unknown" * 10_000,
    ],
    ids=lambda expression: f"{expression[:20]} ({len(expression)})",
)
def test_a_gigantic_expression_fails_with_one_line(expression: str) -> None:
    assert len(refusal(expression)) < 300


def test_a_long_list_of_alternatives_is_not_too_deep() -> None:
    names = [f"agent-{number}" for number in range(2000)]
    assert matches(" || ".join(f'id == "{name}"' for name in names))
    assert matches(f"id in {names}")


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
    assert not compile_filter("anything.at.all == 3", events)({})
    with pytest.raises(UsageError, match=r"unknown field 'host\.nam'"):
        compile_filter("host.nam == 3", events)


def test_a_label_with_dots_is_found_by_its_name_and_by_its_key() -> None:
    row: dict[str, Json] = {"labels": {"app.io": "x"}, "plugin": {"a.b": {"c": 1}, "a": {"c": 2}}}
    assert matches('labels.app.io == "x" && labels["app.io"] == "x"', row)
    assert matches('plugin["a.b"].c == 1 && plugin.a.c == 2', row)


def test_the_names_an_expression_mentions_are_those_of_fields() -> None:
    text = 'has(cost) && labels.ahead != "dirty" && host["tokens"].idle && now - x in [true] && =='
    assert mentioned(text) == {"cost", "labels", "host", "now", "x"}


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
