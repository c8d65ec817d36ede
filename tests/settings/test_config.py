from __future__ import annotations

import json
import os
import string
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import tomlkit
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mngr.cli.app.main import make_parser
from mngr.cli.app.options import Option
from mngr.cli.app.parser import Parser
from mngr.errors import MngrError, UsageError
from mngr.model.struct import Json
from mngr.plugins.registry import load_registry
from mngr.settings.edit import change, edited
from mngr.settings.file import _toml_value, parse_settings, parse_value, read_settings
from mngr.settings.layers import Config, find_project, new_project
from mngr.settings.parsed import parsed
from mngr.settings.schema import (
    SETTINGS,
    check,
    check_one,
    defaults,
    join_key,
    kind_of,
    leaves,
    lookup,
    merge,
    nest,
    sift,
    split_key,
)
from tests.support.properties import examples

NAMES = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=6)
SCALARS = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
)
# As in settings, a name always stands for a table or never does.
TREES: st.SearchStrategy[dict[str, Json]] = st.recursive(
    st.dictionaries(st.sampled_from("abc"), SCALARS | st.lists(SCALARS, max_size=2)),
    lambda inner: st.builds(merge, inner, st.dictionaries(st.sampled_from("TUV"), inner)),
    max_leaves=8,
)


def assert_one_line(error: UsageError) -> None:
    assert "\n" not in str(error)


class World:
    """A user's home and a project in it, both empty."""

    def __init__(self, base: Path) -> None:
        self.user_home = base / "user"
        self.home = self.user_home / ".mngr"
        self.project = self.user_home / "work" / "project"
        self.home.mkdir(parents=True)
        self.project.mkdir(parents=True)
        self.env = {"HOME": str(self.user_home)}

    def write(self, scope: str, text: str) -> Path:
        folder = self.home if scope == "user" else self.project / ".mngr"
        folder.mkdir(exist_ok=True)
        file = folder / ("settings.local.toml" if scope == "local" else "settings.toml")
        file.write_text(text)
        return file

    def load(self, *settings: str, cwd: Path | None = None, strict: bool = True) -> Config:
        cwd = cwd or self.project
        return Config.load(str(self.home), str(cwd), self.env, settings, strict=strict)

    def found(self, cwd: Path) -> str:
        return find_project(str(cwd), str(self.home), self.env)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


# Layers.


def test_without_any_settings_the_defaults_stand(world: World) -> None:
    config = world.load()
    assert config.get("trash.keep") == "14d"
    assert config.seconds("stop.grace") == 10
    assert config.count("tmux.width") == 200
    assert config.origin("trash.keep") == "default"
    assert config.get("providers.x.y", "fallback") == "fallback"
    assert config.table("create_templates") == {}
    assert config.command_defaults("create") == {}


def test_every_layer_beats_the_ones_below_it(world: World) -> None:
    files = {s: world.write(s, f'[trash]\nkeep = "{s}"') for s in ("user", "project", "local")}
    for file in files.values():
        file.write_text(f'providers.x.y = "{file.name}"')
    assert world.load().origin("providers.x.y") == str(files["local"])
    world.env["MNGR__PROVIDERS__X__Y"] = "variable"
    assert world.load().get("providers.x.y") == "variable"
    assert world.load().origin("providers.x.y") == "MNGR__PROVIDERS__X__Y"
    assert world.load("providers.x.y=setting").get("providers.x.y") == "setting"
    assert world.load("providers.x.y=1", "providers.x.y=2").get("providers.x.y") == 2
    assert world.load("providers.x.y=1").origin("providers.x.y") == "-S"
    for name in ("MNGR__PROVIDERS__X__Y", "local", "project"):
        world.env.pop(name, None)
        if name in files:
            files[name].unlink()
    assert world.load().origin("providers.x.y") == str(files["user"])


def test_tables_merge_and_lists_replace(world: World) -> None:
    world.write("user", '[commands.create]\nlabel = ["a=1"]\nproject = "one"')
    world.write("project", '[commands.create]\nlabel = ["b=2"]')
    assert world.load().command_defaults("create") == {"label": ["b=2"], "project": "one"}


def test_a_command_whose_name_has_a_dot_has_its_own_defaults(world: World) -> None:
    world.write("user", '[commands."a.b"]\nx = 1')
    assert world.load().command_defaults("a.b") == {"x": 1}


def test_variables_with_single_underscores_are_not_settings(world: World) -> None:
    world.env |= {"MNGR_HOST_DIR": "/x", "MNGR_AGENT_NAME": "y", "MNGRX__A": "z"}
    assert world.load().values == defaults()


@settings(deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=4), st.from_regex(r"[a-hj-m][a-z ]*", fullmatch=True))
def test_double_underscores_in_a_variable_separate_lower_case_names(
    names: list[str], value: str
) -> None:
    variable = "__".join(["MNGR", "PROVIDERS", "p", *names]).upper()
    config = Config.load("/nowhere", "/", {"HOME": "/nowhere", variable: value})
    key = ".".join(["providers", "p", *names])
    assert config.get(key) == value
    assert config.origin(key) == variable


@pytest.mark.parametrize("name", ["MNGR__", "MNGR____A", "MNGR__TRASH__", "MNGR__A____B"])
def test_a_variable_with_an_empty_part_is_named(world: World, name: str) -> None:
    world.env[name] = "1"
    assert str(world.load().unknown[0]).startswith(f"bad variable name {name};")


@settings(deadline=None)
@given(TREES, TREES, TREES)
def test_merging_is_associative(
    one: dict[str, Json], two: dict[str, Json], three: dict[str, Json]
) -> None:
    assert merge(merge(one, two), three) == merge(one, merge(two, three))


@settings(deadline=None)
@given(TREES, TREES)
def test_the_upper_layer_wins_and_nothing_else_is_lost(
    below: dict[str, Json], above: dict[str, Json]
) -> None:
    before = repr((below, above))
    merged = merge(below, above)
    for key, value in leaves(above):
        assert lookup(merged, split_key(key)) == value
    assert merge(merged, above) == merged
    assert merge({}, above) == merge(above, {}) == above
    assert {k: v for k, v in merged.items() if k not in above} == {
        k: v for k, v in below.items() if k not in above
    }
    assert repr((below, above)) == before


# Names.


@settings(deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=5))
def test_a_key_of_any_parts_can_be_written_and_read_back(parts: list[str]) -> None:
    assert split_key(join_key(tuple(parts))) == tuple(parts)


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_key_or_a_usage_error(text: str) -> None:
    try:
        assert split_key(text)
    except UsageError as error:
        assert_one_line(error)


@pytest.mark.parametrize("key", ["", ".", "a.", ".a", "a..b", 'a."b', 'a"b"', '"a"b', 'a."\\x"'])
def test_a_malformed_key_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match="bad setting name"):
        split_key(key)


def test_a_key_of_a_thousand_parts_is_refused(world: World) -> None:
    with pytest.raises(UsageError, match="bad setting name"):
        world.load(f"providers.x{'.a' * 1000}=1")


# Values on the command line and in variables.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("1.5", 1.5),
        ("true", True),
        ("false", False),
        ('["a", "b"]', ["a", "b"]),
        ("{a = 1}", {"a": 1}),
        ('"3"', "3"),
        ("'a b'", "a b"),
        ("1_000", 1000),
        ("0x10", 16),
        ("", ""),
        (" 3 ", 3),
        ("14d", "14d"),
        ("007", "007"),
        ("True", "True"),
        ("hello world", "hello world"),
        ("3 # three", "3 # three"),
        ("1\nb = 2", "1\nb = 2"),
        ("1, b = 2", "1, b = 2"),
        ("1}\nx = {a = 2", "1}\nx = {a = 2"),
        ("inf", "inf"),
        ("+inf", "+inf"),
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
        ("٣", "٣"),
        ("[" * 5000, "[" * 5000),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_a_value_is_toml_if_it_is_toml_and_text_otherwise(text: str, value: Json) -> None:
    found = parse_value(text)
    assert (type(found), found) == (type(value), value)


@settings(deadline=None)
@given(
    st.text()
    | st.from_regex(r"[\"'\[{+\-0-9tfin_.,=} a]{0,8}", fullmatch=True)
    | st.from_regex(r'\["[a",\]\[ \\x7f\t1]{0,8}', fullmatch=True)
    | st.lists(st.text() | st.integers() | st.none()).map(json.dumps)
)
@example(r'["\/"]')
@example('["\x7f"]')
def test_the_short_cut_for_common_values_agrees_with_the_toml_parser(text: str) -> None:
    assert repr(parse_value(text)) == repr(_toml_value(text))


def test_a_setting_that_is_text_stays_text_even_if_it_looks_like_a_number(world: World) -> None:
    config = world.load("agent_types.x.env.PORT=8080", "agent_types.x.command=7")
    assert config.table("agent_types.x") == {"env": {"PORT": "8080"}, "command": "7"}


def test_a_setting_needs_a_value(world: World) -> None:
    with pytest.raises(UsageError, match=r"-S trash\.keep has no value"):
        world.load("trash.keep")


# What may be set.


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("trash.kep", "trash.keep"),
        ("trsh.keep", "trash.keep"),
        ("keep", "trash.keep"),
        ("trash.keep.x", "trash.keep"),
        ("agent_type.mine.command", "agent_types.mine.command"),
        ("agent_types.mine.comand", "agent_types.mine.command"),
        ("command.create.project", "commands.create.project"),
        ("create_template.x.type", "create_templates.x.type"),
    ],
)
def test_an_unknown_key_names_the_nearest(world: World, key: str, near: str) -> None:
    with pytest.raises(UsageError) as error:
        world.load(f"{key}=x")
    assert str(error.value) == f"unknown setting {key!r} in -S; did you mean {near!r}?"


def test_an_option_without_its_command_is_told_where_options_go(world: World) -> None:
    with pytest.raises(UsageError, match=r"'create\.project' in -S; options go under commands\."):
        world.load("create.project=x")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("tmux.width", "abc", "a whole number above 0"),
        ("tmux.width", "0", "a whole number above 0"),
        ("tmux.width", "true", "a whole number above 0"),
        ("tmux.width", "1.5", "a whole number above 0"),
        ("trash.keep", "soon", "a duration such as"),
        ("trash.keep", "-1", "a duration such as"),
        ("trash.keep", "true", "a duration such as"),
        ("trash.keep", "[]", "a duration such as"),
        ("plugins.modules", "a", "a list of strings"),
        ("plugins.modules", "[1]", "a list of strings"),
        ("trash", "1", "a table"),
        ("agent_types.x", "1", "a table"),
        ("agent_types.x.env", "1", "a table"),
        ("agent_types.x.command", "[1]", "a string or a list of strings"),
        ("commands.create", "[]", "a table"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(
    world: World, key: str, value: str, expected: str
) -> None:
    with pytest.raises(UsageError) as error:
        world.load(f"{key}={value}")
    assert str(error.value).startswith(f"{key} in -S must be {expected}")


def test_every_default_passes_its_own_check() -> None:
    check(defaults(), "the defaults")
    assert all(kind_of(split_key(key)) == kind for key, (kind, _, _) in SETTINGS.items())


@settings(deadline=None)
@given(VALUES, st.lists(st.sampled_from(["agent_types", "trash", "keep", "x", "env"]), max_size=4))
def test_any_tree_is_accepted_or_refused_in_one_line(value: Json, names: list[str]) -> None:
    try:
        check_one(tuple(names) or ("x",), value, "here")
    except UsageError as error:
        assert_one_line(error)


# Files.


def problem(world: World) -> str:
    with pytest.raises(UsageError) as error:
        world.load()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_broken_file_is_named_with_its_line(world: World) -> None:
    file = world.write("project", '[trash]\nkeep = "14d"\nkeep\n')
    assert problem(world).startswith(f"{file}:3: expected '=' after a key")


def test_a_file_that_ends_too_early_is_named(world: World) -> None:
    file = world.write("user", "[trash")
    assert problem(world).startswith(f"{file}: expected ']'")


def test_an_unknown_key_in_a_file_names_the_file(world: World) -> None:
    file = world.write("local", "[trash]\nkep = 1")
    expected = f"unknown setting 'trash.kep' in {file}; did you mean 'trash.keep'?"
    assert list(map(str, world.load().unknown)) == [expected]


def test_the_rest_of_a_file_with_an_unknown_key_holds(world: World) -> None:
    world.write("user", 'tash = 1\n[trash]\nkep = 1\nkeep = "3d"\n[providers.x]\nany.thing = 1')
    config = world.load()
    assert config.get("trash.keep") == "3d"
    assert config.get("providers.x.any.thing") == 1
    assert [str(each).split("'")[1] for each in config.unknown] == ["tash", "trash.kep"]


@given(TREES)
def test_what_is_kept_of_a_tree_is_known(tree: dict[str, Json]) -> None:
    kept, unknown = sift(tree, "here")
    assert sift(kept, "here") == (kept, [])
    assert bool(unknown) == (kept != tree)


def test_two_variables_have_short_names(world: World) -> None:
    world.env |= {"MNGR_HEADLESS": "Yes", "MNGR_PREFIX": "team-"}
    assert world.load().get("headless") is True
    assert world.load().get("prefix") == "team-"
    assert world.load().origin("headless") == "MNGR_HEADLESS"
    world.env["MNGR__HEADLESS"] = "false"
    assert world.load().get("headless") is False
    world.env["MNGR_PREFIX"] = "Team_"
    assert problem(world).startswith("prefix in MNGR_PREFIX must be up to 30 lower-case letters")


def test_a_file_that_is_not_utf8_is_named_with_its_line(world: World) -> None:
    file = world.write("user", "")
    file.write_bytes(b'[trash]\nkeep = "\xff"\n')
    assert problem(world) == f"{file}:2: not UTF-8 text"


def test_a_directory_in_place_of_the_file_is_named(world: World) -> None:
    (world.home / "settings.toml").mkdir()
    assert problem(world) == f"{world.home}/settings.toml is a directory, not a settings file"


def test_a_fifo_in_place_of_the_file_does_not_block(world: World) -> None:
    os.mkfifo(world.home / "settings.toml")
    assert problem(world) == f"{world.home}/settings.toml is a special file, not a settings file"


def test_an_enormous_file_is_refused_unread(world: World) -> None:
    file = world.write("user", "")
    os.truncate(file, (1 << 20) + 1)
    assert problem(world).startswith(f"{file} is larger than 1 MiB")


def test_a_file_that_cannot_be_opened_is_named(world: World) -> None:
    file = world.home / "settings.toml"
    file.symlink_to(file)
    assert problem(world) == f"cannot read {file}: Too many levels of symbolic links"


@pytest.mark.parametrize("depth", [40, 3000])
@pytest.mark.parametrize("text", ["providers.x.y = <[>1<]>", "providers<.a> = 1"])
def test_a_bottomless_file_is_refused(world: World, text: str, depth: int) -> None:
    for piece in ("[", "]", ".a"):
        text = text.replace(f"<{piece}>", piece * depth)
    file = world.write("user", text)
    assert problem(world) == f"{file}: nested too deeply"


def test_a_byte_order_mark_and_windows_line_ends_are_fine(world: World) -> None:
    world.write("user", "").write_bytes(b'\xef\xbb\xbf[trash]\r\nkeep = "1d"\r\n')
    assert world.load().get("trash.keep") == "1d"


def test_a_file_in_place_of_the_home_counts_as_no_settings(world: World) -> None:
    world.home.rmdir()
    world.home.write_text("")
    assert world.load().values == defaults()


def test_dates_and_infinities_become_text(world: World) -> None:
    world.write("user", "[providers.x]\nwhen = 2024-01-02T03:04:05Z\nmany = -inf\nnone = nan")
    table = {"when": "2024-01-02 03:04:05+00:00", "many": "-inf", "none": "nan"}
    assert world.load().table("providers.x") == table


def test_broken_layers_are_left_out_when_not_strict(world: World) -> None:
    world.write("user", '[trash]\nkeep = "1d"')
    world.write("project", "[")
    world.env["MNGR__TRASH__KEP"] = "1"
    config = world.load(strict=False)
    assert config.get("trash.keep") == "1d"
    assert (len(config.problems), len(config.unknown)) == (1, 1)


def test_a_bad_setting_on_the_command_line_is_never_left_out(world: World) -> None:
    with pytest.raises(UsageError, match=r"trash\.kep"):
        world.load("trash.kep=1", strict=False)


@settings(deadline=None)
@given(st.binary(max_size=40) | st.text("[]{}=.\"'#\n\\u ax1e", max_size=40).map(str.encode))
def test_any_bytes_are_settings_or_a_usage_error(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        try:
            assert isinstance(read_settings(file.name), dict)
        except UsageError as error:
            assert_one_line(error)


# Projects.


def make_project(place: Path) -> str:
    (place / ".mngr").mkdir(parents=True, exist_ok=True)
    (place / ".mngr" / "settings.toml").touch()
    return str(place / ".mngr")


def test_the_nearest_project_above_is_found(world: World) -> None:
    outer = make_project(world.project)
    inner = make_project(world.project / "a")
    (world.project / "a" / "b" / "c").mkdir(parents=True)
    assert world.found(world.project / "a" / "b" / "c") == inner
    assert world.found(world.project) == outer


def test_a_local_file_alone_makes_a_project(world: World) -> None:
    file = world.write("local", "")
    assert world.found(world.project) == str(file.parent)


def test_a_folder_without_settings_is_passed_over(world: World) -> None:
    outer = make_project(world.project)
    (world.project / "a" / ".mngr").mkdir(parents=True)
    assert world.found(world.project / "a") == outer


def test_the_search_ends_around_the_git_repository(world: World) -> None:
    repository = world.project / "group" / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / "src").mkdir()
    make_project(world.project)
    assert world.found(repository / "src") == ""
    group = make_project(world.project / "group")
    assert world.found(repository / "src") == group
    own = make_project(repository)
    assert world.found(repository / "src") == own


def test_a_worktree_whose_git_is_a_file_is_a_repository_too(world: World) -> None:
    worktree = world.project / "around" / "worktree"
    worktree.mkdir(parents=True)
    (worktree / ".git").write_text("gitdir: elsewhere")
    make_project(world.project)
    assert world.found(worktree) == ""


def test_the_home_is_never_a_project(world: World) -> None:
    world.write("user", "")
    assert world.found(world.user_home) == ""
    assert world.found(world.home) == ""
    assert world.found(world.user_home / "work") == ""


def test_another_home_does_not_make_the_usual_one_a_project(world: World) -> None:
    world.write("user", "")
    other = str(world.user_home / "other")
    assert find_project(str(world.project), other, world.env) == ""


def test_a_home_inside_the_tree_is_not_a_project(world: World) -> None:
    home = make_project(world.project)
    assert find_project(str(world.project), home, world.env) == ""


def test_nothing_above_the_users_home_is_searched(world: World) -> None:
    make_project(world.user_home.parent)
    assert world.found(world.project) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to a stranger")
def test_settings_a_stranger_left_above_are_ignored(world: World) -> None:
    folder = make_project(world.user_home / "work")
    assert world.found(world.project) == folder
    os.chown(folder, 4242, 4242)
    assert world.found(world.project) == ""
    os.chown(world.project, 4242, 4242)
    assert world.found(world.project) == folder


def test_a_new_project_is_at_the_git_root_or_else_right_here(world: World) -> None:
    inside = world.project / "a" / "b"
    inside.mkdir(parents=True)
    assert new_project(str(inside), str(world.home), world.env) == str(inside / ".mngr")
    (world.project / ".git").mkdir()
    assert new_project(str(inside), str(world.home), world.env) == str(world.project / ".mngr")


def test_the_users_home_cannot_become_a_project(world: World) -> None:
    with pytest.raises(UsageError, match="is not in a project; change to one, or use --scope user"):
        new_project(str(world.user_home), str(world.home), world.env)


# Editing.


def exactly(value: Json) -> str:
    """Return a value to compare; unlike ==, it distinguishes 1, 1.0 and true."""
    return json.dumps(value, sort_keys=True)


DOCUMENT = """\
# The first line.
trash.keep = "1d"  # long enough

[providers.x]
# about y
y = "old"   # why
z = [1, 2]

[commands.create] # defaults
project = "p"
"""


@settings(deadline=None, max_examples=50)
@given(
    st.sampled_from(["providers.x.y", "providers.x.new", "providers.n.a.b", "commands.create.y"]),
    VALUES,
)
def test_a_value_set_is_read_back_and_all_else_stays(key: str, value: Json) -> None:
    parts = split_key(key)
    after = edited(DOCUMENT, parts, value, "settings.toml")
    tree = parse_settings(after, "settings.toml")
    assert exactly(lookup(tree, parts)) == exactly(value)
    for comment in ("# The first line.", "# long enough", "# about y", "# defaults"):
        assert comment in after
    other = merge(parse_settings(DOCUMENT, ""), nest(parts, "same"))
    assert merge(tree, nest(parts, "same")) == other


@settings(deadline=None, max_examples=20)
@given(st.dictionaries(st.sampled_from("abc"), st.dictionaries(NAMES, VALUES, max_size=3)), VALUES)
def test_values_survive_any_sequence_of_edits(
    tables: dict[str, dict[str, Json]], last: Json
) -> None:
    text = ""
    pairs = [(("providers", t, n), v) for t, values in tables.items() for n, v in values.items()]
    for parts, value in [*pairs, (("providers", "a", "last"), last)]:
        text = edited(text, parts, value, "settings.toml")
    tree = parse_settings(text, "settings.toml")
    for parts, value in pairs:
        if parts != ("providers", "a", "last"):
            assert exactly(lookup(tree, parts)) == exactly(value)
            text = edited(text, parts, None, "settings.toml")
    left = lookup(parse_settings(text, ""), ("providers", "a", "last"))
    assert exactly(left) == exactly(last)


def test_a_value_taken_out_leaves_the_rest_and_its_comments() -> None:
    after = edited(DOCUMENT, ("providers", "x", "y"), None, "settings.toml")
    assert after == DOCUMENT.replace('y = "old"   # why\n', "")


def test_taking_out_what_is_not_there_changes_nothing() -> None:
    assert edited(DOCUMENT, ("providers", "q", "y"), None, "settings.toml") == DOCUMENT


def test_a_file_without_a_last_line_end_can_be_edited() -> None:
    after = edited('trash.keep = "1d"', ("tmux", "width"), 9, "settings.toml")
    assert after == 'trash.keep = "1d"\n\n[tmux]\nwidth = 9\n'


def test_a_file_of_dotted_keys_can_be_edited() -> None:
    dotted = 'providers.x.y = 1\ntrash.keep = "1d"\n'
    after = edited(dotted, ("providers", "z", "w"), {"a": 2}, "settings.toml")
    providers: Json = {"x": {"y": 1}, "z": {"w": {"a": 2}}}
    assert parse_settings(after, "") == {"providers": providers, "trash": {"keep": "1d"}}


def test_an_edit_that_would_change_something_else_is_not_made() -> None:
    odd = "[a]\n[c.a]\nb.b.b = 1\n# c\n[a.a]\n"
    with pytest.raises(
        MngrError, match=r"cannot change a\.c\.b in .* without changing other settings"
    ):
        edited(odd, ("a", "c", "b"), "x", "settings.toml")


PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(".".join)
LINES = st.one_of(
    PATHS.map("[{}]".format),
    PATHS.map("[[{}]]".format),
    PATHS.map("{} = 1".format),
    PATHS.map("{} = [1,\n 2] # two".format),
    PATHS.map('{} = {{a = "x"}}'.format),
    st.sampled_from(["", "# comment"]),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(LINES, max_size=8).map("\n".join), PATHS, st.sampled_from([None, 1, [2], {"q": 3}]))
def test_any_edit_of_any_file_changes_only_its_key_or_nothing(
    text: str, key: str, value: Json
) -> None:
    try:
        before = parse_settings(text, "")
        after = parse_settings(edited(text, split_key(key), value, ""), "")
    except MngrError:
        return
    same = nest(split_key(key), "same")
    assert lookup(after, split_key(key)) == value
    assert dict(leaves(merge(after, same))) == dict(leaves(merge(before, same)))


def test_a_key_cannot_be_set_below_a_value() -> None:
    with pytest.raises(UsageError, match=r"providers\.x\.y in settings.toml is not a table"):
        edited(DOCUMENT, ("providers", "x", "y", "deeper"), 1, "settings.toml")


def test_a_new_private_file_is_for_its_owner_only(world: World) -> None:
    path = world.user_home / "new" / "settings.toml"
    change(str(world.home), str(path), ("trash", "keep"), "1d", private=True)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_an_edited_file_keeps_its_permissions_and_its_link(world: World) -> None:
    real = world.user_home / "dotfiles.toml"
    real.write_text("# mine\n")
    real.chmod(0o640)
    link = world.home / "settings.toml"
    link.symlink_to(real)
    change(str(world.home), str(link), ("trash", "keep"), "1d", private=True)
    assert link.is_symlink()
    assert real.read_text().startswith("# mine\n")
    assert world.load().get("trash.keep") == "1d"
    assert real.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(world.user_home)) == [".mngr", "dotfiles.toml", "work"]


def test_edits_at_the_same_time_are_all_kept(world: World) -> None:
    code = (
        "import sys; from mngr.settings.edit import change; home, n = sys.argv[1:]\n"
        "for i in range(5):\n"
        "    key = ('providers', 'x', f'k{n}x{i}')\n"
        "    change(home, home + '/settings.toml', key, i, private=True)"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", code, str(world.home), str(n)]) for n in range(4)
    ]
    assert [run.wait(60) for run in runs] == [0] * 4
    assert len(world.load().table("providers.x")) == 20


# Cost.


def test_no_settings_means_no_toml_parser(world: World) -> None:
    code = (
        "import sys; from mngr.settings.layers import Config\n"
        "c = Config.load(sys.argv[1], '/', {'HOME': '/', 'MNGR__TMUX__WIDTH': '80',\n"
        "    'MNGR__COMMANDS__CREATE__CONNECT_COMMAND': 'echo hi'}, ['stop.grace=3'])\n"
        "assert c.get('tmux.width') == 80\n"
        "heavy = {'tomllib', 'tomlkit', 'typing', 'json', 'pathlib', 'dataclasses', 'difflib'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, str(world.home)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.stdout == "\n"


HEAVY = """
import sys; from mngr.settings.layers import Config
print(Config.load(sys.argv[1], '/', {'HOME': '/'}).get('trash.keep'), 'tomllib' in sys.modules)
"""


def test_a_file_is_parsed_once_and_again_when_its_text_changes(world: World) -> None:
    def kept() -> str:
        argv = [sys.executable, "-S", "-c", HEAVY, str(world.home)]
        env = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        return subprocess.run(argv, capture_output=True, text=True, check=True, env=env).stdout

    file = world.write("user", '[trash]\nkeep = "1d"')
    assert [kept(), kept()] == ["1d True\n", "1d False\n"]
    before = file.stat()
    file.write_text('[trash]\nkeep = "2d"')
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # nothing but the text tells
    assert [kept(), kept()] == ["2d True\n", "2d False\n"]
    index = world.home / "cache" / "settings.json"
    assert index.stat().st_mode & 0o777 == 0o600  # settings may contain secrets
    index.write_text('{"[trash')
    assert [kept(), kept()] == ["2d True\n", "2d False\n"]


@examples(20)
@given(TREES)
def test_what_is_kept_of_a_file_is_what_was_parsed(tree: dict[str, Json]) -> None:
    with tempfile.TemporaryDirectory() as home:
        path = os.path.join(home, "settings.toml")
        Path(path).write_text(tomlkit.dumps(tree), encoding="utf-8", newline="")
        expected = repr(read_settings(path))
        assert [repr(parsed(path, home)), repr(parsed(path, home))] == [expected, expected]


# defaults of options


SAMPLES: tuple[Json, ...] = (True, False, 3, "json", "5s", "a=b", "label:x", "x")


@pytest.mark.parametrize("command", load_registry(None).names("command"))
def test_every_option_of_every_command_can_have_a_default(command: str) -> None:
    parser = make_parser(load_registry(None), command)
    for action in parser.every_option():
        if action.dest not in ("help", "setting"):
            option = next(each for each in action.option_strings if each.startswith("--"))
            assert _takes_effect(parser, action, option[2:].replace("-", "_")), option


def _takes_effect(parser: Parser, action: Option, key: str) -> bool:
    values: list[Json] = [*map(str, action.choices or ()), *SAMPLES]
    plain = _value(parser, action, {})
    for value in values:
        try:
            if _value(parser, action, parser.coerce({key: value}, "here")) != plain:
                return True
        except UsageError:
            continue  # not a value of that kind
    return False


def _value(parser: Parser, action: Option, base: dict[str, object]) -> object:
    parser.base = base
    return getattr(parser.parse(["--help"]), action.dest)  # which wants no words
