"""The nouns of a run. Data only: events become these in fold.py, and everything else reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mngr.model.struct import Json
from mngr_tmr.run.costs import Forecast, HostTime, Spending
from mngr_tmr.run.options import Options

Event = Mapping[str, Json]


class Outcome(StrEnum):
    """How one try of an agent ended. Each is its own: none is folded into another."""

    FIXED = "fixed"
    IMPROVED = "improved"
    EXPECTATION = "expectation changed"
    UNCHANGED = "unchanged"
    BLOCKED = "blocked"
    NO_RESULT = "no result"
    DIED = "died"
    TIMED_OUT = "timed out"
    OVER_BUDGET = "over budget"
    QUOTA = "quota"
    LAUNCH_FAILED = "launch failed"
    CANCELLED = "cancelled"


INFRASTRUCTURE = (Outcome.DIED, Outcome.LAUNCH_FAILED, Outcome.QUOTA)
"""Not the agent's verdict on its test, so worth another try."""

ANSWERS = (Outcome.FIXED, Outcome.IMPROVED, Outcome.UNCHANGED)
"""The agent did what it was asked for, or says so."""


class Ruling(StrEnum):
    """What verification made of a try."""

    ACCEPTED = "accepted"
    HELD = "held for review"
    """It would be accepted, but a line of it looks like a special case for a test."""
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    UNDECIDED = "not verified"
    """The checks themselves failed, again and again: nothing is known of the work."""


@dataclass(frozen=True)
class Test:
    """A test as collected."""

    __test__ = False

    node_id: str
    file: str
    doc: str = ""
    blocks: tuple[str, ...] = ()
    """The tutorial blocks it cites."""


@dataclass(frozen=True)
class TestRun:
    """One run of one test."""

    __test__ = False

    outcome: str
    """passed, failed, skipped or missing"""
    seconds: float = 0.0
    stage: str = ""
    """setup, call or teardown: where it failed"""
    exception: str = ""
    message: str = ""
    frame: str = ""
    """file:function of the innermost frame inside the project"""
    signature: str = ""


@dataclass(frozen=True)
class Baseline:
    """A test in all baseline rounds."""

    runs: tuple[TestRun, ...] = ()

    @property
    def standing(self) -> str:
        """passed, failed, flaky or skipped"""
        kinds = {run.outcome for run in self.runs}
        if not kinds or kinds <= {"skipped", "missing"}:
            return "skipped"
        if len(kinds) > 1:
            return "flaky"
        return kinds.pop()

    @property
    def signature(self) -> str:
        return next((run.signature for run in self.runs if run.signature), "")


@dataclass(frozen=True)
class Ended:
    """How a try ended, and what it left."""

    outcome: Outcome
    reason: str = ""
    head: str = ""
    ref: str = ""
    """The ref that keeps its commits in the source repository; nothing where it made none."""
    summary: str = ""
    needs: str = ""
    """What a blocked agent would need."""
    tests_added: tuple[str, ...] = ()
    confusing: tuple[tuple[str, str, str], ...] = ()
    """command, what was tried, what happened"""
    artifacts: str = ""
    """The folder, relative to the run's, with what was pulled from the agent."""
    spent: Spending = field(default_factory=Spending)
    seconds: float = 0.0


@dataclass(frozen=True)
class Proof:
    """One command that verification or a gate ran."""

    what: str
    command: str
    exit_code: int
    commit: str = ""
    log: str = ""
    """Relative to the run's folder."""
    sandboxed: bool = False
    finding: str = ""
    """The result in words, if the exit code alone would mislead."""

    @property
    def in_words(self) -> str:
        failed = f"{self.finding or 'failed'} (exit code {self.exit_code})"
        return failed if self.exit_code else "passed"


@dataclass(frozen=True)
class Verdict:
    """What verification found out about a try, with the commits it made of it."""

    ruling: Ruling
    reason: str
    implementation: str = ""
    """A commit on the task's base with only the implementation's changes."""
    other: str = ""
    """A commit on the task's base with only the test and documentation changes."""
    together: bool = False
    """The other part fails without the implementation's."""
    turned_green: tuple[str, ...] = ()
    tests_changed: tuple[str, ...] = ()
    tests_added: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    proofs: tuple[Proof, ...] = ()
    artifacts: str = ""
    """The folder, relative to the run's, with what the test left when it ran with the work."""
    expectation: str = ""
    """A commit on the task's base with which the test passes only because the test was changed."""
    block: str = ""
    """The block that a test with a changed expectation cites."""
    mutants: str = ""
    """How a test change was measured: the seed, and how many mutants the old and new tests kill."""
    flags: tuple[str, ...] = ()
    """Lines of the implementation that name a test or the test runner: `file:line: text (why)`."""


@dataclass
class Try:
    """One agent at one task."""

    number: int
    agent_name: str
    base: str
    intended: float
    agent_id: str = ""
    launched: float = 0.0
    reminded: float = 0.0
    ending: Ended | None = None
    """What it was judged to be, before its work was brought home and it was stopped."""
    ended: Ended | None = None
    ended_at: float = 0.0
    verdict: Verdict | None = None


@dataclass
class Task:
    """One test that was selected, and everything tried on it."""

    id: str
    node_id: str
    want: str
    """fix or improve"""
    signature: str = ""
    canary: str = ""
    """The task that this one waits for, which probably has the same cause."""
    cluster: str = ""
    """Tests that probably fail for one reason have the same; nothing where it is alone."""
    reach: int = 0
    """How many lines of the implementation the test runs; 0 where that was not measured."""
    round: int = 1
    """The round in which it was last given to agents."""
    earlier: int = 0
    """Tries that belong to earlier rounds."""
    base: str = ""
    """Where its agents begin, if not at the run's own base."""
    tries: list[Try] = field(default_factory=list)
    skipped: str = ""
    """Why no agent works on it after all."""
    spared_by: str = ""
    """The task whose fix it passes with."""
    evicted: str = ""
    """Why what was accepted for it is not on the branch."""
    passes_with: str = ""
    """A commit of the branch with which the test passes, although no work of its own was taken."""
    included: str = ""
    """The commit of the branch with its held change, where the user asked for flagged changes."""

    @property
    def latest(self) -> Try | None:
        return self.tries[-1] if self.tries else None

    @property
    def current(self) -> Try | None:
        """The latest try of its round."""
        return self.tries[-1] if len(self.tries) > self.earlier else None

    @property
    def held(self) -> Try | None:
        """The latest try whose change is held for review, unless a later try settled the test."""
        for each in reversed(self.tries):
            ruling = each.verdict.ruling if each.verdict else None
            if ruling in (Ruling.ACCEPTED, Ruling.UNCHANGED):
                return None
            if ruling is Ruling.HELD:
                return each
        return None

    @property
    def telling(self) -> Try | None:
        """The try that counts: one that is held for review, else the latest."""
        return self.held or self.latest

    @property
    def verdict(self) -> Verdict | None:
        return self.telling.verdict if self.telling else None


@dataclass(frozen=True)
class Suspect:
    """Lines of one file, and how many failing and passing tests run them."""

    path: str
    lines: str
    """As 1-3,7."""
    score: float
    """Ochiai's measure: 1 where all failing tests run a line and no passing one."""
    failing: int
    passing: int


@dataclass(frozen=True)
class Pick:
    """A commit of the branch."""

    kind: str
    """other, implementation or expectation"""
    tasks: tuple[str, ...]
    commit: str
    tree: str
    subject: str
    score: float = 0.0


@dataclass(frozen=True)
class Eviction:
    """Work that did not go onto the branch, and where it is kept."""

    task: str
    part: str
    reason: str
    ref: str = ""
    needless: bool = False
    """The branch does what it was for without it."""


@dataclass
class Run:
    """Everything the journal says."""

    name: str = ""
    repository: str = ""
    base: str = ""
    branch: str = ""
    started: float = 0.0
    options: Options = field(default_factory=Options)
    tests: dict[str, Test] = field(default_factory=dict)
    collect_errors: tuple[str, ...] = ()
    collected: bool = False
    baseline: dict[str, Baseline] = field(default_factory=dict)
    rounds: int = 0
    weak: set[str] = field(default_factory=set)
    """Tests that pass although their commands do nothing."""
    weighed: bool = False
    tasks: dict[str, Task] = field(default_factory=dict)
    selected: bool = False
    left_out: dict[str, str] = field(default_factory=dict)
    """node id -> why it was not selected"""
    paused: str = ""
    """Why nothing is launched at the moment."""
    paused_until: float = 0.0
    paused_at: float = 0.0
    """When a quota last paused it."""
    missed: int = 0
    """Pauses in a row after which no agent got further than to its quota."""
    obeyed: set[str] = field(default_factory=set)
    """Orders from outside that the journal has."""
    cancelled: bool = False
    slots: int = 0
    """How many agents may run at once just now."""
    round: int = 1
    tip: str = ""
    """Where the present round began: the end of the branch that the rounds before it made."""
    kept: tuple[int, int] = (0, 0)
    """How many picks and evictions are of earlier rounds."""
    integrated: bool = False
    """The branch of this round is complete."""
    suspects: dict[str, tuple[Suspect, ...]] = field(default_factory=dict)
    """By cluster, or by task where it is alone: the most suspicious lines first."""
    waiting: str = ""
    """What it has been waiting for, if nothing has happened for a minute."""
    consent: bool = False
    """The user has agreed to launch agents."""
    published: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Branches that this run wrote: where each was before, and where it was moved to."""
    branch_reason: str = ""
    """Why the branch has another name than the run."""
    picks: list[Pick] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    gates: dict[str, bool] = field(default_factory=dict)
    """tree and tests, as one key -> whether it passed"""
    shaky: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The same key -> tests that failed there at first, and were not held against the tree"""
    unsteady: set[str] = field(default_factory=set)
    """Tests that failed at a gate, and then passed there or failed at the base just as well."""
    conflicts: list[str] = field(default_factory=list)
    alerts: list[str] = field(default_factory=list)
    status: str = ""
    """done, nothing to do, failed or cancelled, once it has ended"""
    ended: float = 0.0
    result_branch: str = ""
    forecast: Forecast | None = None
    spent: Spending = field(default_factory=Spending)
    tries: int = 0
    hosts: dict[str, HostTime] = field(default_factory=dict)
    """Those that were made for this run and have been ended."""
