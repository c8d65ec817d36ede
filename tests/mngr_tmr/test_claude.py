"""The whole pipeline with the real Claude Code, whose model is a script with bad manners."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from mngr_tmr.integrate.ranking import ending_of
from mngr_tmr.journal.journal import read
from mngr_tmr.journal.model import Outcome, Run, Task
from mngr_tmr.run import runs
from tests.support import tmr_kit as kit
from tests.support.cli import Cli, until
from tests.support.real import FREE, Stage, stage

pytestmark = pytest.mark.soak

PATIENCE = 600
"""Seconds; a quiet machine needs a tenth of it."""

SAME = [kit.Spec(f"same_{n}", f"same {n}", f"same works {n}") for n in (1, 2, 3)]
ONE, TWO = kit.Spec("one", "both", "one: on"), kit.Spec("two", "both", "two: on")
ALONE = ("hangs", "malformed", "quota", "dies", "lies", "deletes", "forbidden")
# The first in the file go first: those that take long.
SPECS = [SAME[2], *(kit.Spec(name) for name in ALONE), *SAME[:2], ONE, TWO]
COMMANDS = {
    **{name: kit.broken(name) for name in ALONE},
    "same": 'echo "same is broken $1"\n',
    "both": 'echo "one: off, two: off"\n',
    "steady": kit.mended("steady"),
}

MEND = "sed -i 's/is broken/works/' kit/{0}.sh"
STRANGE = """mkdir -p .mngr-e2e/r/t && echo '*' > .mngr-e2e/.gitignore
echo plain > .mngr-e2e/r/t/transcript.txt
ln -s /etc .mngr-e2e/r/t/out && ln -s /etc/passwd .mngr-e2e/r/t/secret
ln -s /etc .mngr-e2e/r/linked && truncate -s 1G .mngr-e2e/r/t/huge.cast
"""


def published(edit: str, said: str, attempted: str = "fix") -> str:
    publish = f"\"$MNGR_AGENT_STATE_DIR/publish\" --attempted {attempted} --summary '{said}'"
    return f"{edit}\ngit add -A && git commit -qm 'Work' && {publish}"


def teach(real: Stage) -> None:
    """What each agent does, by the test that its prompt names."""
    does = {
        "lies": published("echo '# mended' >> kit/lies.sh", "It works now"),
        "deletes": published(f"sed -i '/deletes works\")$/d' {kit.FILE}", "Removed a flaky line"),
        "forbidden": published(
            "mkdir -p .github && echo on > .github/ci.yml && " + MEND.format("forbidden"), "Mended"
        ),
        "dies": "kill -9 $PPID",
        "malformed": 'printf "{\\"schema\\": 1, \\"task\\"" > "$MNGR_AGENT_STATE_DIR/outcome.json"',
        "same_1": published(MEND.format("same"), "Same says that it works"),
        "same_2": published(MEND.format("same"), "The word was wrong"),
        # It never publishes; its commit is found all the same.
        "same_3": f"{MEND.format('same')} && git commit -qam 'Mended'",
        "one": published("sed -i 's/one: off/one: on/' kit/both.sh", "Switch one on"),
        "two": published("sed -i 's/two: off/two: on/' kit/both.sh", "Switch two on"),
    }
    server = real.server
    for name, command in does.items():
        server.on(rf"::test_{name}\n", say="At once.", run=command).then(say="That was it.")
    server.on(r"::test_hangs\n", hold="never")
    server.on(r"::test_quota\n", quota=int(time.time()) + 20)
    both = "printf 'echo \"one: on, two: on\"\\n' > kit/both.sh"
    server.on("verified changes", say="Both.", run=published(both, "Both are on"))
    server.on("You stopped without|outcome.json is not valid", say="I see no reason to.")


def begin(real: Stage) -> subprocess.Popen[bytes]:
    words = [f"--agent-arg={word}" for word in FREE["claude"]]
    limits = ["--agent-timeout", "5m", "--idle", "12s", "--repeats", "1", "--max-agents", "5"]
    limits += ["--rounds", "1"]  # they would do again what they did
    return real.cli.start(
        *("tmr", "run", "--name", "c", "--type", "claude", "--only", "failing", "--yes"),
        *(*limits, *words),
        stdout=subprocess.DEVNULL,
    )


class Ended:
    """What the run left behind."""

    def __init__(self, real: Stage, code: int, errors: str) -> None:
        self.cli, self.code, self.errors = real.cli, code, errors
        self.folder = real.cli.home / "tmr/c"
        self.run: Run = runs.load(self.folder)

    def task(self, name: str) -> Task:
        return next(t for t in self.run.tasks.values() if t.node_id.endswith(f"::test_{name}"))

    def reason(self, name: str) -> str:
        verdict = self.task(name).verdict
        assert verdict is not None, self.task(name)
        return verdict.reason

    def outcomes(self, name: str) -> list[Outcome]:
        return [each.ended.outcome for each in self.task(name).tries if each.ended]


class Watched:
    """A run in progress, and the moments at which the script changes."""

    def __init__(self, real: Stage) -> None:
        self.real, self.folder = real, real.cli.home / "tmr/c"
        self.running = begin(real)

    def when(self, condition: Callable[[], object], what: str) -> None:
        until(lambda: condition() or self.running.poll() is not None, PATIENCE, what)

    def quota_comes_back(self) -> None:
        """Once the run has paused for it."""
        self.when(lambda: any(each["type"] == "paused" for each in read(self.folder)), "a pause")
        rule = next(each for each in self.real.server.script.rules if "quota" in each.pattern)
        rule.steps.clear()
        work = STRANGE + published(MEND.format("quota"), "Mended after a pause")
        rule.then(say="Again.", run=work).then(say="That was it.")

    def the_hanging_one_has_no_time_left(self) -> None:
        """Its limit comes when it hangs: all others have as long as this machine takes."""
        self.when(lambda: "never" in self.real.server.held, "one hangs")
        agents = self.real.cli("list", "--format", "json").ok().json()["agents"]
        name = next(each["name"] for each in agents if "-hangs-" in each["name"])
        self.real.cli("limit", name, "--timeout", "1s", timeout=PATIENCE).ok()

    def end(self) -> Ended:
        try:
            self.quota_comes_back()
            self.the_hanging_one_has_no_time_left()
            _, errors = self.running.communicate(timeout=PATIENCE)
        finally:
            self.running.kill()
            self.running.wait()
            self.real.server.release("never")
        return Ended(self.real, self.running.returncode, errors.decode())


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    cli = Cli(tmp_path_factory.mktemp("claude"))
    steady = {"tests/test_steady.py": kit.source(kit.Spec("steady"))}
    kit.write(cli, COMMANDS, {kit.FILE: kit.source(*SPECS), **steady})
    try:
        with stage(cli, "claude") as real:
            del cli.env["ANTHROPIC_API_KEY"]
            cli.env |= real.server.environment("claude", plan=True)
            teach(real)
            yield Watched(real).end()
    finally:
        cli.close()


def test_every_agent_ends_as_it_deserves(ended: Ended) -> None:
    assert ended.code == 0, ended.errors
    ends = {t.node_id.partition("::test_")[2]: ending_of(t) for t in ended.run.tasks.values()}
    assert ends == {
        "hangs": "timed out",
        "quota": "fixed",
        "dies": "died",
        "malformed": "no result",
        "lies": "refused",
        "deletes": "refused",
        "forbidden": "refused",
        "same_1": "fixed",
        "same_2": "fixed",
        "same_3": "fixed",
        "one": "fixed",
        "two": "fixed",
    }, ended.run.alerts


def test_refusals_say_why(ended: Ended) -> None:
    assert "test_lies failed with its fix" in ended.reason("lies")
    assert "removed `expect(result.stdout)" in ended.reason("deletes")
    assert ended.reason("forbidden") == "changes forbidden paths: .github/ci.yml"


def test_only_what_is_nobodys_fault_is_tried_again(ended: Ended) -> None:
    assert ended.outcomes("dies") == [Outcome.DIED, Outcome.DIED]
    assert ended.outcomes("quota") == [Outcome.QUOTA, Outcome.FIXED]
    for name in ("hangs", "malformed", "lies", "deletes", "forbidden"):
        assert len(ended.task(name).tries) == 1, name
    hung, garbled = ended.task("hangs").latest, ended.task("malformed").latest
    assert hung and hung.ended and hung.ended.reason == "timed out after 1 s"
    assert garbled and garbled.ended and "malformed outcome.json" in garbled.ended.reason
    assert garbled.reminded


def test_commits_without_an_outcome_are_salvaged(ended: Ended) -> None:
    idle = ended.task("same_3").latest
    assert idle is not None and idle.ended is not None
    assert idle.reminded and idle.ended.outcome is Outcome.NO_RESULT
    assert idle.ended.ref and ending_of(ended.task("same_3")) == "fixed"


def test_only_plain_small_files_come_home(ended: Ended) -> None:
    latest = ended.task("quota").latest
    assert latest is not None and latest.ended is not None
    folder = ended.folder / latest.ended.artifacts
    found = [path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()]
    names = {str(path.relative_to(folder)) for path in found}
    assert ".mngr-e2e/r/t/transcript.txt" in names
    assert names <= {".mngr-e2e/r/t/transcript.txt", ".mngr-e2e/.gitignore", "conversation.json"}
    assert not any(path.is_symlink() for path in found)


def test_the_branch_has_each_repair_once(ended: Ended) -> None:
    log = ended.cli.git("log", "--reverse", "--format=%s%n%b", "main..tmr/c")
    subjects = [pick.subject for pick in ended.run.picks]
    assert sorted(subjects[1:]) == ["Mended after a pause", "Switch one on", "Switch two on"]
    assert subjects[0] == "Same says that it works", "three agents agree on it"
    same = next(pick for pick in ended.run.picks if pick.subject == subjects[0])
    assert len(same.tasks) == 3
    assert all(f"tmr-c-same-{n}-" in log for n in (1, 2, 3))
    assert len(ended.run.conflicts) == 1 and not ended.run.evictions
    assert ended.cli.git("show", "tmr/c:kit/both.sh") == 'echo "one: on, two: on"'


def test_every_commit_of_the_branch_passes_its_gate(ended: Ended) -> None:
    """The tests that passed before, and what this commit and those before it claim."""
    claimed = {"tests/test_steady.py::test_steady"}
    for pick in ended.run.picks:
        claimed |= {ended.run.tasks[each].node_id for each in pick.tasks}
        ended.cli.git("checkout", "-q", "--detach", pick.commit)
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *sorted(claimed)]
        done = subprocess.run(argv, cwd=ended.cli.repo, env=ended.cli.env, capture_output=True)
        assert done.returncode == 0, done.stdout.decode()


def test_agents_whose_work_was_not_taken_wait_for_a_human(ended: Ended) -> None:
    agents = ended.cli("list", "--format", "json").ok().json()["agents"]
    left = {each["name"].split("-")[2] for each in agents}
    assert left == {"hangs", "dies", "malformed", "lies", "deletes", "forbidden", "quota"}
    assert not [each["name"] for each in agents if each["state"] in ("RUNNING", "WAITING")]
