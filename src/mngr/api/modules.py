"""The modules behind the API, each imported when it is first used: a command uses few of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.hosts import ledger
    from mngr.ops import types
    from mngr.ops.hosting import audit, hosts
    from mngr.ops.keep import compare, merge, rewind, snapshot
    from mngr.ops.lifecycle import batch, create, destroy, gc, restore, running, trash
    from mngr.ops.limits import limits, usage
    from mngr.ops.look import (
        capture,
        changes,
        columns,
        doctor,
        doctor_host,
        event_log,
        listing,
        logins,
        output,
        remembered,
        waiting,
    )
    from mngr.ops.talk import answering, conversation, message
    from mngr.ops.work import clone, commits, ends, execute, files, risk
else:
    FOLDERS = {
        "hosts": "ledger",
        "ops": "types",
        "ops.hosting": "audit hosts",
        "ops.keep": "compare merge rewind snapshot",
        "ops.lifecycle": "batch create destroy gc restore running trash",
        "ops.limits": "limits usage",
        "ops.look": "capture changes columns doctor doctor_host event_log listing logins output "
        "remembered waiting",
        "ops.talk": "answering conversation message",
        "ops.work": "clone commits ends execute files risk",
    }

    class LazyModule:
        """Stands for a module; its attributes are those of the module."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> object:
            return getattr(__import__(self._name, fromlist=("*",)), attribute)

    for _folder, _names in FOLDERS.items():
        for _name in _names.split():
            globals()[_name] = LazyModule(f"mngr.{_folder}.{_name}")
