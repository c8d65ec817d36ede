"""Results are on stdout, one line per target; JSON speaks one dialect; known options work."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.cli import ROOT, Cli, until
from tests.support.screen import Screen

NONE = ("--transfer", "none")


def test_each_result_is_a_line_on_stdout_and_its_id_when_quiet(local: Cli) -> None:
    quiet = local("create", "foo", *NONE, "-q", "--no-connect", "--", "sleep", "1000").ok()
    foo = local.agent("foo")["id"]
    assert (quiet.out, quiet.err) == (f"{foo}\n", "")
    assert local.create("bar", *NONE).out == "Created bar; it is RUNNING.\n"
    bar = local.agent("bar")["id"]
    for words, said in (
        (["stop", "foo", "bar"], "Stopped foo.\nStopped bar.\n"),
        (["start", "foo", "bar"], "Started foo.\nStarted bar.\n"),
        (["restart", "foo", "bar"], "Restarted foo.\nRestarted bar.\n"),
        (["label", "foo", "bar", "a=b"], "Labelled foo: a=b.\nLabelled bar: a=b.\n"),
        (["archive", "foo", "bar"], "Archived foo.\nArchived bar.\n"),
    ):
        done = local(*words).ok()
        assert (done.out, done.err) == (said, "")
        assert local(*words, "--quiet").ok().out == f"{foo}\n{bar}\n"
    assert local("wait", "foo", "bar", "STOPPED", "-q").ok().out == f"{foo}\n{bar}\n"
    assert local("limit", "foo", "bar", "-q").ok().out == f"{foo}\n{bar}\n"
    assert local("restore", "--list", "-q").ok().out == ""
    gone = local("destroy", "foo", "bar", "nosuch", "-q")
    assert (gone.code, gone.out) == (3, f"{foo}\n{bar}\n")
    assert "nosuch" in gone.err
    assert set(local("restore", "--list", "-q").ok().out.split()) == {foo, bar}
    back = local("restore", "foo").ok()
    assert back.out == "Restored foo; it is STOPPED.\n" and back.err == ""
    assert local("restore", "bar", "-q").ok().out == f"{bar}\n"
    assert local("list", "foo", "bar", "-q").ok().out == f"{foo}\n{bar}\n"


def test_json_is_an_object_and_names_agents_alike(local: Cli) -> None:
    local.create("foo", "--transfer", "mirror", "--", "cat")
    (local.work_dir("foo") / "new").write_text("1\n")
    local.commit("new", cwd=local.work_dir("foo"))
    agent = {"name": "foo", "id": local.agent("foo")["id"]}

    def row(*words: str) -> dict[str, Any]:
        found = local(*words, "--format", "json").ok().json()
        assert isinstance(found, dict), words
        return found

    for words in (["show"], ["capture"], ["logs"], ["path"], ["diff"], ["pull"], ["push"]):
        assert row(*words, "foo").items() >= agent.items(), words
    for words, key in (
        (["list"], "agents"),
        (["label", "foo"], "agents"),
        (["limit", "foo"], "agents"),
        (["wait", "foo", "RUNNING"], "agents"),
        (["message", "foo", "-m", "x"], "results"),
        (["merge", "foo"], "agents"),
        (["restart", "foo"], "agents"),
        (["rename", "foo", "foo"], "agents"),
        (["stop", "foo"], "agents"),
        (["destroy", "foo", "-f"], "agents"),
        (["restore", "--list"], "trash"),
    ):
        (found,) = row(*words)[key]
        assert found.items() >= agent.items(), words
    for words, key in (
        (["snapshot", "list"], "snapshots"),
        (["gc", "--dry-run"], "leftovers"),
        (["doctor"], "checks"),
        (["help"], "commands"),
        (["answer", "--all-pending"], "agents"),
        (["tmr", "list"], "runs"),
    ):
        assert isinstance(row(*words)[key], list), words


def matches(value: Any, schema: dict[str, Any], where: str = "") -> None:
    kinds: dict[str, Any] = {"object": dict, "array": list, "string": str, "integer": int}
    kinds |= {"boolean": bool, "number": (int, float), "null": type(None)}
    named = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    assert any(isinstance(value, kinds[name]) for name in named), (where, value, schema)
    assert value in schema.get("enum", [value]), where
    if isinstance(value, dict) and "properties" in schema:
        assert set(schema.get("required", ())) <= set(value), where
        for key, inner in value.items():
            matches(inner, schema["properties"][key], f"{where}.{key}")
    if isinstance(value, list):
        for inner in value:
            matches(inner, schema["items"], f"{where}[]")


@pytest.mark.parametrize("words", ["list", "limit", "label", "usage", "snapshot list"])
def test_json_names_targets_that_were_not_found(local: Cli, words: str) -> None:
    local.create("foo", *NONE, "--", "true")
    shown = local(*words.split(), "foo", "nosuch", "--format", "json")
    assert shown.code == 3
    assert [each["message"] for each in shown.json()["errors"]] == [
        "no agent 'nosuch'; see `mngr list`"
    ]
    assert shown.err.count("nosuch") == 1


def test_the_list_keeps_to_its_schema(mngr: Cli) -> None:
    schema = mngr("list", "--schema").ok().json()
    mngr.create("runs", "--label", "a=b")
    mngr.create("ends", "--", "true")
    mngr("wait", "ends", "DONE").ok()
    found = mngr("list", "--format", "json").ok().json()
    matches(found, schema)
    assert found["agents"][0]["labels"] == {"project": "repo", "a": "b"}
    agent = schema["properties"]["agents"]["items"]
    assert agent["required"] == list(found["agents"][0])
    on_request = sorted(set(agent["properties"]) - set(agent["required"]))
    fields = ",".join(["usage", *on_request])
    asked = mngr("list", "--fields", fields, "--format", "json").ok().json()
    matches(asked["agents"][0], {**agent, "required": on_request})


def test_events_in_a_pipe_are_json_and_an_empty_world_is_observed(local: Cli) -> None:
    with local.start("observe") as watcher:
        assert watcher.stdout
        first = json.loads(watcher.stdout.readline())
        assert (first["type"], first["agents"]) == ("observing", 0)
        local.create("foo", *NONE, "--", "true")
        found = json.loads(watcher.stdout.readline())
        assert (found["type"], found["agent"]["name"]) == ("agent_discovered", "foo")
        watcher.terminate()
        watcher.communicate(timeout=30)
    events = [json.loads(line) for line in local("event", "foo").ok().out.splitlines()]
    assert local("event", "foo", "--format", "json").ok().json()["events"] == events
    assert events[0]["type"] == "agent_created"
    with Screen(local) as screen:
        screen.mngr("event", "foo")
        screen.shows("agent_created")
        assert "{" not in screen.text().partition("agent_created")[2]


def test_a_running_agent_is_destroyed_only_after_a_yes(local: Cli) -> None:
    local.create("foo", *NONE)
    local("destroy", "foo", input="n\n").fails(1, "foo was kept")
    local("destroy", "foo", input="what?\n").fails(1, "foo was kept")
    assert local.state("foo") == "RUNNING"
    with Screen(local) as screen:
        screen.mngr("destroy", "foo")
        screen.shows("foo is RUNNING. Destroy it? [y/N]")
        screen.type("n")
        screen.shows("foo was kept")
        screen.mngr("destroy", "foo", "--yes")
        screen.shows("Destroyed foo (undo: mngr restore foo).")
    local.create("bar")
    (local.work_dir("bar") / "draft").write_text("x")
    local("destroy", "bar").fails(1, "bar has uncommitted", "draft", "--force")
    local("destroy", "bar", "-y").ok()
    local("restore", "bar", "--purge").fails(1, "--force")
    local("restore", "bar", "--purge", "-y").ok()
    local.create("baz", *NONE)
    local("destroy", "baz", input="y\n").ok()
    local.create("quux", *NONE)
    local("destroy", "quux").ok()


@pytest.mark.parametrize("words", [["--name", "foo"], ["--name", "foo", "command"]])
def test_create_takes_its_name_and_source_by_option(local: Cli, words: list[str]) -> None:
    (local.repo / "draft").write_text("x")
    more = ["--source", str(local.repo), "--include-unclean", "--no-connect"]
    local("create", *words, *more, "--", "sleep", "1000").ok()
    assert (local.work_dir("foo") / "draft").read_text() == "x"
    local("create", "bar", "command", "--name", "foo").fails(2, "--name")
    assert local("stop", "--agent", "foo").ok().out == "Stopped foo.\n"
    assert local("start", "foo", "--no-connect").ok().out == "Started foo.\n"
    cloned = local("clone", "foo", "bar", "--no-connect").ok()
    assert cloned.out == "Cloned foo as bar; it is RUNNING.\n"
    assert "next    mngr connect bar" in cloned.err
    seen = local.base / "seen"
    local("clone", "foo", "--connect-command", f"echo $MNGR_AGENT_NAME > {seen}").ok()
    until(seen.exists)
    assert seen.read_text() == "foo-2\n"


def test_every_command_that_takes_an_agent_takes_it_as_agent_option() -> None:
    pages = [page.read_text() for page in (ROOT / "man").glob("mngr*.1")]
    taking = [page for page in pages if "TARGET" in page.split(".SH")[2]]
    assert len(taking) > 20
    assert [page[:30] for page in taking if "\\-\\-agent" not in page] == []


SAME = [
    *(["path"], ["diff", "--stat"], ["capture"], ["logs"], ["label"], ["list", "--ids"]),
    *(["event", "--format", "jsonl"], ["pull", "new", "--dry-run"], ["exec", "--", "pwd"]),
    *(["exec", "git log"], ["wait", "RUNNING"], ["transcript"], ["answer"]),
    *(["merge", "--dry-run"], ["clone", "other", "--dry-run"], ["rename", "other", "--dry-run"]),
]


def test_the_agent_option_means_what_the_word_means(local: Cli) -> None:
    local.create("foo", "--", "cat")
    local.create("bar", "--", "cat")
    (local.work_dir("foo") / "new").write_text("1\n")
    local.commit("new", cwd=local.work_dir("foo"))
    for words in SAME:
        verb, *more = words
        by_word, by_option = local(verb, "foo", *more), local(verb, "--agent", "foo", *more)
        assert (by_option.code, by_option.out) == (by_word.code, by_word.out), words
    assert local("show", "--agent", "foo", "--format", "{name}").ok().out == "foo\n"
    assert "Snapshot foo/1" in local("snapshot", "create", "--agent", "foo").ok().out
    local("snapshot", "restore", "1", "--agent", "foo").ok()
    local("capture", "foo", "--agent", "bar").fails(2, "unexpected argument 'foo'")
    local("capture").fails(2, "no agent given; see `mngr list`")
    local("stop", "--all", "--agent", "foo").fails(2, "--all and names cannot be used together")
    assert local("__complete", "--", "pull", "--agent", "").ok().out.split() == ["bar", "foo"]
    local("destroy", "--agent", "foo", "--force").ok()
    assert "Restored foo" in local("restore", "--agent", "foo").ok().out


def test_a_command_that_fails_prints_its_errors_as_one_document(local: Cli) -> None:
    local.create("foo")
    for words in (["stop", "x"], ["stop", "x", "y"], ["list", "x"], ["exec", "x", "true"],
                  ["destroy", "x"], ["pull", "x"], ["rename", "x", "y"]):  # fmt: skip
        failed = local(*words, "--format", "json")
        errors = failed.json()["errors"]
        assert failed.code and errors, words
        for error in errors:
            assert f"mngr: {error['message']}\n" in failed.err
    assert len(local("stop", "x", "y", "--format", "json").json()["errors"]) == 2


def test_a_wait_that_times_out_prints_the_agents_that_reached_the_state(local: Cli) -> None:
    local.create("foo")
    local("create", "bar", "--no-connect", "--", "true").ok()
    late = local("wait", "foo", "bar", "DONE", "--timeout", "1s", "--format", "json")
    document = late.fails(124, "foo is RUNNING").json()
    assert [agent["name"] for agent in document["agents"]] == ["bar"]
    assert "foo is RUNNING" in document["errors"][0]["message"]


def test_removing_a_label_that_an_agent_does_not_have_is_noted(local: Cli) -> None:
    local.create("foo", "--label", "a=b")
    done = local("label", "foo", "--remove", "a", "--remove", "nosuch").ok()
    assert done.out == "Labelled foo: no labels.\n"
    assert done.err == "Note: foo has no label 'nosuch'.\n"
