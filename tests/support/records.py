"""The record of an agent that never was."""

from __future__ import annotations

from mngr.model.records import AgentRecord, Worker


def agent_record(**changes: object) -> AgentRecord:
    base = AgentRecord(
        id="agent-1",
        name="foo",
        type="command",
        argv=("x",),
        work_dir="/w",
        transfer="none",
        made_work_dir=False,
        create_time=1.0,
        launch="L1",
        launch_time=1.0,
        worker=Worker(machine="m", pid=1, start="s"),
    )
    return base.updated(changes)
