"""Engines by templates in the settings: how values are put in, and what a template can break."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.errors import UsageError
from mngr.hosts.engines.command import filled
from mngr.model.quoting import quote
from tests.support.cli import KILL_AT, Cli
from tests.support.folders import on_folders
from tests.support.screen import Screen


def printed(script: str) -> bytes:
    done = subprocess.run(
        ["sh", "-c", script.encode("utf-8", "surrogateescape")], capture_output=True, check=True
    )
    return done.stdout


@given(st.text(st.characters(min_codepoint=1, max_codepoint=0x10FFFF, exclude_categories=["Cs"])))
def test_a_value_arrives_as_one_word_whatever_it_holds(value: str) -> None:
    script = filled("printf '%s|' before {name} after", {"name": quote(value)})
    assert printed(script) == f"before|{value}|after|".encode()


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.text(), min_size=3))
def test_a_value_that_looks_like_a_place_is_not_filled_again(values: dict[str, str]) -> None:
    values = {**values, "a": "{b}"}
    assert filled("{a}-{b}-{c}", values) == f"{{b}}-{values['b']}-{values['c']}"


@given(st.sampled_from(["${HOME}", "{}", "{ echo; }", "{{x}}", "{A}", "awk '{print $1}'"]))
def test_other_braces_stay(text: str) -> None:
    assert filled(text, {"x": "y"}) == text.replace("{x}", "y")


def test_an_unknown_place_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"label.*known here: handle"):
        filled("rm {label}", {"handle": "x"})


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Cli]:
    with on_folders(tmp_path) as cli:
        yield cli


def test_an_engine_by_template(folders: Cli, tmp_path: Path) -> None:
    place = tmp_path / "folders"
    make = ("host", "create", "box", "--provider", "folders")
    folders(*make, "-b", "color=red").fails(2, "folders takes colour")
    folders(*make, "-b", "colour=it's $HOME `id`", "-s", "a b", "-s", "$(id)").ok()
    assert (place / "box" / "colour").read_text() == "it's $HOME `id`\n"
    assert (place / "box" / "args").read_text() == "a b\n$(id)\n"
    folders.create("foo@box")
    assert folders("exec", "foo", 'echo "$HOME"').ok().out.strip() == str(place / "box")
    assert folders("host", "audit").ok().out.split()[-3:] == ["folders", "box", "true"]
    image = folders("host", "snapshot", "box").ok().out.rstrip(".\n").split()[-1]
    assert (place / f".{image}" / "colour").exists()
    folders("host", "stop", "box").fails(2, "cannot be stopped")
    folders("host", "destroy", "box", "--force").ok()
    folders("host", "audit", "--provider", "folders").ok()
    broken = {"MNGR__PROVIDERS__FOLDERS__LIST": "echo down >&2; exit 3"}
    told = folders("provider", "list", "--format", "json", env=broken).ok().json()["providers"]
    standing = {each["name"]: each for each in told}["folders"]
    assert (standing["usable"], standing["reason"]) == (False, "providers.folders.list: down")


def test_templates_that_start_and_stop_a_host(folders: Cli, tmp_path: Path) -> None:
    key = "MNGR__PROVIDERS__FOLDERS__"
    for verb in ("START", "STOP"):
        folders.env[f"{key}{verb}"] = f"echo {verb} {{handle}} >> {tmp_path}/log"
    folders("host", "create", "box", "--provider", "folders").ok()
    folders("host", "stop", "box").ok()
    folders("host", "start", "box").ok()
    assert (tmp_path / "log").read_text() == "STOP box\nSTART box\n"


def test_a_host_created_anew_while_it_starts_keeps_its_note(folders: Cli) -> None:
    host = shlex.join(folders.argv("host"))
    again = f"({host} destroy --force box && {host} create box --provider folders) >&2"
    folders.env |= {f"MNGR__PROVIDERS__FOLDERS__{verb}": again for verb in ("START", "STOP")}
    folders("host", "create", "box", "--provider", "folders").ok()
    note = folders.controller_home / "hosts" / "folders" / "box.json"
    before = json.loads(note.read_text())["id"]
    folders("host", "start", "box").ok()
    assert json.loads(note.read_text())["id"] != before


def test_a_terminal_returns_to_the_shell_when_its_client_suspends_itself(folders: Cli) -> None:
    """As ssh does after `~` and Ctrl-Z."""
    key = "MNGR__PROVIDERS__FOLDERS__"
    suspending = folders.env[f"{key}EXEC"].replace("kill -0", "kill -STOP $$; kill -0")
    folders("host", "create", "box", "--provider", "folders").ok()
    folders.create("foo@box")
    with Screen(folders, {f"{key}ATTACH": suspending}) as screen:
        screen.mngr("connect", "foo")
        screen.shows("Stopped")
        screen.type("fg")
        screen.shows("[foo]")
        screen.keys("C-b", "d")
        screen.shows("[detached")


def test_templates_that_are_wrong_are_named(folders: Cli) -> None:
    key = "MNGR__PROVIDERS__FOLDERS__"
    make = ("host", "create", "box", "--provider", "folders")
    for changed, told in (
        ({"CREATE": ":"}, "providers.folders.create printed no handle"),
        ({"EXEC": "sh 'x"}, "providers.folders.exec: No closing quotation"),
        ({"EXEC": ""}, "providers.folders has no exec"),
    ):
        refused = folders(*make, env={f"{key}{name}": text for name, text in changed.items()})
        assert refused.code in (1, 2) and told in refused.err, refused.err
        assert (
            folders("host", "audit", "--provider", "folders", "--format", "json")
            .ok()
            .json()["hosts"]
            == []
        )


def test_a_host_whose_template_left_a_process_can_be_destroyed(folders: Cli) -> None:
    """Its first process has what the template had open, and lives as long as the host."""
    words = ("host", "create", "box", "--provider", "folders")
    assert folders(*words, env={KILL_AT: "host_made"}).code == -9
    folders("host", "destroy", "box").ok()
    folders("host", "audit", "--provider", "folders").ok()


def test_a_host_keeps_the_tags_it_was_made_with(folders: Cli, tmp_path: Path) -> None:
    tags = ("--host-label", "team=web", "--host-label", "note=a 'b' $HOME")
    folders("host", "create", "box", "--provider", "folders", *tags).ok()
    assert (tmp_path / "folders" / "box" / "tags").read_text() == "team=web\nnote=a 'b' $HOME\n"
    folders.create("foo@box")
    folders.create("bar@.folders", "--host-label", "team=ops")
    folders.create("baz")
    assert folders.agent("foo")["host"]["tags"] == {"team": "web", "note": "a 'b' $HOME"}
    shown = folders("host", "list").ok().out.splitlines()
    assert "TAGS" in shown[0] and any("team=ops" in line for line in shown)

    def listed(*words: str) -> list[str]:
        return folders("list", *words, "--format", "{name}").ok().out.split()

    assert listed("--host-label", "team") == ["foo", "bar"]
    assert listed("--host-label", "team=ops") == ["bar"]
    assert listed("--include", 'host.tags.team == "web"') == ["foo"]
    assert listed("--hosts", "--host-label", "team=web") == ["box"]
    folders("create", "qux", *tags, "--", "sleep", "9").fails(2, "--host-label is for a new host")
    folders("create", "qux", "--max-age", "1h", "--", "sleep", "9").fails(2, "@.PROVIDER")
    make = ("host", "create", "other", "--provider", "folders", "--host-label")
    folders(*make, "team").fails(2, "expected KEY=VALUE")
    folders(*make, "mngr-host=x").fails(2, "mngr uses tags of this name itself")


def test_several_hosts_are_one_document_and_the_code_says_whether_any_is_done(
    folders: Cli, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        folders("host", "create", name, "--provider", "folders").ok()
    both = ("one", "two", "--format", "json")
    planned = folders("host", "destroy", *both, "--dry-run").ok().json()
    assert [each["name"] for each in planned["hosts"]] == ["one", "two"]
    planned = folders("host", "forget", *both, "--dry-run", "--force").ok().json()
    assert [each["name"] for each in planned["hosts"]] == ["one", "two"]
    refused = folders("host", "stop", *both)
    assert refused.code == 2 and refused.json()["hosts"] == []
    assert [each["message"] for each in refused.json()["errors"]] == [
        line.removeprefix(f"mngr: {name}: ")
        for name, line in zip(both, refused.err.splitlines(), strict=False)
    ]
    snapshot = folders.env["MNGR__PROVIDERS__FOLDERS__SNAPSHOT"]
    half = {"MNGR__PROVIDERS__FOLDERS__SNAPSHOT": f"[ {{handle}} = one ] && {snapshot}"}
    saved = folders("host", "snapshot", *both, env=half)
    assert saved.code == 3
    assert [each["name"] for each in saved.json()["hosts"]] == ["one"]
    assert len(saved.json()["errors"]) == 1
    assert len(folders("host", "destroy", *both).ok().json()["hosts"]) == 2


def test_a_clone_on_a_new_host_creates_one_host(folders: Cli) -> None:
    folders("create", "one@.folders", "--no-connect", "--", "sleep", "600").ok()
    folders("exec", "one", "echo work > own.txt").ok()
    folders("clone", "one", "two@.folders").ok()
    listed = folders("host", "list", "--format", "json").ok().json()["hosts"]
    assert sorted(each["name"] for each in listed) == ["localhost", "one", "two"]
    assert folders("exec", "two", "cat own.txt").ok().out == "work\n"


def test_a_client_that_ends_without_a_word_has_lost_the_connection(folders: Cli) -> None:
    folders("create", "foo@.folders", "--no-connect", "--", "sleep", "600").ok()
    # It begins as a command does, with the mark on stdout.
    dying = 'sh -c \'printf "\\n%s\\n" "$4"; exit 255\' {handle}'
    env = {"MNGR__PROVIDERS__FOLDERS__EXEC": dying}
    folders("exec", "foo", "true", env=env).fails(5, "host foo", "the connection was lost")
