"""The state table, line by line, and properties over all evidence."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mngr.model.records import AgentRecord, Exit, Removal, Started, StopIntent, Worker
from mngr.model.state import (
    ALIVE,
    EndKind,
    Evidence,
    Judgement,
    Pane,
    Signals,
    State,
    describe_code,
    judge,
)
from tests.support.records import agent_record

WORKER = Worker(machine="m", pid=1, start="s")
NOW = 1000.0


def record(**changes: object) -> AgentRecord:
    return agent_record(**{"create_time": 900.0, "launch_time": 900.0, **changes})


def pane(
    *, dead: bool = False, pid: int = 7, dead_time: float = 0.0, window: str = "agent"
) -> Pane:
    return Pane(
        session="agent-1",
        pane_id="%1",
        pid=pid,
        dead=dead,
        dead_time=dead_time,
        tty="/dev/pts/1",
        activity=950.0,
        window=window,
    )


def started(launch: str = "L1") -> Started:
    return Started(launch=launch, pid=7, time=901.0)


def exit(code: int, launch: str = "L1", cause: str = "") -> Exit:
    return Exit(launch=launch, code=code, time=960.0, cause=cause)


def verdict(
    rec: AgentRecord | None,
    *,
    alive_worker: bool = False,
    waiting: str = "",
    unreachable: str = "",
    **evidence: object,
) -> Judgement:
    found = Evidence(id="agent-1", rev=1, record=rec, **evidence)  # type: ignore[arg-type]
    return judge(
        found,
        now=NOW,
        worker_alive=alive_worker,
        signals=Signals(waiting=waiting, since=955.0),
        unreachable=unreachable,
    )


def test_a_host_that_did_not_answer_is_unreachable_with_the_last_known_state() -> None:
    seen = verdict(record(), unreachable="no route", started=started(), exit=exit(0))
    assert (seen.state, seen.reason) == (State.UNREACHABLE, "no route (last known DONE)")


def test_a_stop_intent_for_this_launch_with_no_live_process_is_stopped_and_keeps_the_code() -> None:
    stop = StopIntent(launch="L1", time=950.0)
    seen = verdict(record(stop=stop), started=started(), exit=exit(143))
    assert (seen.state, seen.exit_code, seen.since) == (State.STOPPED, 143, 950.0)


def test_a_stop_intent_for_an_earlier_launch_says_nothing() -> None:
    stop = StopIntent(launch="L0", time=950.0)
    assert verdict(record(stop=stop), started=started(), panes=(pane(),)).state is State.RUNNING


def test_a_live_process_with_a_stop_intent_is_still_running_and_says_stopping() -> None:
    stop = StopIntent(launch="L1", time=950.0)
    seen = verdict(record(stop=stop), started=started(), panes=(pane(),))
    assert (seen.state, seen.reason) == (State.RUNNING, "stopping")


def test_an_exit_of_this_launch_is_done_or_failed_with_its_code() -> None:
    assert verdict(record(), started=started(), exit=exit(0)).state is State.DONE
    failed = verdict(record(), started=started(), exit=exit(3))
    assert (failed.state, failed.reason, failed.exit_code) == (State.FAILED, "exit code 3", 3)
    assert verdict(record(), started=started(), exit=exit(137)).reason == "signal SIGKILL"


def test_an_exit_beside_a_live_pane_is_not_believed() -> None:
    """The launcher is about to end, and tmux may not have read its last lines; or it is forged."""
    seen = verdict(record(), started=started(), exit=exit(0), panes=(pane(),))
    assert (seen.state, seen.reason) == (State.RUNNING, "process is alive")
    stop = StopIntent(launch="L1", time=950.0)
    seen = verdict(record(stop=stop), started=started(), exit=exit(0), panes=(pane(),))
    assert (seen.state, seen.reason) == (State.RUNNING, "stopping")


def test_what_tmux_knows_of_the_end_stands_where_nothing_else_was_written() -> None:
    dead = pane(dead=True, dead_time=NOW - 1.5)
    seen = verdict(record(), started=started(), panes=(dead.replace(code=0),))
    assert (seen.state, seen.exit_code) == (State.DONE, 0)
    assert seen.reason.startswith("exit code 0; its launcher could not record this")
    seen = verdict(record(), started=started(), exit=exit(0), panes=(dead.replace(code=3),))
    assert (seen.state, seen.exit_code) == (State.FAILED, 3)
    seen = verdict(record(), started=started(), exit=exit(3), panes=(dead.replace(code=3),))
    assert (seen.reason, seen.since) == ("exit code 3", 960.0)


def test_a_forged_start_does_not_hide_the_agents_pane() -> None:
    forged = Started(launch="L1", pid=99, time=901.0)
    assert verdict(record(), started=forged, panes=(pane(),)).state is State.RUNNING


def test_an_exit_with_a_cause_tells_the_cause() -> None:
    seen = verdict(record(), exit=exit(124, cause="timed out after 5 s"))
    assert (seen.state, seen.reason) == (State.FAILED, "timed out after 5 s")


def test_the_kind_of_an_end_is_known_without_reading_the_reason() -> None:
    def ending(code: int, cause: str, *, began: bool = True) -> EndKind:
        begun = started() if began else None
        return verdict(record(), exit=exit(code, cause=cause), started=begun).ending

    assert ending(124, "timed out after 5 s") is EndKind.TIMED_OUT
    assert ending(124, "over its limit of 5 tokens (6 used)") is EndKind.OVER_LIMIT
    assert ending(124, "") is ending(1, "timed out after 5 s") is EndKind.PLAIN
    assert ending(127, "command not found: x", began=False) is EndKind.NEVER_BEGAN
    assert ending(127, "command not found: x") is EndKind.PLAIN
    killed = verdict(record(), started=started(), panes=(pane(dead=True, dead_time=1.0),))
    assert killed.ending is EndKind.UNREPORTED


def test_files_of_another_launch_are_ignored() -> None:
    seen = verdict(record(), started=started("L0"), exit=exit(0, "L0"), alive_worker=True)
    assert seen.state is State.CREATING


def test_a_live_pane_is_running_or_waiting_by_the_types_signals() -> None:
    assert verdict(record(), started=started(), panes=(pane(),)).state is State.RUNNING
    seen = verdict(record(), started=started(), panes=(pane(),), waiting="end_of_turn")
    assert (seen.state, seen.reason, seen.since) == (State.WAITING, "end_of_turn", 955.0)
    assert seen.waiting == "end_of_turn"


def test_the_agents_pane_is_known_by_its_process_even_when_the_window_was_renamed() -> None:
    panes = (pane(window="agent", pid=99, dead=True), pane(window="renamed", pid=7))
    assert verdict(record(), started=started(), panes=panes).state is State.RUNNING


def test_a_pane_dead_for_over_a_second_without_an_exit_was_killed() -> None:
    late = verdict(record(), started=started(), panes=(pane(dead=True, dead_time=NOW - 1.5),))
    assert (late.state, late.reason) == (State.FAILED, "killed before it could report")
    early = verdict(record(), started=started(), panes=(pane(dead=True, dead_time=NOW - 0.5),))
    assert early.state is State.RUNNING


def test_a_process_that_tmux_has_yet_to_collect_is_ending() -> None:
    """tmux reports neither code nor time yet, so the time of the last output counts."""
    unreaped = pane(dead=True)
    fresh = verdict(record(), started=started(), panes=(unreaped.replace(activity=NOW - 4),))
    assert (fresh.state, fresh.reason) == (State.RUNNING, "ending")
    old = verdict(record(), started=started(), panes=(unreaped.replace(activity=NOW - 6),))
    assert old.state is State.FAILED and old.since == NOW - 6


def test_without_a_start_it_is_creating_while_its_creator_lives_else_lost() -> None:
    assert verdict(record(), alive_worker=True).state is State.CREATING
    gone = verdict(record())
    assert (gone.state, gone.reason) == (State.LOST, "create interrupted")
    assert verdict(record(launches=2)).reason == "start interrupted"


def test_a_live_pane_without_a_start_is_creating_while_its_creator_lives_else_running() -> None:
    """On a full disk the launcher runs the program and cannot write `started`."""
    assert verdict(record(), panes=(pane(),), alive_worker=True).state is State.CREATING
    seen = verdict(record(), panes=(pane(),))
    assert (seen.state, "disk full?" in seen.reason) == (State.RUNNING, True)


def test_a_started_agent_without_a_pane_is_lost() -> None:
    assert verdict(record(), started=started()).state is State.LOST


def test_an_unreadable_record_is_lost_and_says_why() -> None:
    seen = verdict(None, problem="not valid JSON")
    assert (seen.state, seen.reason) == (State.LOST, "unreadable record: not valid JSON")


def test_a_half_destroyed_agent_says_so() -> None:
    removal = Removal(time=970.0, worker=WORKER)
    seen = verdict(record(removal=removal), started=started(), exit=exit(0))
    assert seen.state is State.STOPPED and "being destroyed" in seen.reason
    alive = verdict(record(removal=removal), started=started(), panes=(pane(),))
    assert alive.state is State.RUNNING and "being destroyed" in alive.reason


def test_codes_above_128_that_are_no_signal_stay_numbers() -> None:
    assert describe_code(255) == "exit code 255"
    assert describe_code(128 + 32) == "exit code 160"


launches = st.sampled_from(["L0", "L1"])
evidence = st.fixed_dictionaries(
    {},
    optional={
        "started": st.builds(started, launches),
        "exit": st.builds(exit, st.sampled_from([0, 3, 255]), launches, st.sampled_from(["", "x"])),
        "panes": st.lists(
            st.builds(pane, dead=st.booleans(), pid=st.sampled_from([7, 8])), max_size=2
        ).map(tuple),
    },
)


@given(
    evidence, st.booleans(), st.sampled_from(["", "end_of_turn"]), st.sampled_from(["", "L0", "L1"])
)
def test_every_evidence_has_one_state_with_a_reason_and_a_time(
    found: dict[str, object], worker: bool, waiting: str, stop: str
) -> None:
    intent = StopIntent(launch=stop, time=950.0) if stop else None
    seen = verdict(record(stop=intent), alive_worker=worker, waiting=waiting, **found)  # type: ignore[arg-type]
    assert seen.reason and 0 < seen.since <= NOW
    panes = found.get("panes", ())
    if seen.state in (State.RUNNING, State.WAITING):
        assert panes, "nothing runs without a pane"
    if seen.state in (State.DONE, State.FAILED) and seen.exit_code is not None:
        assert seen.state is (State.FAILED if seen.exit_code else State.DONE)
    mine = Evidence(id="agent-1", rev=1, record=record(), **found).pane  # type: ignore[arg-type]
    if mine is not None and not mine.dead:
        assert seen.state in ALIVE, "whatever files say"
    if stop == "L1" and not any(not p.dead for p in panes):  # type: ignore[attr-defined]
        assert seen.state not in ALIVE
