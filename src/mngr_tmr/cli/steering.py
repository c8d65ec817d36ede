"""`mngr tmr pause`, `unpause`, `retune` and `cancel`: orders to the process of a run."""

from __future__ import annotations

from collections.abc import Mapping

from mngr.cli.app.output import one
from mngr.cli.app.parser import Namespace
from mngr.errors import Refused, UsageError
from mngr.model.struct import Json
from mngr_tmr.cli.manual import SCREENS
from mngr_tmr.cli.viewing import chosen
from mngr_tmr.dispatch import orders
from mngr_tmr.journal.journal import is_at_work
from mngr_tmr.run import runs

TUNABLE = tuple(option[2:].replace("-", "_") for option in SCREENS["retune"][2])


def pause(args: Namespace) -> int:
    return _send(args, {"action": "pause"}, "pause", "Paused", "no new agents will start")


def unpause(args: Namespace) -> int:
    return _send(args, {"action": "resume"}, "unpause", "Unpaused", "new agents may start")


def cancel(args: Namespace) -> int:
    return _send(args, {"action": "cancel"}, "cancel", "Cancelled", "its agents will be stopped")


def retune(args: Namespace) -> int:
    given = {key: value for key in TUNABLE if (value := getattr(args, key)) is not None}
    if not given:
        options = ", ".join(_option(each) for each in TUNABLE)
        raise UsageError("nothing to change", f"give one of {options}")
    words = " ".join(f"{_option(key)} {_shown(key, value)}" for key, value in given.items())
    return _send(args, {"action": "retune", "options": given}, "retune", "Retuned", words)


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _shown(key: str, value: object) -> str:
    seconds = key in ("stagger", "agent_timeout", "idle", "max_time")
    return f"{value:g}s" if seconds and isinstance(value, (int, float)) else str(value)


def _send(args: Namespace, order: Mapping[str, Json], verb: str, done: str, effect: str) -> int:
    folder = chosen(args)
    if not is_at_work(folder):
        if status := runs.load(folder).status:
            hint = f"see `mngr tmr show {folder.name}`"
            raise Refused(f"the run {folder.name} has ended ({status})", hint)
        hint = f"continue it with `mngr tmr resume {folder.name}`"
        raise Refused(f"the run {folder.name} is not in progress", hint)
    if not args.dry_run:
        orders.send(folder, order)
    row: dict[str, Json] = {"run": folder.name, **order, "sent": not args.dry_run}
    told = f"Would {verb}" if args.dry_run else done
    one(args, row, f"{told} run {folder.name}; {effect}.")
    return 0
