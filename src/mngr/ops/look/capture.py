"""Read the screen of an agent, live or as saved when it stopped."""

from __future__ import annotations

import time

from mngr.errors import NotFound, suggestion
from mngr.hosts import tmux
from mngr.ops.look import event_log
from mngr.ops.look.listing import Agent
from mngr.ops.work import transport

ENDING = 5.0
"""Seconds that a terminal may take to end after its program."""

ESCAPES = r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\^_])"


def capture(agent: Agent, *, window: str = "", full: bool = False, ansi: bool = False) -> str:
    if agent.record.headless and window in ("", "agent"):
        return _trimmed(event_log.read(agent, name="stdout") + event_log.read(agent, name="stderr"))
    pane = _pane_of(agent, window)
    if pane:
        _let_end(agent)
        argv = tmux.capture(agent.host.socket, pane, full=full, ansi=ansi)
        done = agent.host.run(argv, timeout=30)
        done.raise_if_failed(f"the screen of {agent.name} could not be read")
        return _trimmed(done.stdout)
    text = _trimmed(event_log.read(agent, name="screen.txt"))
    if not text or window not in ("", "agent"):
        hint = f"see its output with `mngr logs {agent.name}`"
        raise NotFound(f"{agent.name} has no screen: it is {agent.state}", hint)
    if not full:
        text = "".join(text.splitlines(keepends=True)[-agent.record.height :])
    if ansi or "\x1b" not in text:
        return text
    import re

    return re.sub(ESCAPES, "", text)


def _let_end(agent: Agent) -> None:
    """Wait until the pane is dead: only then has tmux read the program's last lines."""
    deadline, evidence = time.monotonic() + ENDING, agent.evidence
    while evidence.this_exit and evidence.pane and not evidence.pane.dead:
        if time.monotonic() > deadline:
            return
        time.sleep(transport.pause(agent.host, 0.02))
        evidence = next(iter(agent.host.read([agent.id]).agents), evidence)


def _trimmed(screen: bytes) -> str:
    """Return the screen without the empty rows below the last line."""
    text = screen.decode("utf-8", "replace").rstrip()
    return f"{text}\n" if text else ""


def _pane_of(agent: Agent, window: str) -> str:
    panes = agent.evidence.panes
    if window in ("", "agent") and agent.evidence.pane is not None:
        return agent.evidence.pane.pane_id
    for pane in panes:
        if pane.window == window:
            return pane.pane_id
    if window not in ("", "agent") and panes:
        known = [pane.window for pane in panes]
        hint = suggestion(window, known, f"its windows are {', '.join(known)}")
        raise NotFound(f"{agent.name} has no window {window!r}", hint)
    return ""
