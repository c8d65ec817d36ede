"""`mngr tutorial fill` and `sync`, with a small program in the part of the agent."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli, Result, lives, until
from tests.support.screen import Screen

TUTORIAL = """\
#!/bin/sh

# === Speaking ===

# say hello
echo hello

# shout it

# Files

# only prose, though nobody can tell
"""

TEST = '''\
from mngr_e2e import E2eSession, expect


def test_hello(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # say hello
    echo hello
    """)
    expect(e2e.run("echo hello").stdout).to_equal("hello\\n")
'''

# It takes its prompt from the terminal, as any agent of a type that knows no other way.
AGENT = """\
import json, os, subprocess, sys
state = os.environ["MNGR_AGENT_STATE_DIR"]
lines = []
for line in sys.stdin:
    lines.append(line)
    if line == "Begin now.\\n":
        break
prompt = "".join(lines)
with open(os.path.join(state, "seen.txt"), "w") as file:
    file.write(prompt)

def propose(**what):
    with open(f"{state}/proposals.json.new", "w") as file:
        json.dump({"schema": 1, **what}, file)
    os.rename(f"{state}/proposals.json.new", f"{state}/proposals.json")

def write(path, text):
    with open(path, "w") as file:
        file.write(text)

def commit():
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "commit", "-qm", "Work"], check=True)

def publish(*more):
    words = [f"{state}/publish", "--attempted", "improve", "--summary", "done"]
    subprocess.run([*words, *more], check=True)

exec(open(sys.argv[1]).read())
"""


class Stage:
    """A project, and an agent that plays what it is told."""

    def __init__(self, cli: Cli) -> None:
        self.cli = cli
        self.agent = cli.base / "agent.py"
        self.agent.write_text(AGENT)
        cli.controller_home.mkdir(exist_ok=True)
        command = json.dumps([sys.executable, str(self.agent)])
        settings = f'[agent_types.scribe]\nparent_type = "command"\ncommand = {command}\n'
        variables = {key: value for key, value in cli.env.items() if key.startswith("GIT_")}
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in variables.items()]
        settings += f"[agent_types.scribe.env]\n{''.join(lines)}"
        (cli.controller_home / "settings.toml").write_text(settings)
        self.tutorial = cli.write("tutorial.sh", TUTORIAL)
        cli.write("tests/test_speaking.py", TEST)
        cli.write("pyproject.toml", "[tool.pytest.ini_options]\n")
        cli.commit("a tutorial")

    def __call__(self, verb: str, play: str, *args: str, cwd: Path | None = None) -> Result:
        script = self.cli.base / "play.py"
        script.write_text(play)
        words = ["--type", "scribe", "--agent-arg", str(script), "--timeout", "60s"]
        return self.cli("tutorial", verb, *words, *args, timeout=120, cwd=cwd)

    def agents(self) -> list[str]:
        return self.cli("list", "--format", "{name} {state}").ok().out.split("\n")[:-1]


@pytest.fixture
def stage(local: Cli) -> Stage:
    return Stage(local)


@pytest.fixture
def anywhere(mngr: Cli) -> Stage:
    """Also run with the agent on another host."""
    return Stage(mngr)


def proposal(block: str, commands: str, comment: str = "", setup: str = "") -> dict[str, str]:
    return {"block": block, "commands": commands, "comment": comment, "setup": setup}


def proposing(*proposals: dict[str, str], confusing: tuple[dict[str, str], ...] = ()) -> str:
    return f"propose(proposals={list(proposals)!r}, confusing={list(confusing)!r})"


SHOUT = proposal("# shout it", "echo hello | tr a-z A-Z")
LIST = proposal("# Files", 'ls "$HOME" there', "list them", "mkdir there; touch there/x")
WRONG = proposal("# Files", "echo so far\nls --no-such-option", "list them with colours")
SPOT = {"command": "ls --paint", "tried": "colours", "happened": "no such option"}


# fill


@pytest.mark.dear
def test_what_passes_is_written_below_its_comment_and_what_fails_is_told(anywhere: Stage) -> None:
    stage = anywhere
    stage.tutorial.chmod(0o755)
    done = stage("fill", proposing(SHOUT, LIST, WRONG, confusing=(SPOT,)), "--yes-if-passing")
    assert done.code == 3, done
    assert stage.tutorial.stat().st_mode & 0o777 == 0o755
    assert stage.tutorial.read_text() == TUTORIAL.replace(
        "# shout it\n", "# shout it\necho hello | tr a-z A-Z\n"
    ).replace("# Files\n", '# Files\n\n# list them\nls "$HOME" there\n')
    table = [line.split(maxsplit=2) for line in done.out.splitlines()]
    assert [row[:2] for row in table] == [
        ["LINE", "RESULT"], ["8", "kept"], ["13", "kept"], ["11", "failed"]
    ]  # fmt: skip
    assert "HELLO" in done.err and "[passed]" in done.err
    spots = (stage.cli.repo / "confusing.md").read_text()
    for words in ("ls --paint", "colours", "no such option", "ls --no-such-option", "so far"):
        assert words in spots
    assert "exit code 2" in spots
    # The agent has done its part, and is in the trash with its branch.
    assert stage.agents() == []
    assert "mngr/tutorial" not in stage.cli.git("branch", "--all")
    assert "tutorial-fill-" in stage.cli("restore", "--list").ok().out


# The bare host is reached through `env` with git's variables; this one notes what it is to run.
COUNTED = """\
#!/bin/sh
case "$*" in
*GIT_CONFIG_*'head -c "$2"'*proposals.json*) echo file >> {log} ;;
*GIT_CONFIG_*) echo look >> {log} ;;
esac
exec /usr/bin/env "$@"
"""


@pytest.mark.parametrize("mngr", ["bare"], indirect=True)
def test_a_host_is_not_asked_for_the_file_until_the_agent_has_ended(mngr: Cli) -> None:
    stage, log = Stage(mngr), mngr.base / "log"
    program = mngr.base / "bin" / "env"
    program.parent.mkdir()
    program.write_text(COUNTED.format(log=log))
    program.chmod(0o755)
    mngr.env["PATH"] = f"{program.parent}:{mngr.env['PATH']}"
    # It works until the host has been asked six times more.
    lines = f"len(open({str(log)!r}).readlines())"
    play = f"import time\nbegan = {lines}\nwhile {lines} < began + 6: time.sleep(0.01)\n"
    stage("fill", play + proposing(SHOUT), "--yes-if-passing").ok()
    assert log.read_text().splitlines().count("file") == 1


def test_the_agent_is_told_of_every_comment_and_sees_what_is_not_committed(stage: Stage) -> None:
    stage.tutorial.write_text(TUTORIAL + "\n# new, and not committed\n")
    play = """
asked = [each for each in ("# shout it", "# Files", "# only prose", "# new, and") if each in prompt]
new = "# new, and not committed" in open("tutorial.sh").read()
propose(proposals=[], confusing=[{"command": f"{asked} {new}", "tried": "", "happened": ""}])
"""
    done = stage("fill", play, "--yes-if-passing", "--format", "json")
    assert done.code == 1 and done.json()["proposals"] == []
    told = "['# shout it', '# Files', '# only prose', '# new, and'] True"
    assert done.json()["confusing"][0]["command"] == told


def test_with_nobody_to_ask_nothing_is_kept(stage: Stage) -> None:
    done = stage("fill", proposing(SHOUT), "--format", "json")
    assert done.code == 1
    assert "nothing was kept, because asking requires a terminal" in done.err
    (row,) = done.json()["proposals"]
    assert (row["result"], row["exit_code"], row["output"]) == ("dropped", 0, "HELLO\n")
    assert stage.tutorial.read_text() == TUTORIAL
    assert not (stage.cli.repo / "confusing.md").exists()


def test_a_proposal_runs_in_a_world_of_its_own_that_is_gone_afterwards(stage: Stage) -> None:
    program = stage.cli.write(".venv/bin/where", "#!/bin/sh\necho $HOME $PWD $MNGR_HOST_DIR\n")
    program.chmod(0o755)
    trace = stage.cli.base / "trace"
    stage.cli.write("pyproject.toml", f'[tool.mngr_e2e]\nenv = {{ TRACE = "{trace}" }}\n')
    play = proposing(proposal("# shout it", 'where > "$TRACE"; sleep 1000 & echo $!'))
    done = stage("fill", play, "--yes-if-passing", "--format", "json")
    (row,) = done.json()["proposals"]
    assert row["result"] == "kept", done
    for folder in trace.read_text().split():
        assert not folder.startswith(str(stage.cli.base)) and not Path(folder).exists()
    assert not lives(row["output"].strip())


def test_a_file_half_written_is_waited_for_and_what_is_there_already_not_kept(stage: Stage) -> None:
    again = proposal("# Files", "echo hello", "say hello")
    half = """write(f"{state}/proposals.json", '{"schema"')\nimport time; time.sleep(1)\n"""
    play = half + proposing(SHOUT, again)
    done = stage("fill", play, "--yes-if-passing", "--format", "json").ok()
    assert [row["result"] for row in done.json()["proposals"]] == ["kept", "dropped"]
    assert stage.tutorial.read_text().count("# say hello\n") == 1


def test_a_proposal_that_does_not_end_is_ended(stage: Stage) -> None:
    play = proposing(proposal("# shout it", "echo begun; sleep 1000"))
    done = stage("fill", play, "--yes-if-passing", "--block-timeout", "1s")
    assert done.code == 1 and "[failed with exit code 124]" in done.err
    assert "timed out after" in (stage.cli.repo / "confusing.md").read_text()


def test_without_its_setup_a_proposal_is_not_run(stage: Stage) -> None:
    play = proposing(proposal("# shout it", "echo shouted", setup="echo not ready; exit 3"))
    done = stage("fill", play, "--yes-if-passing", "--format", "json")
    (row,) = done.json()["proposals"]
    assert (row["result"], row["exit_code"], row["output"]) == ("failed", 3, "not ready\n")
    stage.cli.write("pyproject.toml", '[tool.mngr_e2e]\nsetup = "echo no database; exit 5"\n')
    stage("fill", play, "--yes-if-passing").fails(
        1, "setup of [tool.mngr_e2e] failed with exit code 5: no database"
    )


def test_on_a_terminal_each_is_shown_and_kept_or_dropped(stage: Stage) -> None:
    play = stage.cli.base / "play.py"
    other = proposal("# only prose, though nobody can tell", "echo prose")
    play.write_text(proposing(SHOUT, LIST, WRONG, other))
    with Screen(stage.cli) as screen:
        screen.mngr("tutorial", "fill", "--type", "scribe", "--agent-arg", str(play))
        for question, answer in (
            ("Keep `echo hello | tr a-z A-Z`? [Y/n]", "Enter"),
            ('Keep `ls "$HOME" there`? [Y/n]', "n"),
            ("Keep `echo so far …`? [y/N]", "Enter"),
            ("Keep `echo prose`? [Y/n]", "y"),
        ):
            until(lambda asked=question: asked in screen.text(), 60, question)  # type: ignore[misc]
            screen.keys(*dict.fromkeys([answer, "Enter"]))
        until(lambda: "RESULT" in screen.text(), 60, "the results")
    assert stage.tutorial.read_text() == TUTORIAL.replace(
        "# shout it\n", "# shout it\necho hello | tr a-z A-Z\n"
    ).replace("nobody can tell\n", "nobody can tell\necho prose\n")


def test_what_was_agreed_to_stays_when_the_rest_is_broken_off(stage: Stage) -> None:
    play = stage.cli.base / "play.py"
    play.write_text(proposing(SHOUT, LIST))
    with Screen(stage.cli) as screen:
        screen.mngr("tutorial", "fill", "--type", "scribe", "--agent-arg", str(play))
        until(lambda: "tr a-z A-Z`? [Y/n]" in screen.text(), 60, "the first question")
        screen.keys("Enter")
        until(lambda: "there`? [Y/n]" in screen.text(), 60, "the second question")
        screen.keys("C-c")
        until(lambda: "tr a-z A-Z" in stage.tutorial.read_text(), 60, "what was kept")
    assert "ls" not in stage.tutorial.read_text()


MUSE = """\
from mngr.agents.base import AgentType
from mngr.model.state import Signals

def register(registry):
    registry.agent_type("muse", "muse:Muse")

class Muse(AgentType):
    name = "muse"
    def signals(self, evidence):
        said = evidence.signals.get("Stop")
        return Signals(waiting="end_of_turn", since=said["turn"]) if said else Signals()
"""
TURNS = """
import time
def end_of_turn(number):
    os.makedirs(f"{state}/signals", exist_ok=True)
    write(f"{state}/signals/.Stop", json.dumps({"turn": number}))
    os.rename(f"{state}/signals/.Stop", f"{state}/signals/Stop.json")
end_of_turn(1.0)
heard = sys.stdin.readline()
"""


@pytest.fixture
def muse(stage: Stage) -> Stage:
    """Use a type that reports when it waits for a prompt."""
    (stage.cli.base / "muse.py").write_text(MUSE)
    stage.cli.env["PYTHONPATH"] += f":{stage.cli.base}"
    stage.cli.env["MNGR__PLUGINS__MODULES"] = '["muse"]'
    settings = stage.cli.controller_home / "settings.toml"
    settings.write_text(settings.read_text().replace('"command"', '"muse"'))
    return stage


def test_an_agent_that_waits_without_a_result_is_reminded_once(muse: Stage) -> None:
    spot = '{"command": heard, "tried": "", "happened": ""}'
    play = f"{TURNS}propose(confusing=[{spot}])\nend_of_turn(2.0)\ntime.sleep(1000)"
    done = muse("fill", play, "--yes-if-passing", "--format", "json")
    assert "You have not written" in done.json()["confusing"][0]["command"]
    done = muse("fill", f"{TURNS}end_of_turn(2.0)\ntime.sleep(1000)", "--yes-if-passing")
    assert "did not write proposals.json (WAITING: end_of_turn)" in done.err
    assert [line.split()[1] for line in muse.agents()] == ["STOPPED"]


@pytest.mark.parametrize(
    ("play", "words"),
    [
        ("sys.exit(3)", "did not write proposals.json (FAILED: exit code 3)"),
        ('write(f"{state}/proposals.json", "{")', "the proposals are not JSON"),
        (proposing(proposal("# nothing like it", "ls")), "a comment that was not asked about"),
    ],
)
def test_an_agent_of_no_use_stays_to_be_looked_at(stage: Stage, play: str, words: str) -> None:
    stage("fill", play, "--yes-if-passing").fails(1, words, "see `mngr capture tutorial-fill-")
    ((name, state),) = [line.split() for line in stage.agents()]
    assert name.startswith("tutorial-fill-") and state in ("DONE", "FAILED")
    assert stage.tutorial.read_text() == TUTORIAL


def test_an_agent_that_takes_too_long_is_stopped(stage: Stage) -> None:
    play = "print('thinking', flush=True)\nimport time; time.sleep(1000)"
    stage("fill", play, "--timeout", "2s").fails(124, "no result after 2 s")
    assert [line.split()[1] for line in stage.agents()] == ["STOPPED"]


def test_blocks_can_be_chosen(stage: Stage) -> None:
    play = """
blocks = [each for each in ("# shout it", "# Files", "# only prose, though nobody can tell")
          if f"    {each}\\n" in prompt]
propose(proposals=[{"block": each, "commands": f"echo {len(blocks)}"} for each in blocks])
"""
    chosen = stage("fill", play, "--yes-if-passing", "--line", "10", "--format", "json").ok()
    assert [row["block"] for row in chosen.json()["proposals"]] == ["# Files"]
    stage("fill", play, "--line", "6").fails(2, "line 6 is not in a comment")


def test_a_dry_run_prints_the_prompt_and_starts_nobody(stage: Stage) -> None:
    shown = stage.cli("tutorial", "fill", "--dry-run").ok()
    assert "    # shout it\n" in shown.out and "proposals.json" in shown.out
    assert "# say hello" not in shown.out
    same = stage.cli("tutorial", "fill", "--dry-run", "--format", "json").ok().json()
    assert same["blocks"] == [8, 10, 12] and same["prompt"].rstrip("\n") == shown.out.rstrip("\n")
    stage.tutorial.write_text(TUTORIAL.replace("# say hello\necho hello", "echo hi"))
    needed = stage.cli("tutorial", "sync", "--dry-run").ok()
    assert "    echo hi\n" in needed.out and "publish" in needed.out
    assert "require changes:" in needed.out
    assert "cites a block that is not in tutorial.sh" in needed.out
    one = stage.cli("tutorial", "sync", "--dry-run", "--line", "5", "--format", "json").ok()
    assert one.json()["blocks"] == [5] and "require changes" not in one.json()["prompt"]
    elsewhere = stage.cli("tutorial", "sync", "--dry-run", "--line", "1").ok()
    assert elsewhere.err == "No block at these lines requires a test.\n"
    assert stage.agents() == []


def test_wrong_words_cost_nothing(stage: Stage) -> None:
    run = stage.cli
    run("tutorial", "fill", "--type", "command").fails(2, "--type command only runs a command")
    run("tutorial", "fill", "--type", "mechanic").fails(
        2, "--type mechanic only repairs failing tests"
    )
    run("tutorial", "sync", "--type", "command").ok()  # there is nothing to do
    run("tutorial", "fill", "--type", "scrib").fails(2, "did you mean 'scribe'?")
    run("tutorial", "check", "--type", "scribe").fails(
        2, "--type is an option of `mngr tutorial fill"
    )
    run("tutorial", "sync", "--yes-if-passing").fails(2, "is an option of `mngr tutorial fill`")
    (run.repo / "confusing.md").write_text("mine\n")
    stage("fill", proposing(SHOUT)).fails(1, "was not written by `mngr tutorial fill`")
    assert stage.agents() == []
    stage.tutorial.write_text("# say hello\necho hello\n")
    assert run("tutorial", "fill").ok().err == "There are no comments without commands.\n"


# sync


def test_for_nothing_to_do_no_agent_is_started(stage: Stage) -> None:
    assert stage("sync", "").ok().err == "Every block has a test.\n"
    assert stage.agents() == []


CAPITALS = "# say it in capitals\necho hello | tr a-z A-Z\n"
COUNT = "# count its letters\nprintf hello | wc -c\n"
GOOD = '''\
from mngr_e2e import E2eSession, expect


def test_capitals(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # say it in capitals
    echo hello | tr a-z A-Z
    """)
    expect(e2e.run("echo hello | tr a-z A-Z").stdout).to_equal("HELLO\\n")
'''
HOLLOW = '''\
def test_count(e2e):
    e2e.write_tutorial_block("""
    # count its letters
    printf hello | wc -c
    """)
    assert e2e.run("printf hello | wc -c").exit_code == 0
'''


def syncing(**files: str) -> str:
    writes = [f"write({f'tests/test_{name}.py'!r}, {text!r})" for name, text in files.items()]
    return "\n".join([*writes, "commit()", "publish('--confusing', 'tr', 'a-z', 'odd')"])


def uncovered(stage: Stage, *blocks: str) -> None:
    stage.tutorial.write_text("\n".join([TUTORIAL, *blocks]))
    stage.cli.commit("more to test")


def found(done: Result) -> tuple[str, list[str]]:
    told: dict[str, Any] = done.json()
    lines = [f"{each['path']}:{each['line']}: {each['message']}" for each in told["problems"]]
    return f"{told['verified']} of {told['wanted']}", lines


@pytest.mark.dear
def test_tests_that_hold_are_left_on_a_branch_to_be_merged(anywhere: Stage) -> None:
    stage = anywhere
    uncovered(stage, CAPITALS)
    before = stage.cli.git("rev-parse", "HEAD")
    done = stage("sync", syncing(capitals=GOOD), "--format", "json").ok()
    assert found(done) == ("1 of 1", [])
    told = done.json()
    assert told["tests"] == ["tests/test_capitals.py::test_capitals"]
    assert told["confusing"] == [{"command": "tr", "tried": "a-z", "happened": "odd"}]
    assert f"merge it with `mngr merge {told['agent']}`" in done.err
    assert stage.cli.git("rev-parse", "HEAD") == before
    assert stage.cli.git("rev-parse", told["branch"]) == told["head"] != before
    ((_, state),) = [line.split() for line in stage.agents()]
    assert state in ("DONE", "STOPPED")
    stage.cli("merge", told["agent"]).ok()
    stage.cli("tutorial", "check", "--no-results").ok()


def test_a_project_may_be_a_part_of_its_repository(stage: Stage) -> None:
    uncovered(stage, CAPITALS)
    (stage.cli.repo / "part").mkdir()
    stage.cli.git("mv", "tutorial.sh", "tests", "pyproject.toml", "part")
    stage.cli.commit("moved")
    play = (
        f"assert 'The project is in `part`' in prompt\nos.chdir('part')\n{syncing(capitals=GOOD)}"
    )
    done = stage("sync", play, "--format", "json", cwd=stage.cli.repo / "part").ok()
    assert found(done) == ("1 of 1", [])
    beside = play.replace("commit()", "write('../README', 'changed')\ncommit()")
    done = stage("sync", beside, "--format", "json", cwd=stage.cli.repo / "part")
    assert found(done) == ("0 of 1", ["README:1: changed outside the tests"])


def test_tests_that_prove_nothing_are_no_success(stage: Stage) -> None:
    uncovered(stage, CAPITALS, COUNT, "# forgotten\ntrue\n")
    done = stage("sync", syncing(capitals=GOOD, count=HOLLOW), "--format", "json")
    assert done.code == 3
    assert found(done) == (
        "1 of 3",
        [
            "tutorial.sh:20: no test cites this block: forgotten",
            "tests/test_count.py:3: test_count also passes when no command does anything",
        ],
    )
    kinds = [(each["kind"], each["test"], each["block"]) for each in done.json()["problems"]]
    assert kinds == [("uncovered", "", 20), ("hollow", "test_count", 0)]
    assert "2 of 3 blocks or tests did not pass" in done.err


def test_tests_of_the_same_name_are_judged_by_themselves(stage: Stage) -> None:
    uncovered(stage, CAPITALS, COUNT)
    idle = HOLLOW.replace("test_count", "test_capitals").replace(
        'run("printf hello | wc -c").exit_code == 0', 'run("echo 5").stdout == "5\\n"'
    )
    done = stage("sync", syncing(capitals=GOOD, count=idle))
    assert done.code == 3 and "did not run 'printf hello | wc -c'" in done.out, done
    assert "1 of 2 blocks or tests did not pass" in done.err


def test_what_does_not_pass_or_was_bent_to_pass_is_no_success(stage: Stage) -> None:
    uncovered(stage, CAPITALS)
    wrong = GOOD.replace('"HELLO', '"HULLO')
    done = stage("sync", syncing(capitals=wrong), "--format", "json")
    failed = "tests/test_capitals.py:6: test_capitals: failed"
    assert (done.code, found(done)) == (1, ("0 of 1", [failed]))
    idle = GOOD.replace('echo hello | tr a-z A-Z").', 'printf HELLO\\\\\\\\n").')
    bent = "write('tutorial.sh', open('tutorial.sh').read() + '\\n')\n" + syncing(capitals=idle)
    done = stage("sync", bent, "--format", "json")
    good, problems = found(done)
    assert good == "0 of 1" and "tutorial.sh:1: changed outside the tests" in problems
    assert any("did not run 'echo hello | tr a-z A-Z'" in each for each in problems), problems


def test_an_agent_that_commits_nothing_or_no_python_is_no_success(stage: Stage) -> None:
    uncovered(stage, CAPITALS)
    stage("sync", "").fails(1, "committed nothing")
    stage("sync", syncing(capitals="def (")).fails(1, "tests/test_capitals.py cannot be read")
    stage.cli.write("tutorial.sh", TUTORIAL + COUNT)
    stage("sync", "").fails(1, "uncommitted changes")


def test_the_branch_counts_and_not_what_the_agent_reports(stage: Stage) -> None:
    uncovered(stage, CAPITALS)
    more = "\nwrite('tests/test_more.py', '')\ncommit()\n"
    done = stage("sync", syncing(capitals=GOOD) + more).ok()
    assert "published" in done.err and "but its branch is at" in done.err
    blocked = syncing(capitals=GOOD).replace("publish(", "publish('--blocked', 'no manual', ")
    assert "was blocked: no manual" in stage("sync", blocked).ok().err
    torn = syncing(capitals=GOOD) + "\nwrite(f'{state}/outcome.json', '{')\n"
    assert "not JSON" in stage("sync", torn).ok().err


def test_tests_that_cannot_be_collected_are_no_success(stage: Stage) -> None:
    uncovered(stage, CAPITALS)
    play = "write('tests/conftest.py', 'import no_such_module')\n" + syncing(capitals=GOOD)
    stage("sync", play).fails(1, "the tests could not be run")


def test_a_test_of_what_is_gone_is_brought_up_to_date(stage: Stage) -> None:
    stage.tutorial.write_text(TUTORIAL.replace("echo hello\n", "echo hello world\n"))
    stage.cli.commit("another text")
    fixed = TEST.replace("echo hello", "echo hello world").replace('"hello\\n', '"hello world\\n')
    done = stage("sync", syncing(speaking=fixed), "--format", "json").ok()
    assert found(done) == ("2 of 2", [])
    assert not stage.cli("list", "--running", "--ids").ok().out


def test_interrupting_stops_the_agent(stage: Stage) -> None:
    (stage.cli.base / "play.py").write_text("import time; time.sleep(1000)")
    words = ["tutorial", "fill", "--type", "scribe", "--agent-arg", str(stage.cli.base / "play.py")]
    running = stage.cli.start(*words)
    until(lambda: any("RUNNING" in line for line in stage.agents()), 60, "the agent runs")
    until(lambda: list(stage.cli.controller_home.glob("agents/*/seen.txt")), 60, "it was told")
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert [line.split()[1] for line in stage.agents()] == ["STOPPED"]
