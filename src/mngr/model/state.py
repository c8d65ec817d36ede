"""Compute states from evidence. Pure: no I/O and no clock."""

from __future__ import annotations

from mngr.model.records import AgentRecord, Exit, Started
from mngr.model.struct import Json, Struct
from mngr.model.words import StrEnum

STARTING = "starting"
"""What a program is doing before its first report."""

KILLED_GRACE = 1.0
"""Seconds to wait for the `exit` file of a dead pane, which may be seen shortly after the pane."""
UNREAPED_GRACE = 5.0
"""The same if tmux does not report when the pane died: it has not collected the process's status
yet (each reading triggers that, see tmux_scripts.COLLECT), or it is older than 3.3."""


BEING_DESTROYED = "being destroyed; if that was interrupted, destroy it again or run gc"


DULL = ("process is alive", "stopped")
"""Reasons that add nothing to the state."""


class State(StrEnum):
    CREATING = "CREATING"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    STOPPED = "STOPPED"
    DONE = "DONE"
    FAILED = "FAILED"
    LOST = "LOST"
    UNREACHABLE = "UNREACHABLE"


ALIVE = (State.CREATING, State.RUNNING, State.WAITING)
ENDED = (State.STOPPED, State.DONE, State.FAILED, State.LOST)


class EndKind(StrEnum):
    """What is known of the end of an agent beside its exit code."""

    PLAIN = ""
    NEVER_BEGAN = "never began"
    """Its launcher ended without starting its program."""
    UNREPORTED = "unreported"
    """Its launcher was killed."""
    TIMED_OUT = "timed out"
    OVER_LIMIT = "over its limit"


LIMITED = 124
"""The exit code with which a launcher reports that the program was ended for a limit."""


class Pane(Struct):
    """One tmux pane, as `list-panes` reports it."""

    session: str
    pane_id: str
    pid: int
    dead: bool
    dead_time: float
    code: int | None = None
    """The exit code of its process; tmux may report it a moment after the pane is dead."""
    tty: str
    activity: float
    window: str
    title: str = ""
    """The title that the program set; some programs show there what they are doing."""


class Signals(Struct):
    """What an agent type reads from hooks and transcript."""

    waiting: str = ""
    """Why the agent is waiting: end_of_turn, permission, quota, error, interrupted, unreachable
    or dialog."""
    working: str = ""
    """What it is doing, if it reports that; if both are empty, it is only known to be alive."""
    detail: str = ""
    """The question asked, the time of the reset, the error."""
    since: float = 0.0

    @property
    def reason(self) -> str:
        word = self.waiting or self.working
        return f"{word}: {self.detail}" if self.detail else word


class Signal(Struct):
    """The last report of one hook in this launch."""

    event: str
    time: float
    input: dict[str, Json]


class Evidence(Struct):
    """Everything a host's reading contains about one agent."""

    id: str
    rev: int
    record: AgentRecord | None
    problem: str = ""
    """Why the record cannot be read."""
    started: Started | None = None
    exit: Exit | None = None
    panes: tuple[Pane, ...] = ()
    signals: dict[str, Json] = {}
    """The files of hook.sh by event: launch, time and the hook's input."""
    tail: bytes = b""
    """The end of the file that `transcript` in the agent's folder links to."""
    status: bytes = b""
    """The end of the file that `status` links to, in which the program reports what it is doing."""
    outcome: bytes = b""
    """The outcome that the agent published, not parsed."""
    now: float = 0.0
    """The host's clock at the time of the reading."""

    @property
    def this_signals(self) -> dict[str, Signal]:
        """Return signals by event, oldest first, without those of earlier launches."""
        found = [_signal(event, said) for event, said in self.signals.items()]
        mine = [signal for launch, signal in found if self._current(launch)]
        return {signal.event: signal for signal in sorted(mine, key=lambda each: each.time)}

    @property
    def this_started(self) -> Started | None:
        return self.started if self.started and self._current(self.started.launch) else None

    @property
    def this_exit(self) -> Exit | None:
        """Return the launcher's report; if it is missing or differs, the one from tmux.

        Launchers exit with the code they record. But an agent can write to the file too, and the
        disk can be full.
        """
        written = self.exit if self.exit and self._current(self.exit.launch) else None
        pane = self.pane
        if pane is None or not pane.dead or pane.code is None or self.this_started is None:
            return written
        if written and written.code == pane.code:
            return written
        cause = f"{describe_code(pane.code)}; its launcher could not record this (disk full?)"
        ended = pane.dead_time or self.this_started.time
        return Exit(launch=self.this_started.launch, code=pane.code, time=ended, cause=cause)

    @property
    def not_run(self) -> str:
        """Return why the program was never run, or ""; the launcher itself may still be running."""
        exit = self.this_exit
        if self.this_started is not None or exit is None:
            return ""
        return exit.cause or describe_code(exit.code)

    def _current(self, launch: str) -> bool:
        """Return whether a file is from this launch; older files are ignored."""
        return self.record is not None and launch == self.record.launch

    @property
    def pane(self) -> Pane | None:
        """Return the agent's own pane: by process if known, since a user may rename windows."""
        started = self.this_started
        mine = [pane for pane in self.panes if started and pane.pid == started.pid]
        mine += [pane for pane in self.panes if pane.window == "agent"]
        return mine[0] if mine else None


FAR = 1e11
"""Seconds; a later time cannot be shown as a date."""


def _signal(event: str, said: Json) -> tuple[str, Signal]:
    """Parse a signal; malformed ones, which an agent may write, belong to no launch."""
    given = said if isinstance(said, dict) else {}
    launch, time, input = given.get("launch"), given.get("time"), given.get("input")
    if not isinstance(launch, str) or not isinstance(time, (int, float)) or not 0 <= time < FAR:
        launch, time = "", 0.0
    kept = input if isinstance(input, dict) else {}
    return launch, Signal(event=event, time=float(time), input=kept)


class Judgement(Struct):
    """A state, its reason, and its time."""

    state: State
    reason: str
    since: float
    exit_code: int | None = None
    ending: EndKind = EndKind.PLAIN
    waiting: str = ""
    """What a WAITING agent waits for, as in `Signals`; the reason may be worded otherwise."""

    @property
    def detail(self) -> str:
        """The reason, or nothing if it adds nothing to the state."""
        return "" if self.reason in DULL else self.reason

    def __str__(self) -> str:
        return f"{self.state} ({self.detail})" if self.detail else str(self.state)


def judge(
    evidence: Evidence, *, now: float, worker_alive: bool, signals: Signals, unreachable: str = ""
) -> Judgement:
    """Return the state by a table; the first row that matches decides."""
    record = evidence.record
    if record is None:
        return Judgement(
            state=State.LOST, reason=f"unreadable record: {evidence.problem}", since=now
        )
    known = _judge_answered(evidence, record, now, worker_alive, signals)
    if not unreachable:
        return known
    reason = f"{unreachable} (last known {known.state})"
    return Judgement(state=State.UNREACHABLE, reason=reason, since=now)


def _judge_answered(
    evidence: Evidence, record: AgentRecord, now: float, worker_alive: bool, signals: Signals
) -> Judgement:
    pane, exit = evidence.pane, evidence.this_exit
    alive = pane is not None and not pane.dead
    if record.removal and not alive:
        return _ended_by_mngr(BEING_DESTROYED, record.removal.time, exit)
    if record.stop and record.stop.launch == record.launch and not alive:
        return _ended_by_mngr("stopped", record.stop.time, exit)
    if alive:  # even with an `exit`: the launcher is about to end, or the agent wrote it
        return _judge_alive(evidence, record, worker_alive, signals)
    if exit:
        return _judge_exit(exit, evidence.not_run)
    started = evidence.this_started
    if started is None:
        return _not_started(record, pane, worker_alive)
    if pane is not None:
        since = pane.dead_time or max(started.time, pane.activity)
        if now - since <= (KILLED_GRACE if pane.dead_time else UNREAPED_GRACE):
            return Judgement(state=State.RUNNING, reason="ending", since=since)
        return _unreported(since)
    return Judgement(
        state=State.LOST,
        reason="its tmux session is gone (reboot, killed server or out of memory)",
        since=started.time,
    )


def _ended_by_mngr(reason: str, since: float, exit: Exit | None) -> Judgement:
    code = exit.code if exit else None
    return Judgement(state=State.STOPPED, reason=reason, since=since, exit_code=code)


def _judge_exit(exit: Exit, not_run: str) -> Judgement:
    reason = exit.cause or describe_code(exit.code)
    state = State.DONE if exit.code == 0 else State.FAILED
    limits = (EndKind.TIMED_OUT, EndKind.OVER_LIMIT) if exit.code == LIMITED else ()
    ending = next((each for each in limits if exit.cause.startswith(each)), EndKind.PLAIN)
    return Judgement(
        state=state, reason=reason, since=exit.time, exit_code=exit.code,
        ending=EndKind.NEVER_BEGAN if not_run else ending,
    )  # fmt: skip


def _unreported(since: float) -> Judgement:
    return Judgement(
        state=State.FAILED, reason="killed before it could report", since=since,
        ending=EndKind.UNREPORTED,
    )  # fmt: skip


def _judge_alive(
    evidence: Evidence, record: AgentRecord, worker_alive: bool, signals: Signals
) -> Judgement:
    since = evidence.this_started.time if evidence.this_started else record.launch_time
    if record.removal:
        return Judgement(state=State.RUNNING, reason=BEING_DESTROYED, since=record.removal.time)
    if record.stop and record.stop.launch == record.launch:
        return Judgement(state=State.RUNNING, reason="stopping", since=since)
    if signals.waiting:
        return Judgement(
            state=State.WAITING, reason=signals.reason, since=signals.since, waiting=signals.waiting
        )
    if evidence.this_started is None and worker_alive:
        return Judgement(state=State.CREATING, reason="starting", since=since)
    if evidence.this_started is None:  # a full disk, or its creator was killed a moment ago
        reason = "process is alive; its launcher has not recorded the start (disk full?)"
        return Judgement(state=State.RUNNING, reason=reason, since=since)
    if signals.working:
        return Judgement(state=State.RUNNING, reason=signals.reason, since=signals.since)
    return Judgement(state=State.RUNNING, reason="process is alive", since=since)


def _not_started(record: AgentRecord, pane: Pane | None, worker_alive: bool) -> Judgement:
    verb = "create" if record.launches == 1 else "start"
    if worker_alive:
        return Judgement(
            state=State.CREATING, reason=f"{verb} in progress", since=record.launch_time
        )
    if pane is not None:
        return _unreported(record.launch_time)
    return Judgement(state=State.LOST, reason=f"{verb} interrupted", since=record.launch_time)


def describe_code(code: int) -> str:
    """Return `exit code 3`, or the signal that a shell reports as 128 + n."""
    if 128 < code <= 192:
        import signal  # imported here because only failures require it

        try:
            return f"signal {signal.Signals(code - 128).name}"
        except ValueError:
            pass
    return f"exit code {code}"
