"""Show the progress of a run: updated in place on a terminal, otherwise as plain lines.

With `--format jsonl` (or json), without a terminal, as JSON lines.
"""

from __future__ import annotations

import heapq
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter

from mngr.cli.app.output import clean
from mngr.cli.app.parser import Namespace
from mngr_tmr.integrate import ranking
from mngr_tmr.journal.model import Run
from mngr_tmr.run.words import counted

PAUSE = 0.2


class Progress:
    """Prints progress. `show(run)` may be called at any rate."""

    def __init__(self, args: Namespace, known: Run, *, acts: bool = True) -> None:
        """Alerts in `known` are not shown again; without `acts`, --on-alert is not run."""
        self._acts = acts
        self._quiet = args.quiet
        self._terminal = sys.stderr.isatty() and not args.headless
        self._json = args.format in ("json", "jsonl") and not self._terminal
        self._lines = 0
        self._shown = 0.0
        self._last: dict[str, object] = {}
        self._alerts = len(known.alerts)
        self._run: Run | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()
        if self._run is not None and not self._quiet and not self._terminal:
            self._tell(self._run)  # the last update may have been skipped

    def show(self, run: Run) -> None:
        self._alert(run)
        self._run = run
        if self._quiet or time.monotonic() - self._shown < PAUSE:
            return
        self._shown = time.monotonic()
        if self._terminal:
            self._draw(lines(run, shutil.get_terminal_size().columns))
        else:
            self._tell(run)

    def say(self, type: str, text: str, words: str = "") -> None:
        """Print a text for people, or as a JSON line for programs."""
        self.clear()
        line = json.dumps({"type": type, "text": text}) if self._json else clean(words or text)
        print(line, file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._lines:
            sys.stderr.write(f"\x1b[{self._lines}A\r\x1b[J")
            sys.stderr.flush()
            self._lines = 0

    def _draw(self, text: list[str]) -> None:
        up = f"\x1b[{self._lines}A\r\x1b[J" if self._lines else ""
        sys.stderr.write(up + "".join(f"{line}\n" for line in text))
        sys.stderr.flush()
        self._lines = len(text)

    def _tell(self, run: Run) -> None:
        now: dict[str, object] = state(run) if self._json else {"text": told(run)}
        if now != self._last:
            self._last = now
            line = json.dumps({"type": "progress", **now}) if self._json else told(run)
            print(line, file=sys.stderr, flush=True)

    def _alert(self, run: Run) -> None:
        for text in run.alerts[self._alerts :]:
            self.say("alert", text, f"mngr: alert: {text}")
            if run.options.on_alert and self._acts:
                _act(run, text)
        self._alerts = len(run.alerts)


def _act(run: Run, text: str) -> None:
    """Run the --on-alert command. Its output goes to stderr, because stdout may be JSON."""
    env = {**os.environ, "MNGR_TMR_ALERT": text, "MNGR_TMR_RUN": run.name}
    words = ["sh", "-c", run.options.on_alert]
    subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=sys.stderr)


def state(run: Run) -> dict[str, object]:
    tasks, spent = run.tasks.values(), run.spent
    ended = [task for task in tasks if ranking.ending_of(task) != "unfinished"]
    live = [t.latest for t in tasks if t.latest and t.latest.launched and t.latest.ended is None]
    ending = [each for each in live if each.ending is not None]
    return {
        "run": run.name,
        "stage": stage(run),
        "tests": len(run.tests),
        "tasks": len(run.tasks),
        "ended": len(ended),
        "running": len(live) - len(ending),
        "ending": len(ending),
        "slots": run.slots,
        "tokens": spent.tokens,
        "cost": spent.cost,
        "commits": len(run.picks),
        "paused": run.paused,
        "waiting": run.waiting,
        "round": run.round,
    }


def told(run: Run) -> str:
    """Return the progress as one line for a log."""
    now = state(run)
    ended = f"{now['ended']} of {counted(len(run.tasks), 'test')} ended"
    agents = f"{counted(int(str(now['running'])), 'agent')} at work"
    agents += f", {now['ending']} being collected" if now["ending"] else ""
    parts = [
        f"{run.name}: {now['stage']}",
        f"{ended}, {agents}" if run.consent else "",
        counted(len(run.picks), "commit") if run.picks else "",
        run.paused or run.waiting,
    ]
    return clean("; ".join(part for part in parts if part))


def stage(run: Run) -> str:
    if run.status:
        return run.status
    if not run.tests:
        return "collecting"
    if run.rounds < max(1, run.options.repeats):
        return f"baseline, round {run.rounds + 1}"
    if not run.selected:
        return "selecting"
    if not run.consent:
        return "waiting for confirmation"
    if any(ranking.ending_of(task) == "unfinished" for task in run.tasks.values()):
        return "agents at work" if run.round == 1 else f"agents at work, round {run.round}"
    return "building the branch"


def lines(run: Run, width: int) -> list[str]:
    now = state(run)
    total, done = len(run.tasks) or 1, now["ended"]
    assert isinstance(done, int)
    size = max(10, min(40, width - 40))
    filled = size * done // total if run.tasks else 0
    bar = "#" * filled + "." * (size - filled)
    spent = f"; {now['tokens']:,} tokens" if not run.forecast or run.forecast.counted else ""
    if now["cost"]:
        spent += f", ${now['cost']:.2f}"
    text = [
        f"{run.name}: {now['stage']}{f' ({why})' if (why := run.paused or run.waiting) else ''}",
        f"[{bar}] {done} of {len(run.tasks)}; {now['running']} of {run.slots} slots{spent}",
        "  ".join(f"{word} {number}" for word, number in ranking.counts(run).items()),
    ]
    text += [f"  {word}" for word in (*_clusters(run), *_last(run))]
    return [clean(line)[: max(20, width - 1)] for line in text if line.strip()]


def _last(run: Run) -> list[str]:
    """Return the latest results, newest first."""
    ended = [task for task in run.tasks.values() if task.latest and task.latest.ended]
    newest = heapq.nlargest(3, ended, key=lambda task: task.tries[-1].ended_at)
    return [f"{ranking.ending_of(task)}: {task.node_id}" for task in newest]


def _clusters(run: Run) -> list[str]:
    """Return the signatures that most tests share."""
    failed = [each for each in run.baseline.values() if each.standing == "failed"]
    counts = Counter(each.signature for each in failed if each.signature)
    return [f"{n} fail the same way: {each}" for each, n in counts.most_common(3) if n > 1]
