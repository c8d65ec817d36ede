"""`mngr tutorial fill` and `sync` with the real Claude Code, on the scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from shlex import quote

import pytest

from tests.support.cli import Cli, Result
from tests.support.real import FREE, Stage, stage

TUTORIAL = """\
#!/bin/sh

# === Speaking ===

# say hello
echo hello

# shout it

# Files
"""

HELLO = '''\
from mngr_e2e import E2eSession, expect


def test_hello(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # say hello
    echo hello
    """)
    expect(e2e.run("echo hello").stdout).to_equal("hello\\n")
'''

SHOUT = '''

def test_shout(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # shout it
    echo hello | tr a-z A-Z
    """)
    result = e2e.run("echo hello | tr a-z A-Z", comment="shout it")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("HELLO\\n")
'''

PROPOSALS = {
    "schema": 1,
    "proposals": [
        {"block": "# shout it", "comment": "", "commands": "echo hello | tr a-z A-Z", "setup": ""},
        {"block": "# Files", "comment": "paint them", "commands": "ls --paint", "setup": ""},
    ],
    "confusing": [{"command": "ls", "tried": "a colour by its name", "happened": "refused"}],
}


@pytest.fixture
def claude(local: Cli) -> Iterator[Stage]:
    local.write("tests/test_speaking.py", HELLO)
    local.write("pyproject.toml", "[tool.pytest.ini_options]\n")
    local.write("tutorial.sh", TUTORIAL)
    local.commit("a tutorial")
    with stage(local, "claude") as made:
        yield made


def ask(claude: Stage, verb: str, *args: str) -> Result:
    words = [f"--agent-arg={word}" for word in FREE["claude"]]
    options = ("--type", "claude", *words, "--timeout", "170s")
    return claude.cli("tutorial", verb, *options, *args, timeout=200)


def test_proposals_of_claude_are_run_kept_or_dropped_and_confusing_spots_told(
    claude: Stage,
) -> None:
    file = '"$MNGR_AGENT_STATE_DIR/proposals.json'
    text = quote(json.dumps(PROPOSALS))
    write = f'printf %s {text} > {file}.new" && mv {file}.new" {file}"'
    claude.server.on("comments without commands", run=write).then(say="Proposed.")
    done = ask(claude, "fill", "--yes-if-passing", "--format", "json")
    assert done.code == 3, done
    assert [row["result"] for row in done.json()["proposals"]] == ["kept", "failed"]
    tutorial = (claude.cli.repo / "tutorial.sh").read_text()
    assert "# shout it\necho hello | tr a-z A-Z\n" in tutorial
    assert "--paint" not in tutorial
    spots = (claude.cli.repo / "confusing.md").read_text()
    assert "ls --paint" in spots and "a colour by its name" in spots
    assert claude.cli("list", "--format", "{name}").ok().out == ""


def test_tests_of_claude_are_verified_and_left_on_a_branch(claude: Stage) -> None:
    repo = claude.cli.repo
    filled = TUTORIAL.replace("# shout it\n", "# shout it\necho hello | tr a-z A-Z\n")
    (repo / "tutorial.sh").write_text(filled)
    claude.cli.commit("a block without a test")
    work = (
        f"printf %s {quote(SHOUT)} >> tests/test_speaking.py && git add -A && "
        "git commit -qm 'Test that it shouts' && "
        '"$MNGR_AGENT_STATE_DIR/publish" --attempted improve --summary "wrote a test"'
    )
    claude.server.on("Begin now", run=work).then(say="Written.")
    ask(claude, "sync").ok()
    branch = claude.cli.git("branch", "--list", "--format=%(refname:short)", "mngr/*")
    assert branch, "the branch is left for a person"
    assert "test_shout" in claude.cli.git("show", f"{branch}:tests/test_speaking.py")
    assert "test_shout" not in (repo / "tests/test_speaking.py").read_text()
    claude.cli.git("merge", "-q", "--ff-only", branch)
    claude.cli("tutorial", "check", "--no-results").ok()


def test_a_test_of_claude_that_proves_nothing_is_not_taken(claude: Stage) -> None:
    filled = TUTORIAL.replace("# shout it\n", "# shout it\necho hello | tr a-z A-Z\n")
    (claude.cli.repo / "tutorial.sh").write_text(filled)
    claude.cli.commit("a block without a test")
    weak = SHOUT.replace('    expect(result.stdout).to_equal("HELLO\\n")\n', "")
    work = (
        f"printf %s {quote(weak)} >> tests/test_speaking.py && git add -A && "
        "git commit -qm 'Test nothing' && "
        '"$MNGR_AGENT_STATE_DIR/publish" --attempted improve --summary "wrote a test"'
    )
    claude.server.on("Begin now", run=work).then(say="Written.")
    done = ask(claude, "sync")
    assert done.code != 0, done
    assert "also passes when no command does anything" in done.out, done
