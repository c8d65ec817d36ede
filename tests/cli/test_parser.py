from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.cli.app.options import overlay
from mngr.cli.app.parser import Parser, cut, settings_in, split_command
from mngr.errors import UsageError


@pytest.fixture
def parser() -> Parser:
    made = Parser("fly", "fly a kite")
    made.add_argument("target", nargs="+", metavar="TARGET")
    made.add_argument("--wind", choices=("north", "south"))
    made.add_argument("--height", type=int)
    made.add_argument("--string", action="switch", default=True)
    made.add_argument("--include-dirty", "--no-ensure-clean", action="store_true")
    made.add_argument("--label", action="pairs")
    made.add_argument("--bow", action="append")
    return made


def refusal(parser: Parser, *argv: str) -> str:
    with pytest.raises(UsageError) as caught:
        parser.parse(argv)
    return str(caught.value)


def test_options_and_words_may_be_mixed(parser: Parser) -> None:
    args = parser.parse(["a", "--wind", "north", "b", "--bow=x", "c", "--bow", "y"])
    assert args.target == ["a", "b", "c"]
    assert args.wind == "north"
    assert args.bow == ["x", "y"]


def test_common_options_are_on_every_command(parser: Parser) -> None:
    args = parser.parse(["a", "--format", "{name}", "-qv", "-Sa=b", "--headless"])
    assert (args.format, args.quiet, args.verbose, args.headless) == ("{name}", True, True, True)
    assert args.setting == ["a=b"]


def test_repeatable_options_are_empty_when_not_given(parser: Parser) -> None:
    args = parser.parse(["a"])
    assert args.bow == []
    assert args.label == {}
    assert args.rest == []


def test_a_dash_is_a_word_and_so_is_a_negative_number(parser: Parser) -> None:
    assert parser.parse(["-", "-5", "-x y"]).target == ["-", "-5", "-x y"]


def test_an_unknown_option_names_the_nearest(parser: Parser) -> None:
    message = refusal(parser, "a", "--wnid=north")
    assert message == "unknown option '--wnid=north'; did you mean '--wind'?"


def test_options_are_never_abbreviated(parser: Parser) -> None:
    assert refusal(parser, "a", "--heig", "3").startswith("unknown option '--heig'")


def test_an_unknown_choice_names_the_nearest(parser: Parser) -> None:
    message = refusal(parser, "a", "--wind", "nroth")
    assert message == "--wind: unknown value 'nroth'; did you mean 'north'?"
    assert refusal(parser, "a", "--wind", "zzz").endswith("choose from north, south")


def test_a_missing_word_or_value_is_named(parser: Parser) -> None:
    assert refusal(parser).startswith("missing TARGET")
    assert refusal(parser, "a", "--wind").startswith("--wind: expected one argument")
    assert "--height: invalid int value: 'x'" in refusal(parser, "a", "--height", "x")
    assert "KEY=VALUE" in refusal(parser, "a", "--label", "novalue")


def test_a_type_that_refuses_is_named_with_its_option() -> None:
    def knots(text: str) -> str:
        raise UsageError(f"bad wind {text!r}", "write it like 5kn")

    parser = Parser("fly")
    parser.add_argument("--wind", type=knots)
    assert refusal(parser, "--wind", "x") == "--wind: bad wind 'x'; write it like 5kn"


def test_a_superfluous_word_is_named() -> None:
    parser = Parser("fly")
    assert refusal(parser, "x").startswith("unexpected argument 'x'")


def test_after_two_dashes_everything_is_the_rest_if_the_command_wants_one(parser: Parser) -> None:
    parser.rest_name = "ARGS"
    args = parser.parse(["a", "--", "--wind", "b", "--", "-c"])
    assert args.target == ["a"]
    assert args.rest == ["--wind", "b", "--", "-c"]


def test_after_two_dashes_everything_is_a_word_otherwise(parser: Parser) -> None:
    args = parser.parse(["a", "--", "--wind", "-c"])
    assert args.target == ["a", "--wind", "-c"]
    assert args.rest == []


def test_help_wins_over_missing_words(parser: Parser) -> None:
    assert parser.parse(["--help"]).help


@pytest.mark.parametrize("bad", ["jsn", "{name", "name}", "{}", "{a}{", "x{{y}"])
def test_a_bad_format_is_refused_before_anything_runs(parser: Parser, bad: str) -> None:
    assert refusal(parser, "a", "--format", bad).startswith("--format: ")


def test_layers_lie_under_the_command_line(parser: Parser) -> None:
    parser.layer({"wind": "north", "height": 3, "bow": ["x"], "label": {"a": "1", "b": "1"}})
    parser.layer({"height": 4, "bow": ["y"], "label": {"b": "2"}})
    args = parser.parse(["t", "--wind", "south", "--bow", "z", "--label", "c=3"])
    assert (args.wind, args.height) == ("south", 4)
    assert args.bow == ["x", "y", "z"]
    assert args.label == {"a": "1", "b": "2", "c": "3"}
    assert parser.parse(["t"]).bow == ["x", "y"]


def test_a_layer_satisfies_a_required_option() -> None:
    parser = Parser("fly")
    parser.add_argument("--wind", required=True)
    assert refusal(parser).startswith("missing --wind")
    parser.layer({"wind": "north"})
    assert parser.parse([]).wind == "north"


def test_coerced_values_are_what_the_options_would_hold(parser: Parser) -> None:
    values = parser.coerce(
        {
            "wind": "north",
            "height": 7,
            "string": False,
            "no_ensure_clean": True,
            "label": {"a": "x", "n": 5},
            "bow": ["r", "g"],
            "format": "json",
            "quiet": None,
        },
        "line 1",
    )
    argv = "t --wind north --height 7 --no-string --include-dirty --label a=x --label n=5"
    argv += " --bow r --bow g --format json"
    assert {**vars(parser.parse(["t"])), **values} == vars(parser.parse(argv.split()))


def test_a_false_flag_undoes_a_true_one_below(parser: Parser) -> None:
    parser.layer(parser.coerce({"include_dirty": True, "string": False}, "user"))
    parser.layer(parser.coerce({"include_dirty": False, "string": True}, "project"))
    args = parser.parse(["t"])
    assert not args.include_dirty
    assert args.string


def test_an_option_with_an_optional_value_may_be_true() -> None:
    parser = Parser("fly")
    parser.add_argument("--watch", nargs="?", const=2, type=int)
    assert parser.coerce({"watch": True}, "x") == {"watch": 2}
    assert parser.coerce({"watch": 5}, "x") == {"watch": 5}


def test_pairs_may_be_given_as_a_list_too(parser: Parser) -> None:
    assert parser.coerce({"label": ["a=1", "b=2"]}, "x") == {"label": {"a": "1", "b": "2"}}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"wnid": "north"}, "line 3: 'mngr fly' has no option 'wnid'; did you mean 'wind'?"),
        ({"wind": "nroth"}, "line 3: wind: unknown value 'nroth'; did you mean 'north'?"),
        ({"height": "tall"}, "line 3: height: invalid int value: 'tall'"),
        ({"height": True}, "line 3: height: expected a string or number, not true"),
        ({"height": [1]}, "line 3: height: expected a string or number, not [1]"),
        ({"string": "yes"}, "line 3: string: expected true or false, not 'yes'"),
        ({"label": ["x"]}, "line 3: label: expected KEY=VALUE, not 'x'"),
        ({"bow": {"a": 1}}, "line 3: bow: expected a string or number, not {'a': 1}"),
        ({"target": "a"}, "line 3: 'mngr fly' has no option 'target'"),
        ({"help": True}, "line 3: 'mngr fly' has no option 'help'"),
        ({"no_string": True}, "line 3: 'mngr fly' has no option 'no_string'"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(
    parser: Parser, values: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parser.coerce(values, "line 3")  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)


@given(st.lists(words | st.sampled_from(["--", "--wind", "-q", "--label", "--bow", "-"])))
def test_no_command_line_raises_anything_but_a_usage_error(argv: list[str]) -> None:
    parser = Parser("fly")
    parser.add_argument("target", nargs="*")
    parser.add_argument("--wind", choices=("north",))
    parser.add_argument("--label", action="pairs")
    parser.add_argument("--bow", action="append")
    with suppress(UsageError):
        parser.parse(argv)


@given(st.lists(words), st.lists(words))
def test_the_rest_arrives_untouched(before: list[str], rest: list[str]) -> None:
    parser = Parser("fly")
    parser.rest_name = "ARGS"
    parser.add_argument("target", nargs="*")
    plain = [word for word in before if not word.startswith("-")]
    args = parser.parse([*plain, "--", *rest])
    assert args.target == plain
    assert args.rest == rest


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner) | st.dictionaries(words, inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["wind", "label", "bow", "quiet", "x"]), json_values))
def test_no_value_makes_coercion_raise_anything_but_a_usage_error(
    values: dict[str, object],
) -> None:
    parser = Parser("fly")
    parser.add_argument("--wind", type=int)
    parser.add_argument("--label", action="pairs")
    parser.add_argument("--bow", action="append")
    with suppress(UsageError):
        parser.layer(parser.coerce(values, "here"))  # type: ignore[arg-type]
        parser.parse([])


layers = st.dictionaries(
    st.sampled_from("abc"),
    st.lists(st.integers(), max_size=2),
)


@given(layers, layers, layers)
def test_laying_over_is_associative(
    a: dict[str, object], b: dict[str, object], c: dict[str, object]
) -> None:
    assert overlay(overlay(a, b), c) == overlay(a, overlay(b, c))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("list --format json", ([], "list", ["--format", "json"])),
        ("-S a=b --format json list x", (["-S", "a=b", "--format", "json"], "list", ["x"])),
        ("-qSa=b -vS c=d list", (["-qSa=b", "-vS", "c=d"], "list", [])),
        ("--format=json --headless list", (["--format=json", "--headless"], "list", [])),
        ("--help", (["--help"], "", [])),
        ("", ([], "", [])),
    ],
)
def test_common_options_may_stand_before_the_command(
    line: str, expected: tuple[list[str], str, list[str]]
) -> None:
    assert split_command(line.split()) == expected


def test_an_unknown_option_before_the_command_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown option '--formt'; did you mean '--format'"):
        split_command(["--formt", "json", "list"])
    with pytest.raises(UsageError, match="unknown option '-z'"):
        split_command(["-qz", "list"])


def test_settings_are_found_wherever_they_stand() -> None:
    argv = "-S a=1 list -Sb=2 --setting c=3 x --setting=d=4 -- -S e=5".split()
    assert settings_in(argv) == ["a=1", "b=2", "c=3", "d=4"]
    assert settings_in(["list", "-S"]) == []


@given(st.lists(words))
def test_cut_parts_at_the_first_two_dashes(argv: list[str]) -> None:
    own, rest = cut(argv)
    assert "--" not in own
    assert argv in ([*own], [*own, "--", *rest])
