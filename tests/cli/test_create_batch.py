from __future__ import annotations

import json
import signal
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mngr.cli.commands.create_batch import free_name, slug
from mngr.model.address import is_name
from tests.support.cli import Cli, Result, first_line, until
from tests.support.screen import Screen


def results(done: Result) -> dict[int, dict[str, object]]:
    """By line; every line of stdout is one result."""
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert all(row.keys() == {"line", "agent_id", "agent_name", "state", "error"} for row in rows)
    return {row["line"]: row for row in rows}


def test_each_line_is_an_agent_and_a_bad_line_stops_no_other(mngr: Cli) -> None:
    lines = [
        json.dumps({"name": "one", "args": ["sh", "-c", "echo $A; exec cat"], "env": {"A": "a b"}}),
        "",
        json.dumps({"name": "two", "label": ["x=2"], "include_dirty": True, "message": "hi two"}),
        "  Fix the flaky test, please! It fails on Mondays and sometimes also on other days ",
        "fix the flaky test, please; again",
        "🪁",
        json.dumps({"nme": "x"}),
        "{broken",
        json.dumps({"name": "bad name"}),
        json.dumps({"name": "x", "args": "ls"}),
        json.dumps({"name": "x", "reuse": "yes"}),
        json.dumps({"name": "x", "batch": "-"}),
        json.dumps({"name": "x", "env": {"A": "a\0b"}}),
        json.dumps({"name": "x", "args": ["\ud800"]}),
        json.dumps({"name": 3}),
        json.dumps({"name": "gone", "args": ["no-such-program"]}),
        json.dumps({"name": "one", "args": ["true"]}),
        "x" * 100_000 + "\x03",
        "{" + '"a":{' * 100_000,
    ]
    done = mngr("create", "--batch", "-", "--label", "all=1", "--", "cat", input="\n".join(lines))
    assert done.code == 3
    rows = results(done)
    good = {n: row["agent_name"] for n, row in rows.items() if row["error"] is None}
    assert good == {
        **({1: "one"} if 1 in good else {17: "one"}),  # whichever came first
        3: "two",
        4: "fix-the-flaky-test-please-it-fails-on",
        5: "fix-the-flaky-test-please-again",
        6: rows[6]["agent_name"],
    }
    errors = {n: str(row["error"]) for n, row in rows.items() if row["error"]}
    for number, words in {
        7: "did you mean 'name'?",
        8: "not valid JSON",
        9: "not an agent name",
        10: "args: expected a list",
        11: "reuse: expected true or false",
        12: "'batch' is an option of the command line",
        13: "NUL",
        14: "surrogate",
        15: "name: expected a string",
        16: "command not found: no-such-program",
        18: "\\x03",
        19: "not valid JSON",
    }.items():
        assert words in errors[number], errors[number]
    assert "taken" in errors[17 if 1 in good else 1]
    agents = {agent["name"]: agent for agent in mngr("list", "--format", "json").json()["agents"]}
    assert agents["two"]["labels"] == {"project": "repo", "all": "1", "x": "2"}
    assert agents["two"]["argv"] == ["cat"]
    assert rows[3]["agent_id"] == agents["two"]["id"]
    until(lambda: "hi two\nhi two" in mngr("capture", "two").out)
    until(lambda: "again" in mngr("capture", "fix-the-flaky-test-please-again").out)


def test_exit_codes_and_wrong_use(local: Cli, tmp_path: Path) -> None:
    file = tmp_path / "batch"
    file.write_text('{"name": "a", "args": ["cat"]}\n{"name": "b", "args": ["cat"]}\n')
    assert set(results(local("create", "--batch", str(file)).ok())) == {1, 2}
    again = local("create", "--batch", str(file))
    assert again.code == 1
    assert all("taken" in str(row["error"]) for row in results(again).values())
    reused = results(local("create", "--batch", str(file), "--reuse").ok())
    assert {row["state"] for row in reused.values()} == {"RUNNING"}
    local("create", "--batch", "/nowhere").fails(2, "/nowhere", "No such file")
    local("create", "--batch", "-", input="\n\n").fails(2, "no lines")
    local("create", "foo", "--batch", "-", input="x").fails(2, "--batch and ADDRESS")


def test_a_line_may_name_templates_and_a_dry_run_makes_nothing(local: Cli) -> None:
    local.controller_home.mkdir()
    (local.controller_home / "settings.toml").write_text(
        '[create_templates.t]\nproject = "from-t"\nlabel = ["t=1"]\n'
    )
    lines = '{"name": "a", "template": "t"}\n{"name": "b", "template": ["nope"]}\nthird\n'
    words = ["create", "--batch", "-", "--label", "c=1", "--project", "flag"]
    dry = local(*words, "--dry-run", "--", "cat", input=lines)
    assert dry.code == 3
    assert [row["agent_name"] for row in results(dry).values() if not row["error"]] == [
        "a",
        "third",
    ]
    assert local("list", "--format", "json").json()["agents"] == []
    rows = results(local(*words, "--", "cat", input=lines))
    assert "unknown template 'nope'" in str(rows[2]["error"])
    assert local.agent("a")["project"] == "from-t"
    assert local.agent("a")["labels"] == {"project": "from-t", "t": "1", "c": "1"}


def test_ctrl_c_begins_nothing_more_and_leaves_whole_agents(local: Cli) -> None:
    lines = "".join(f'{{"name": "a{n}", "args": ["cat"]}}\n' for n in range(60))
    file = local.base / "batch"
    file.write_text(lines)
    running = local.start("create", "--batch", str(file), "--max-parallel", "2")
    first = json.loads(first_line(running))
    assert first["state"] == "RUNNING"
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 130
    assert running.stdout is not None
    rest = [json.loads(line) for line in running.stdout.read().splitlines()]
    running.communicate()
    agents = local("list", "--format", "json").json()["agents"]
    assert {agent["id"] for agent in agents} == {row["agent_id"] for row in [first, *rest]}
    assert len(agents) < 30
    assert {agent["state"] for agent in agents} == {"RUNNING"}


def test_progress_is_counted_on_a_terminal(local: Cli) -> None:
    (local.base / "batch").write_text('{"name": "a", "args": ["cat"]}\n' * 3)
    with Screen(local) as screen:
        words = " ".join(local.argv("create", "--batch", "../batch", "--max-parallel", "1"))
        screen.type(f"{words} > ../out; echo code=$?")
        screen.shows("code=3")
        assert "created" not in screen.text()  # wiped at the end
    assert len((local.base / "out").read_text().splitlines()) == 3


@given(st.text())
def test_a_slug_is_a_name_or_nothing(text: str) -> None:
    name = slug(text)
    assert name == "" or is_name(name)


@given(st.sets(st.sampled_from(["a", "a-2", "a-3", "b"])), st.sampled_from(["a", "b", ""]))
def test_a_free_name_is_never_a_taken_one(taken: set[str], name: str) -> None:
    found = free_name(name, taken)
    assert found == "" if not name else found not in taken and found.startswith(name)


def test_a_hostile_prompt_stays_a_prompt() -> None:
    assert slug("-rf / --no; $(touch x)") == "rf-no-touch-x"
    assert slug("A" * 300) == "a" * 40
