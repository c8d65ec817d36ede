"""Recognise dialogs that a program shows before it begins: login, trust, update.

The program's hooks do not run before that, so the screen is the only evidence.
"""

from __future__ import annotations

import re

from mngr.agents.jsonl import one_line
from mngr.errors import MngrError
from mngr.hosts import tmux
from mngr.hosts.base import Host
from mngr.model.state import Evidence, Signals

DIALOG = "dialog"
AWHILE = 30.0
"""Seconds that every program may take to start."""
QUIET = 15.0
"""Seconds without output after which a starting program counts as waiting for input."""
LATEST = 120.0
"""Seconds after which even a changing screen, such as a login, counts as a dialog."""

STANDS = 30.0
"""Seconds without a change after which a screen counts as a dialog, even on a slow machine."""

FRAME = re.compile(r"[\u2500-\u259f\u2800-\u28ff]+")
"""Characters that draw lines, boxes, blocks and dots."""
LIMIT = 200


def seen(host: Host, evidence: Evidence, signals: Signals) -> Signals:
    """Return WAITING with the screen's text if the program shows a dialog, else `signals`."""
    pane = evidence.pane
    if pane is None or pane.dead or not _stands(evidence.now, signals.since, pane.activity):
        return signals
    words = _screen(host, pane.pane_id)
    if not words:
        return signals  # nothing is drawn yet: the machine is slow
    return Signals(waiting=DIALOG, detail=words, since=max(signals.since, pane.activity))


def _stands(now: float, since: float, activity: float) -> bool:
    return now - since > LATEST or (now - since > AWHILE and now - activity > QUIET)


def _screen(host: Host, pane: str) -> str:
    try:
        done = host.run(tmux.capture(host.socket, pane, full=False, ansi=False), timeout=30)
    except MngrError:
        return ""  # it has disappeared since it was listed
    return plain(done.stdout.decode("utf-8", "replace")) if not done.code else ""


def plain(screen: str) -> str:
    """Return the words of a screen on one line."""
    kept = "".join(each if each.isprintable() else " " for each in FRAME.sub(" ", screen))
    return one_line(kept, LIMIT)
