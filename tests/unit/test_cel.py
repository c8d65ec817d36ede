"""Our evaluator beside another one, and beside text that nobody would write."""

from __future__ import annotations

from typing import TypeAlias

import cel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mngr.errors import UsageError
from mngr.filters import Fields, compile_filter
from mngr.struct import Json
from tests.support.properties import examples

Text: TypeAlias = st.SearchStrategy[str]

FIELDS = Fields(
    {
        "i": "int",
        "j": "int",
        "d": "double",
        "s": "string",
        "t": "string",
        "b": "bool",
        "l": "list",
        "w": "list",
        "m": "map",
        "n": "any",
        "r": {"x": "int", "y": "string"},
    }
)

# The oracle measures text in bytes and turns whole numbers into doubles to compare them: stay
# with ASCII and small numbers, where it is right.
ASCII = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=4)
SMALL = st.integers(-9, 9)
HALVES = st.integers(-20, 20).map(lambda n: n / 2)

ROWS = st.fixed_dictionaries(
    {
        "i": SMALL,
        "j": SMALL,
        "d": HALVES,
        "s": ASCII,
        "t": ASCII,
        "b": st.booleans(),
        "l": st.lists(SMALL, max_size=4),
        "w": st.lists(ASCII, max_size=4),
        "m": st.dictionaries(st.sampled_from(["a", "b", "c"]), SMALL),
        "n": st.none(),
        "r": st.fixed_dictionaries({"x": SMALL, "y": ASCII}),
    }
)


def quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def written(template: str, **parts: Text) -> Text:
    return st.fixed_dictionaries(parts).map(lambda made: template.format(**made))


def one_of(*templates: str, **parts: Text) -> Text:
    return st.one_of(*(written(template, **parts) for template in templates))


ints: Text = st.deferred(
    lambda: (
        SMALL.map(str)
        | st.sampled_from(["i", "j", "r.x", 'r["x"]', "m.a", 'm["b"]', "l[0]", "0x1F", "7u"])
        | one_of("{a} + {b}", "{a} - {b}", "({a}) * ({b})", "({a}) / ({b})", a=ints, b=ints)
        | one_of("({a}) % ({b})", "-({a})", "l[{a}]", "int({a})", a=ints, b=ints)
        | one_of("size({s})", "({s}).size()", "size({l})", s=texts, l=lists)
        | one_of("int({d})", 'int("{a}")', a=SMALL.map(str), d=HALVES.map(repr))
        | written("({t} ? {a} : {b})", t=tests, a=ints, b=ints)
    )
)
doubles: Text = st.deferred(
    lambda: (
        HALVES.map(repr)
        | st.sampled_from(["d", ".5", "1e2", "2.5E-1", 'double("1.5")'])
        | one_of("({a}) + ({b})", "({a}) - ({b})", "({a}) * ({b})", a=doubles, b=doubles)
        | one_of("({a}) / ({b})", "-({a})", "double({i})", a=doubles, b=doubles, i=ints)
    )
)
texts: Text = st.deferred(
    lambda: (
        ASCII.map(quoted)
        | st.sampled_from(["s", "t", "r.y", "w[0]", r"'\x41\u0062\103\''", r"r'\d'", '"""a"b"""'])
        | written("({a} + {b})", a=texts, b=texts)
        | written("string({a})", a=ints)
        | written("({t} ? {a} : {b})", t=tests, a=texts, b=texts)
    )
)
lists: Text = st.deferred(
    lambda: (
        st.just("l")
        | st.lists(ints, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | written("({a} + {b})", a=lists, b=lists)
        | written("{a}.filter(v, v > {i})", a=lists, i=SMALL.map(str))
    )
)
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
tests: Text = st.deferred(
    lambda: (
        st.sampled_from(["true", "false", "b", "n == null", "n == i", "1 / 0 == 1", "n > 1"])
        | one_of(*(f"({{a}}) {op} ({{b}})" for op in COMPARISONS), a=ints | doubles, b=ints)
        | one_of(*(f"{{a}} {op} {{b}}" for op in COMPARISONS), a=texts, b=texts)
        | one_of("{a} == {b}", "{a} != {b}", a=lists, b=lists)
        | one_of("({a}) in {b}", "{b}.exists(v, v == {a})", "{b}.all(v, v < {a})", a=ints, b=lists)
        | one_of("{b}.exists_one(v, v == {a})", "{b}.all(v, 6 / v > {a})", a=ints, b=lists)
        | one_of("{a} in m", "{a} in w", "m.exists(v, v == {a})", a=texts)
        | one_of("{a}.startsWith({b})", "{a}.endsWith({b})", "{a}.contains({b})", a=texts, b=texts)
        | one_of("{a}.matches('^a')", "{a}.matches('[b-y]+$')", "{a}.matches('.')", a=texts)
        | st.sampled_from(["has(m.a)", "!has(m.zzz)", "has(r.x)"])
        | one_of("{a} && {b}", "{a} || {b}", "({a} || {b})", "!({a})", a=tests, b=tests)
        | one_of("({a}) == ({b})", "({c} ? {a} : {b})", a=tests, b=tests, c=tests)
        | one_of(*(f'{{a}} {op} duration("1h30m")' for op in COMPARISONS), a=spans)
        | one_of(*(f"{{a}} {op} {{b}}" for op in COMPARISONS), a=moments, b=moments)
    )
)
spans: Text = st.deferred(
    lambda: (
        st.sampled_from(['duration("90m")', 'duration("-1.5h")', 'duration("5400s")'])
        | one_of("({a} + {b})", "({a} - {b})", a=spans, b=spans)
        | written("({a} - {b})", a=moments, b=moments)
    )
)
moments: Text = st.deferred(
    lambda: (
        st.sampled_from(
            ['timestamp("2025-03-01T12:00:00Z")', 'timestamp("2025-03-01T14:00:00.5+02:00")']
        )
        | one_of("({a} + {b})", "({a} - {b})", a=moments, b=spans)
    )
)

THOROUGH = examples(40)


@THOROUGH
@given(tests, ROWS)
def test_where_the_oracle_has_an_answer_ours_is_the_same(
    expression: str, row: dict[str, Json]
) -> None:
    try:
        expected = cel.evaluate(expression, row)
    except (TypeError, ValueError, ArithmeticError, LookupError, RuntimeError):
        return  # ours may well have an answer there: a missing key is null, say
    assert compile_filter(expression, FIELDS)(row) is expected


@THOROUGH
@given(ints, ROWS)
def test_whole_numbers_compute_like_the_oracle(expression: str, row: dict[str, Json]) -> None:
    try:
        expected = cel.evaluate(expression, row)
    except (TypeError, ValueError, ArithmeticError, LookupError, RuntimeError):
        return
    assert compile_filter(f"({expression}) == {expected}", FIELDS)(row)


@THOROUGH
@given(texts, ROWS)
def test_text_computes_like_the_oracle(expression: str, row: dict[str, Json]) -> None:
    try:
        expected = cel.evaluate(expression, row)
    except (TypeError, ValueError, ArithmeticError, LookupError, RuntimeError):
        return
    assert compile_filter(f"({expression}) == {quoted(expected)}", FIELDS)(row)


def outcome(expression: str, row: dict[str, Json]) -> str:
    try:
        return {True: "true", False: "false"}[compile_filter(expression, FIELDS)(row)]
    except UsageError as error:
        return str(error)


WORDS = st.sampled_from(
    "&& || ! == != < <= > >= + - * / % ? : . , ( ) [ ] { } in true null i d s b l m n r.x now 1 "
    "2.5 't' \"u\" has( size( .all(x, .exists(x, x .matches( int( string( timestamp( "
    "duration( = & \\ '[' '2025-01-01' '1h' 0x 1u .5 \"\"\" r'".split()
)


@THOROUGH
@given(
    st.text()
    | st.lists(WORDS, max_size=25).map(" ".join)
    | st.lists(WORDS, max_size=9).map("".join),
    ROWS,
)
@example("'\\ud800' == s", {})
@example("'\\U00110000' == s", {})
@example("s.matches('(?<\\n>a)')", {})
@example("s.matches('[[a]')", {})
@example("string(timestamp(9e9 * 9e9)) == s", {})
@example("timestamp('0001-01-01T00:00:00+23:59') < now", {})
@example("string(timestamp(d * 1e15)) == s", {"d": 9.0})
def test_any_text_gives_a_test_or_one_line_of_refusal(text: str, row: dict[str, Json]) -> None:
    assert outcome(text, row).isprintable()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=5,
)


@THOROUGH
@given(tests, st.dictionaries(st.sampled_from(list(FIELDS.kinds)), JSON))
def test_any_row_gives_an_answer_or_one_line_of_refusal(
    expression: str, row: dict[str, Json]
) -> None:
    assert outcome(expression, row).isprintable()


@pytest.mark.parametrize(
    "expression",
    [
        "1 + 2 * 3 == 7",
        "10 - 4 - 3 == 3",
        "-7 / 2 == -3 && -7 % 2 == -1 && 7 % -2 == 1",
        "1 == 1.0 && 1u == 1",
        "[1, 2.0] == [1.0, 2] && [1] != [true]",
        "{'a': 1, 'b': [2]} == {'b': [2.0], 'a': 1.0}",
        "false && false || true",
        "!false && true",
        "true ? (false ? false : true) : false ? true : false",
        "1 < 2 == true",
        "5.0 / 0.0 > 1e300 && -5.0 / 0.0 < -1e300",
        "0.0 / 0.0 != 0.0 / 0.0",
        "-9223372036854775808 < -9223372036854775807",
        "1 / 0 == 1 || true",
        "true || 1 / 0 == 1",
        "!(1 / 0 == 1 && false)",
        "[0, 1].exists(x, 1 / x == 1)",
        "![1, 0, 2].all(x, 2 / x == 2)",
        "[1, 2].exists(x, [2, 3].exists(y, x == y))",
        "[1].all(x, [2].all(x, x == 2) && x == 1)",
        "size('héé') == 3 && 'é'.size() == 1",
        "r'\\n' == '\\\\n' && '\\n' != '\\\\n'",
        "'\\U0001F600' == '\U0001f600' && '\\303' == 'Ã'",
        "'''it's''' == \"it's\"",
        "string(1.0) == '1' && string(2.5) == '2.5' && string(true) == 'true'",
        "string(timestamp('2025-03-01T14:00:00+02:00')) == '2025-03-01T12:00:00Z'",
        "string(duration('90s')) == '90s' && duration(90) == duration('1m30s')",
        "int('-12') == -12 && int(2.9) == 2 && int(-2.9) == -2 && double('1.5') == 1.5",
        "[1, 2, 3,].filter(x, x > 1) == [2, 3] && [] == []",
        "[[1, 2], [3]][1][0] == 3",
        "i + d == 3.5 && i * 2.0 == 4.0",
    ],
)
def test_expressions_mean_what_cel_says(expression: str) -> None:
    assert compile_filter(expression, FIELDS)({"i": 2, "d": 1.5})
