"""Evidence of an imaginary agent, for tests of agent types."""

from __future__ import annotations

from mngr.model.records import AgentRecord, Started
from mngr.model.state import Evidence, Pane
from mngr.model.struct import Json
from tests.support.records import agent_record


def record(type: str, began: float, **changes: object) -> AgentRecord:
    """Return a record of the second launch."""
    places = {"work_dir": "/home/fox/den", "source": "/home/fox/repo"}
    made = {"transfer": "git-worktree", "made_work_dir": True, "launch": "L2", **places}
    times = {"create_time": began, "launch_time": began}
    return agent_record(**{"name": "fox", "type": type, "argv": (), **made, **times, **changes})


def evidence(
    record: AgentRecord, tail: bytes = b"", title: str = "", said: dict[str, Json] | None = None
) -> Evidence:
    """Return the evidence of a running agent whose terminal has this title."""
    pane = Pane(
        session="agent-1",
        pane_id="%1",
        pid=7,
        dead=False,
        dead_time=0.0,
        tty="/dev/pts/1",
        activity=0.0,
        window="agent",
        title=title,
    )
    return Evidence(
        id="agent-1",
        rev=1,
        record=record,
        started=Started(launch="L2", pid=7, time=record.launch_time),
        panes=(pane,),
        tail=tail,
        signals=said or {},
    )
