"""The data of a run. `fold.py` computes it from events, and everything else reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from mngr_outcome.outcome import Obstacle
from mngr_tmr.journal.proofs import GateResult, Proof
from mngr_tmr.run import costs
from mngr_tmr.run.clustering import Suspect
from mngr_tmr.run.costs import Forecast, HostTime, Spending
from mngr_tmr.run.options import Options


class Outcome(StrEnum):
    """How an attempt ended."""

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


ANSWERS = (Outcome.FIXED, Outcome.IMPROVED, Outcome.UNCHANGED)
"""The agent claims to have done its task."""


class Ruling(StrEnum):
    """The result of verification."""

    ACCEPTED = "accepted"
    HELD = "held for review"
    """Acceptable, but a line looks like a special case for a test."""
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    UNDECIDED = "not verified"
    """A check failed three times by itself, so it is unknown whether the change works."""


@dataclass(frozen=True)
class Test:
    """A test as collected."""

    __test__ = False

    node_id: str
    file: str
    doc: str = ""


@dataclass(frozen=True)
class TestRun:
    """One run of one test."""

    __test__ = False

    outcome: str
    """passed, failed, skipped or missing"""
    seconds: float = 0.0
    stage: str = ""
    """setup, call or teardown, if it failed there"""
    exception: str = ""
    message: str = ""
    frame: str = ""
    """file:function of the innermost frame inside the project"""
    signature: str = ""


@dataclass(frozen=True)
class Baseline:
    """All baseline runs of a test."""

    runs: tuple[TestRun, ...] = ()

    @property
    def standing(self) -> str:
        """Return passed, failed, flaky or skipped."""
        kinds = {run.outcome for run in self.runs}
        if not kinds or kinds <= {"skipped", "missing"}:
            return "skipped"
        return "flaky" if len(kinds) > 1 else kinds.pop()

    @property
    def signature(self) -> str:
        return next((run.signature for run in self.runs if run.signature), "")


@dataclass(frozen=True)
class Ended:
    """How an attempt ended, and its results."""

    outcome: Outcome
    reason: str = ""
    head: str = ""
    ref: str = ""
    """The ref that keeps its commits in the source repository, if there are any."""
    summary: str = ""
    needs: str = ""
    """What a blocked agent requires."""
    obstacle: Obstacle = Obstacle.MISSING
    """What blocks it, if it is blocked."""
    tests_added: tuple[str, ...] = ()
    """As the agent reports them."""
    confusing: tuple[tuple[str, str, str], ...] = ()
    """command, what was tried, what happened"""
    artifacts: str = ""
    """The folder, relative to the run's, with artifacts of the agent."""
    spent: Spending = field(default_factory=Spending)
    seconds: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """The result of verifying an attempt, with the commits that verification made of it."""

    ruling: Ruling
    reason: str
    implementation: str = ""
    """A commit on the task's base with only the implementation's changes."""
    other: str = ""
    """A commit on the task's base with only the test and documentation changes."""
    together: bool = False
    """Whether the `other` part fails without the implementation."""
    turned_green: tuple[str, ...] = ()
    tests_changed: tuple[str, ...] = ()
    tests_added: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    proofs: tuple[Proof, ...] = ()
    artifacts: str = ""
    """The folder, relative to the run's, with artifacts of the test run with the change."""
    expectation: str = ""
    """A commit on the task's base that makes the test pass only by changing the test."""
    block: str = ""
    """The block cited by a test with a changed expectation."""
    mutants: str = ""
    """How a test change was measured: the seed, and how many mutants the old and new tests kill."""
    flags: tuple[str, ...] = ()
    """Lines of the implementation that name a test or the test runner: `file:line: text (why)`."""


@dataclass
class Try:
    """An attempt: one agent for one task."""

    number: int
    agent_name: str
    base: str
    intended: float
    agent_id: str = ""
    launched: float = 0.0
    reminded: float = 0.0
    ending: Ended | None = None
    """The outcome before its work is collected and the agent stopped."""
    ended: Ended | None = None
    ended_at: float = 0.0
    verdict: Verdict | None = None


@dataclass
class Task:
    """A selected test and all its attempts."""

    id: str
    node_id: str
    want: str
    """fix or improve"""
    signature: str = ""
    canary: str = ""
    """The task that this one waits for, because it probably has the same cause."""
    cluster: str = ""
    """The same for tests that probably fail for one reason; empty for a single test."""
    reach: int = 0
    """Number of lines of the implementation that the test executes; 0 if not measured."""
    round: int = 1
    """The last round in which it was given to agents."""
    earlier: int = 0
    """Number of attempts in earlier rounds."""
    base: str = ""
    """The commit that its agents start from, if not the base of the run."""
    tries: list[Try] = field(default_factory=list)
    skipped: str = ""
    """Why it gets no agent."""
    skipped_as: str = ""
    """The outcome or ruling it shares, if it was skipped although it requires a fix."""
    spared_by: str = ""
    """The task whose fix it passes with."""
    evicted: str = ""
    """Why its accepted change is not on the branch."""
    passes_with: str = ""
    """A commit of the branch that makes the test pass, made for another test."""
    included: str = ""
    """The commit of the branch with its held change, with --include-flagged."""

    @property
    def latest(self) -> Try | None:
        return self.tries[-1] if self.tries else None

    @property
    def current(self) -> Try | None:
        """Return the latest attempt of its round."""
        return self.tries[-1] if len(self.tries) > self.earlier else None

    @property
    def fix(self) -> str:
        """Return the commit with its accepted implementation change of this round, or ""."""
        verdict = self.current.verdict if self.current else None
        return verdict.implementation if verdict and verdict.ruling is Ruling.ACCEPTED else ""

    @property
    def held(self) -> Try | None:
        """Return the latest attempt held for review, unless a later one settled the test."""
        for each in reversed(self.tries):
            ruling = each.verdict.ruling if each.verdict else None
            if ruling in (Ruling.ACCEPTED, Ruling.UNCHANGED):
                return None
            if ruling is Ruling.HELD:
                return each
        return None

    @property
    def telling(self) -> Try | None:
        """Return the attempt that decides: one that is held for review, else the latest."""
        return self.held or self.latest

    @property
    def verdict(self) -> Verdict | None:
        return self.telling.verdict if self.telling else None


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
    """A change that is not on the branch, and the ref that keeps it."""

    task: str
    part: str
    reason: str
    ref: str = ""
    needless: bool = False
    """Whether the branch makes its test pass without it."""


@dataclass
class Run:
    """A run, as its journal describes it."""

    name: str = ""
    repository: str = ""
    base: str = ""
    started: float = 0.0
    options: Options = field(default_factory=Options)
    tests: dict[str, Test] = field(default_factory=dict)
    collect_errors: tuple[str, ...] = ()
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
    """Why no agents are started at the moment."""
    paused_until: float = 0.0
    paused_at: float = 0.0
    """When a quota last paused the run."""
    missed: int = 0
    """Pauses in a row after which the quota was still exhausted."""
    obeyed: set[str] = field(default_factory=set)
    """Names of the orders in the journal."""
    cancelled: bool = False
    slots: int = 0
    """Number of agents that may run at once."""
    round: int = 1
    tip: str = ""
    """The commit at which the current round began: the end of the branch so far."""
    kept: tuple[int, int] = (0, 0)
    """Number of picks and evictions of earlier rounds."""
    integrated: bool = False
    """The branch of this round is complete."""
    suspects: dict[str, tuple[Suspect, ...]] = field(default_factory=dict)
    """By cluster, or by task outside clusters; the most suspicious lines first."""
    waiting: str = ""
    """What the run waits for, if nothing has happened for a minute."""
    consent: bool = False
    """The user has agreed to launch agents."""
    published: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Branches that this run wrote: the commits before and after."""
    branch_reason: str = ""
    """Why the branch has another name than the run."""
    picks: list[Pick] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    gates: dict[str, dict[str, GateResult]] = field(default_factory=dict)
    """By tree, then by a hash of the tests."""
    unsteady: set[str] = field(default_factory=set)
    """Tests that failed at a gate and passed when run again, or failed at the base too."""
    conflicts: list[str] = field(default_factory=list)
    """The tasks whose changes conflicted with the branch, each with the files."""
    alerts: list[str] = field(default_factory=list)
    status: str = ""
    """done, nothing to do, failed or cancelled, once it has ended"""
    ended: float = 0.0
    result_branch: str = ""
    forecast: Forecast | None = None
    hosts: dict[str, HostTime] = field(default_factory=dict)
    """Hosts created for this run that have ended."""

    @property
    def tries(self) -> int:
        return sum(len(task.tries) for task in self.tasks.values())

    @property
    def spent(self) -> Spending:
        return costs.spent(costs.ends(self.tasks.values()))

    def before(self, node_id: str) -> Baseline:
        """Return the baseline runs of a test; none if it did not run."""
        return self.baseline.get(node_id, Baseline())

    def gate(self, tree: str) -> GateResult:
        """Return the newest gate that this tree passed; an empty one if there is none."""
        passed = [each for each in self.gates.get(tree, {}).values() if each.passed]
        return passed[-1] if passed else GateResult(passed=False)

    def tasks_of(self, pick: Pick) -> list[Task]:
        return [self.tasks[each] for each in pick.tasks if each in self.tasks]
