"""Create folders of imaginary runs: journals written event by event, and a small real repository.

All text that comes from agents is hostile.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mngr_e2e.artifacts import slug
from mngr_outcome.codec import to_json
from mngr_tmr.journal.journal import Journal
from mngr_tmr.journal.model import Ended, Eviction, Outcome, Pick, Ruling, Test, TestRun, Verdict
from mngr_tmr.journal.proofs import GateResult, Proof
from mngr_tmr.run.costs import Forecast, Spending
from mngr_tmr.run.options import Options

SCRIPT = "<script>window.pwned = 1; alert('pwned')</script>"
IMAGE = '"\'><img src=x onerror="window.pwned = 2">'
ESCAPES = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b]8;;http://a.b/\x1b\\link\x1b]8;;\x1b\\ \x9b2J"
LONG = "long " + "x" * 60_000
HOSTILE = f"{SCRIPT} {IMAGE} {ESCAPES} \u202eback\u202c \ud800 </pre></details></div> &amp;"
BROKEN = b"\xff\xfe broken \xc3( bytes \x00 end"
FILE = "tests/test_notes.py"
SIGNATURE = f"call: KeyError: 'day' {SCRIPT} in src/notes.py:load [0123abcd]"


@dataclass
class Story:
    """Writes a run: each method adds one event or several."""

    folder: Path
    repo: Path
    name: str = "night"
    now: float = 1_794_700_000.0
    tests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.repo.mkdir(parents=True)
        self._git("init", "-q")
        self.base = self.commit({"src/notes.py": "def load():\n    return day\n"}, "first")

    # git

    def _git(self, *words: str) -> str:
        who = {
            f"GIT_{each}_{key}": "t"
            for each in ("AUTHOR", "COMMITTER")
            for key in ("NAME", "EMAIL")
        }
        env = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *words], cwd=self.repo, env=env, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def commit(self, files: dict[str, str], subject: str, onto: str = "") -> str:
        if onto:
            self._git("checkout", "-q", "--detach", onto)
        for name, text in files.items():
            (self.repo / name).parent.mkdir(parents=True, exist_ok=True)
            (self.repo / name).write_text(text)
        self._git("add", "-A")
        self._git("commit", "-q", "-m", subject)
        return self._git("rev-parse", "HEAD")

    def tree(self, commit: str) -> str:
        return self._git("rev-parse", f"{commit}^{{tree}}")

    # the journal

    def tell(self, *events: tuple[str, dict[str, Any]]) -> None:
        with Journal(self.folder, self._clock) as journal:
            for type, fields in events:
                journal.append(type, fields, sync=False)

    def _clock(self) -> float:
        self.now += 1.0
        return self.now

    def begin(self, tests: list[Test], **options: Any) -> None:
        self.tests = [test.node_id for test in tests]
        chosen = Options(agent_type="claude", repeats=2, **options)
        started = {"run": self.name, "repository": str(self.repo), "base": self.base}
        self.tell(
            ("run_started", {**started, "branch": "main", "options": to_json(chosen)}),
            ("collected", {"tests": [to_json(test) for test in tests], "errors": []}),
        )

    def baseline(self, failing: dict[str, TestRun]) -> None:
        runs = {each: to_json(failing.get(each, TestRun("passed", 0.4))) for each in self.tests}
        self.tell(*[("baseline", {"results": runs})] * 2)

    def select(self, wants: dict[str, str], signatures: dict[str, str] | None = None) -> None:
        chosen = [
            {
                "task": task(node),
                "node_id": node,
                "want": want,
                "signature": (signatures or {}).get(node, ""),
            }
            for node, want in wants.items()
        ]
        left = {each: "it passes" for each in self.tests if each not in wants}
        self.tell(
            ("selected", {"tasks": chosen, "left_out": left}),
            ("agreed", {}),
        )

    def attempt(self, node: str, base: str = "") -> dict[str, Any]:
        """Begin an attempt; `end` ends it."""
        about = {"task": task(node), "try": 1}
        agent = f"tmr-{self.name}-{task(node)}-1"
        self.tell(
            ("try_intended", {**about, "agent_name": agent, "base": base or self.base}),
            ("try_launched", {**about, "agent_id": f"agent-{task(node)}"}),
        )
        return about

    def end(self, node: str, ended: Ended, verdict: Verdict | None = None) -> None:
        about = self.attempt(node)
        events = [("try_ended", {**about, "ended": to_json(ended)})]
        if verdict is not None:
            events.append(("verdict", {**about, "verdict": to_json(verdict)}))
        self.tell(*events)

    def proof(self, what: str, code: int, text: bytes = b"1 passed\n") -> Proof:
        number = (
            len(list((self.folder / "checks").glob("*")))
            if (self.folder / "checks").is_dir()
            else 0
        )
        log = self.folder / "checks" / f"7-{number:04d}.log"
        log.parent.mkdir(exist_ok=True)
        log.write_bytes(text)
        return Proof(what, f"pytest -- {FILE} {SCRIPT}", code, self.base, f"checks/{log.name}")

    def artifacts(self, node: str, *, casts: int = 1, below: str = "artifacts") -> str:
        """Write an agent's artifacts: a run of its test that is wrong in many ways."""
        name = f"{below}/{task(node)}/1"
        folder = self.folder / name / ".mngr-e2e" / "20261116T000000Z-abcd" / slug(node)
        folder.mkdir(parents=True)
        result = {
            "outcome": f"passed{SCRIPT}",
            "seconds": 1.5,
            "block": HOSTILE,
            "commands": [{"text": f"jot list {HOSTILE}", "exit_code": 3, "seconds": 0.2}, 7, None],
        }
        (folder / "result.json").write_text(json.dumps(result))
        lines = f"# see them\n$ jot list {HOSTILE}\n{LONG}\n".encode("utf-8", "replace")
        (folder / "transcript.txt").write_bytes(lines + BROKEN + b"\n? 3\n")
        for number in range(casts):
            (folder / f"{number}<b>.cast").write_bytes(cast())
        (folder / "out.cast").symlink_to("/etc/passwd")
        turns = [
            {
                "type": "user_message",
                "text": f"Make it pass. {HOSTILE}",
                "time": "2026-11-16T00:00:00Z",
            },
            {
                "type": "assistant_message",
                "text": f"I look. {HOSTILE}",
                "tools": [
                    {"id": "1", "name": f"Bash{SCRIPT}", "input": {"command": f"ls {SCRIPT}"}}
                ],
            },
            {"type": "tool_result", "text": LONG + HOSTILE},
            {"type": SCRIPT, "text": 3},
            "nonsense",
        ]
        (self.folder / name / "conversation.json").write_text(json.dumps(turns))
        return name


def cast() -> bytes:
    head = json.dumps({"version": 2, "width": 80, "height": 12, "title": SCRIPT})
    shown = [
        [0.1, "o", "$ jot list\r\n"],
        [0.4, "o", f"{SCRIPT} \x1b[32mplayed\x1b[0m\r\n"],
        [0.6, "o", "$ "],
    ]
    return "\n".join([head, *(json.dumps(each) for each in shown)]).encode() + b"\n"


def task(node: str) -> str:
    """Return a task id, unique and safe, as in real runs."""
    return slug(node)[-30:].strip("-._").lower()


def node(name: str) -> str:
    return f"{FILE}::test_{name}"


def failing(signature: str = SIGNATURE) -> TestRun:
    return TestRun(
        "failed",
        0.7,
        "call",
        "KeyError",
        f"KeyError: 'day' {HOSTILE}",
        "src/notes.py:load",
        signature,
    )


NAMES = (
    "canary",
    "alike",
    f"param[{SCRIPT} / {IMAGE}]",
    "improved",
    "blocked",
    "died_one",
    "died_two",
    "refused",
    "evicted",
    "confused",
    "working",
    "unselected",
)


def whole_run(base: Path, *, finished: bool = True) -> Story:
    """Write a run with one test for each possible result."""
    story = Story(base / "home/tmr/night", base / "repo")
    canary, alike, param, improved, blocked, one, two, refused, evicted, confused, working = (
        node(name) for name in NAMES[:-1]
    )
    doc = f"Scope: only this.\n\nTutorial block:\n    # see {HOSTILE}\n    jot list"
    story.begin([Test(node(name), FILE, doc) for name in NAMES])
    story.baseline(
        {each: failing() for each in (canary, alike, param)} | {blocked: failing("call: other [1]")}
    )
    wants = dict.fromkeys((canary, alike, param, blocked), "fix")
    wants |= dict.fromkeys((improved, one, two, refused, evicted, confused, working), "improve")
    story.select(wants, dict.fromkeys((canary, alike, param), SIGNATURE))
    story.tell(("forecast", {"forecast": to_json(Forecast(11, 220_000, 550_000))}))
    _work(story, canary, improved, refused, evicted)
    story.tell(
        *(
            ("skipped", {"task": task(n), "reason": f"passes with the fix of {task(canary)}"})
            for n in (alike, param)
        )
    )
    needs = Ended(Outcome.BLOCKED, f"no lowdown {HOSTILE}", needs=f"the program lowdown {SCRIPT}")
    story.end(blocked, needs)
    for each in (one, two):
        story.end(
            each, Ended(Outcome.DIED, f"CRASHED: exit code {1 if each == one else 2} {SCRIPT}")
        )
    spot = (f"jot list {SCRIPT}", "list by day", f"it printed nothing {ESCAPES}")
    story.end(
        confused,
        Ended(Outcome.UNCHANGED, summary="Nothing to do", confusing=(spot,)),
        Verdict(Ruling.UNCHANGED, "no change was required"),
    )
    story.tell(("alert", {"text": f"2 agents ended the same way: died {SCRIPT}"}))
    if finished:
        story.end(working, Ended(Outcome.TIMED_OUT, "timed out after 1800 s"))
        _branch(story, canary, improved, evicted)
    else:
        story.attempt(working)
    return story


def _work(story: Story, canary: str, improved: str, refused: str, evicted: str) -> None:
    text = f"def load():\n    return 'day'  # {SCRIPT}\n"
    repair = story.commit({"src/notes.py": text}, "repair", story.base)
    other = story.commit(
        {FILE: f"def test_improved():\n    assert '{SCRIPT}'\n"}, "test", story.base
    )
    proofs = (
        story.proof("with its work", 0),
        story.proof("without", 1, HOSTILE.encode("utf-8", "replace") + BROKEN),
    )
    accepted = Verdict(
        Ruling.ACCEPTED,
        "verified",
        implementation=repair,
        turned_green=(canary,),
        proofs=proofs,
        artifacts=story.artifacts(canary, casts=0, below="verified"),
    )
    done = Ended(
        Outcome.FIXED,
        head=repair,
        ref="refs/mngr/tmr/night/canary/1",
        summary=f"Return the day\n\n{HOSTILE}",
        artifacts=story.artifacts(canary),
        spent=Spending(120_000, 0.42),
        seconds=95,
    )
    story.end(canary, done, accepted)
    better = Verdict(
        Ruling.ACCEPTED, "verified", other=other, tests_changed=(improved,), remarks=(HOSTILE,)
    )
    told = Ended(
        Outcome.IMPROVED,
        head=other,
        ref="refs/mngr/tmr/night/improved/1",
        summary=f"Say more {SCRIPT}",
        spent=Spending(30_000, None),
        seconds=40,
    )
    story.end(improved, told, better)
    story.end(evicted, told, better)
    weaker = Verdict(Ruling.REFUSED, f"removed `expect(x)` {HOSTILE}")
    story.end(
        refused,
        Ended(Outcome.FIXED, head=other, ref="refs/mngr/tmr/night/refused/1", summary="Lies"),
        weaker,
    )


def _branch(story: Story, canary: str, improved: str, evicted: str) -> None:
    tests = story.commit({FILE: "def test_improved():\n    pass\n"}, "tests", story.base)
    fix = story.commit(
        {"src/notes.py": f"def load():\n    return 'day'  # {SCRIPT}\n"}, "fix", tests
    )
    gate = to_json(GateResult(passed=True, proofs=(story.proof("gate", 0),)))
    other = Pick("other", (task(improved),), tests, story.tree(tests), f"Improve tests {SCRIPT}")
    repair = Pick(
        "implementation", (task(canary),), fix, story.tree(fix), f"Return the day {SCRIPT}", 13.0
    )
    gone = Eviction(
        task(evicted), "other", f"breaks {SCRIPT}", "refs/mngr/tmr/night/evicted/x/other"
    )
    story.tell(
        ("integration_started", {}),
        ("gated", {"tree": other.tree, "tests": "1", "gate": gate}),
        ("picked", {"pick": to_json(other)}),
        ("evicted", {"eviction": to_json(gone)}),
        ("gated", {"tree": repair.tree, "tests": "2", "gate": gate}),
        ("picked", {"pick": to_json(repair)}),
        ("run_ended", {"status": "done", "branch": "tmr/night"}),
    )


def large_run(base: Path, tests: int) -> Story:
    """Write a run with many tests and the usual results, for measurements."""
    story = Story(base / "home/tmr/large", base / "repo", "large")
    nodes = [
        f"tests/test_part{n // 20}.py::test_that_number_{n}_does_what_its_block_says"
        for n in range(tests)
    ]
    story.begin(
        [Test(each, each.partition("::")[0], "Tutorial block:\n    jot list") for each in nodes]
    )
    story.baseline(
        {each: failing(f"call: KeyError [{n % 7}]") for n, each in enumerate(nodes) if n % 3 == 0}
    )
    story.select(dict.fromkeys(nodes, "fix"))
    proof = to_json(story.proof("with its work", 0))
    events: list[tuple[str, dict[str, Any]]] = []
    endings = (Outcome.FIXED, Outcome.UNCHANGED, Outcome.IMPROVED, Outcome.BLOCKED, Outcome.DIED)
    for number, each in enumerate(nodes):
        about = {"task": task(each), "try": 1}
        ended = Ended(
            endings[number % 5],
            "a reason of some length " * 3,
            summary="What it did " * 10,
            spent=Spending(40_000, 0.2),
            seconds=100,
        )
        events.append(
            (
                "try_intended",
                {**about, "agent_name": f"tmr-large-{task(each)}-1", "base": story.base},
            )
        )
        events.append(("try_launched", {**about, "agent_id": "agent"}))
        events.append(("try_ended", {**about, "ended": to_json(ended)}))
        if number % 5 < 3:
            ruling = Ruling.UNCHANGED if number % 5 == 1 else Ruling.ACCEPTED
            events.append(
                (
                    "verdict",
                    {
                        **about,
                        "verdict": {
                            "ruling": str(ruling),
                            "reason": "verified",
                            "proofs": [proof] * 3,
                        },
                    },
                )
            )
    story.tell(*events, ("run_ended", {"status": "done", "branch": "tmr/large"}))
    return story
