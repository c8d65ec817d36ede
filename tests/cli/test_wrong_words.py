"""What cannot work is refused in one line, and a dry run only says what it would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli

WRONG: list[tuple[str, str]] = [
    ("host create", "requires one name and --provider"),
    ("host start", "no host to start given"),
    ("host trust", "host trust requires one host"),
    ("host trust one two", "host trust requires one host"),
    ("host list box", "`mngr host list` takes no host name"),
    ("host stop localhost", "host localhost cannot be stopped"),
    ("host snapshot localhost", "host localhost cannot be saved as an image"),
    ("stop @localhost", "to list its agents: `mngr list --include"),
    ("host forget", "no host to forget given"),
    ("host list --provider docker", "--provider is an option of `mngr host create or audit`"),
    ("host list --force", "--force is an option of `mngr host destroy or audit"),
    ("host start box --end", "--end is an option of `mngr host audit`"),
    ("host create box --provider dockr --dry-run", "unknown provider 'dockr'"),
    ("host create a/b --provider docker --dry-run", "'a/b' is not a host name"),
    ("host create box --provider docker -b x=1 --dry-run", "-b x: unknown build argument"),
    ("create foo --provider dockr -- true", "unknown provider 'dockr'; did you mean 'docker'?"),
    ("list --running=yes", "--running takes no value"),
    ("logs foo --follow --format json", "leave out --format"),
    ("migrate foo box:path", "'box:path' is not a host"),
    ("snapshot restore --stdin", "takes one agent"),
    ("create --batch - --name foo", "--batch and --name cannot be used together"),
    (
        "create foo --edit-message -m x -- true",
        "--edit-message and --message cannot be used together",
    ),
]


def test_an_option_without_value_or_command_points_to_the_help(local: Cli) -> None:
    local("-S").fails(2, "-S: expected one argument; see `mngr help`")


def test_an_empty_name_is_not_the_same_as_none(local: Cli) -> None:
    for words in (("clone", "foo", ""), ("pull", "foo", "--branch", ""), ("create", "")):
        local(*words).fails(2, "is empty; leave it out")


def test_words_that_do_not_go_together_are_named(local: Cli) -> None:
    for words, told in WRONG:
        local(*words.split()).fails(2, told)
    assert not local.controller_home.exists()


@pytest.mark.parametrize(
    ("content", "told"), [('A="b\n', "the quotes do not match"), ("#" * (1 << 20) + "\n", "1 MiB")]
)
def test_an_env_file_is_read_as_a_whole_or_refused(local: Cli, content: str, told: str) -> None:
    path = local.base / "env"
    path.write_text(content)
    local("create", "foo", "--env-file", str(path), "--", "true").fails(2, "--env-file", told)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("a.parent_type=b b.parent_type=a", "'a' is derived from itself: a -> b"),
        ("a.command='", "No closing quotation"),
    ],
)
def test_a_type_that_the_settings_define_badly_is_refused(
    local: Cli, settings: str, told: str
) -> None:
    options = [word for each in settings.split() for word in ("-S", f"agent_types.{each}")]
    local(*options, "create", "foo", "a", "--", "true").fails(2, told)


def test_a_dry_run_changes_nothing(local: Cli) -> None:
    local.create("foo")
    started = local.agent("foo")["start_time"]
    assert local("restart", "--dry-run", "foo").ok().out == "Would restart foo (RUNNING).\n"
    assert local.agent("foo")["start_time"] == started
    would = local("snapshot", "create", "--dry-run", "foo").ok()
    assert would.out == "Would take a snapshot of foo.\n"
    none = local("snapshot", "destroy", "foo", "--all-snapshots").ok()
    assert none.err == "foo has no snapshots.\n"
    local("snapshot", "create", "foo").ok()
    (local.work_dir("foo") / "README").write_text("changed")
    would = local("snapshot", "restore", "--dry-run", "foo", "1").ok()
    assert would.out == f"Would restore foo/1 in {local.work_dir('foo')}\n"
    assert (local.work_dir("foo") / "README").read_text() == "changed"
    gone = local("snapshot", "destroy", "foo", "1", "--format", "json").ok().json()
    assert [each["number"] for each in gone["snapshots"]] == [1]
    would = local("host", "create", "box", "--provider", "docker", "--dry-run").ok()
    assert would.out == "Would create the host box of docker.\n"


def test_standard_input_goes_to_one_agent_and_its_output_is_not_wrapped(local: Cli) -> None:
    for name in ("one", "two"):
        local.create(name)
    local("exec", "-i", "one", "two", "cat").fails(2, "require one agent, not 2")
    local("exec", "-i", "one", "--format", "json", "cat").fails(2, "leave out --format")


def test_a_list_of_names_is_not_watched_if_one_is_unknown(local: Cli) -> None:
    local.create("foo")
    done = local("list", "foo", "bar", "--watch", "1h")
    assert (done.code, done.err.count("no agent 'bar'")) == (3, 1), done.err


def test_this_machine_is_neither_destroyed_nor_forgotten(local: Cli) -> None:
    for verb in ("destroy", "forget"):
        refused = local("host", verb, "localhost", "--force").fails(1, "this machine")
        assert "mngr host" not in refused.err
    assert local("host", "audit").ok().out == "No hosts created by mngr\n"
    assert local("host", "list", "-q").ok().out == f"host-{0:032x}\n"


@pytest.mark.parametrize("mine", ["mine", "jot/mine"])
def test_the_demo_refuses_a_directory_in_use(tmp_path: Path, local: Cli, mine: str) -> None:
    """Otherwise the last line would tell the user to delete it."""
    path = tmp_path / "used" / mine
    path.parent.mkdir(parents=True)
    path.write_text("x")
    local("demo", str(tmp_path / "used"), timeout=20).fails(1, "used is not empty")
    assert [each for each in path.parents[mine.count("/")].rglob("*") if each.is_file()] == [path]
