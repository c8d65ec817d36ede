"""`mngr tmr pause`, `unpause`, `retune` and `cancel`: notes to the process at work on a run."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from mngr.cli.app.output import one
from mngr.errors import Refused, UsageError
from mngr.model.struct import Json
from mngr_tmr.dispatch import orders
from mngr_tmr.journal.journal import is_at_work
from mngr_tmr.run import runs

TUNABLE = (
    "max_agents",
    "stagger",
    "retries",
    "agent_timeout",
    "idle",
    "alert_after",
    "on_alert",
)
BUDGETS = {
    "max_cost": ("run_budget", "cost"),
    "max_tokens": ("run_budget", "tokens"),
    "max_time": ("run_budget", "minutes"),
    "max_launches": ("run_budget", "agents"),
    "agent_max_cost": ("agent_budget", "cost"),
    "agent_max_tokens": ("agent_budget", "tokens"),
}
"""Where a limit is kept in Options."""


def pause(args: argparse.Namespace) -> int:
    return _send(args, {"action": "pause"}, "pause", "Paused", "no new agents will start")


def unpause(args: argparse.Namespace) -> int:
    return _send(args, {"action": "resume"}, "unpause", "Unpaused", "new agents may start")


def cancel(args: argparse.Namespace) -> int:
    return _send(args, {"action": "cancel"}, "cancel", "Cancelled", "its agents are being stopped")


def retune(args: argparse.Namespace) -> int:
    given = {key: getattr(args, key) for key in (*TUNABLE, *BUDGETS) if _is_given(args, key)}
    if not given:
        options = ", ".join(_option(each) for each in (*TUNABLE, *BUDGETS))
        raise UsageError("nothing to change", f"give one of {options}")
    words = " ".join(f"{_option(key)} {_shown(key, value)}" for key, value in given.items())
    return _send(args, {"action": "retune", "options": tuned(args)}, "retune", "Retuned", words)


def _is_given(args: argparse.Namespace, key: str) -> bool:
    return getattr(args, key) is not None


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _shown(key: str, value: object) -> str:
    seconds = key in ("stagger", "agent_timeout", "idle", "max_time")
    return f"{value:g}s" if seconds and isinstance(value, (int, float)) else str(value)


def tuned(args: argparse.Namespace) -> dict[str, Json]:
    """Those that were given; named like the fields of Options, of budgets only single limits."""
    found: dict[str, Json] = {key: getattr(args, key) for key in TUNABLE if _is_given(args, key)}
    for key, (budget, limit) in BUDGETS.items():
        if _is_given(args, key):
            value = getattr(args, key)
            limits = found.setdefault(budget, {})
            assert isinstance(limits, dict)
            limits[limit] = value / 60 if limit == "minutes" else value
    return found


def _send(
    args: argparse.Namespace, order: Mapping[str, Json], verb: str, done: str, effect: str
) -> int:
    if len(args.words) > 1:
        raise UsageError(f"one run at a time: {' '.join(args.words)!r}")
    folder = runs.find(args.config.home, args.words[0] if args.words else args.name)
    if not is_at_work(folder):
        hint = f"`mngr tmr resume {folder.name}` continues it"
        raise Refused(f"no process is running the run {folder.name}", hint)
    if not args.dry_run:
        orders.send(folder, order)
    row: dict[str, Json] = {"run": folder.name, **order, "sent": not args.dry_run}
    told = f"Would {verb}" if args.dry_run else done
    one(args, row, f"{told} run {folder.name}; {effect}.")
    return 0
