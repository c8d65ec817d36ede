"""Processes that a test starts get a mark; results of its commands are recorded or changed."""

# pytest and the tests pass values of any type.
# mypy: disallow-any-explicit=false
# ruff: noqa: ANN401
from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from typing import Any, Callable

_notes: list[dict[str, Any]] = []
_bend: dict[str, Any] = {}
LIMIT = 20_000
KEPT = ("MECHANIC_RUN", "MECHANIC_TRACE", "MECHANIC_ROOT")


def prepare(request: dict[str, Any]) -> None:
    """Prepare the process, once, before the first test of a request."""
    _bend.update(request.get("bend") or {})
    _mark_children()
    module = sys.modules.get("mngr_e2e.session")
    if module is not None and not hasattr(module.E2eSession, "_mechanic"):
        module.E2eSession._mechanic = True
        module.E2eSession.run = _noted(module.E2eSession.run)


def began() -> None:
    _notes.clear()


def ended() -> list[dict[str, Any]]:
    return list(_notes)


def _mark_children() -> None:
    """Add the mark to the environment of every started process, which tests may replace."""
    plain = subprocess.Popen.__init__

    def marked(self: Any, *args: Any, **options: Any) -> None:
        env = options.get("env")
        if env is not None:
            options["env"] = _marked(dict(env))
        plain(self, *args, **options)

    subprocess.Popen.__init__ = marked  # type: ignore[method-assign]


def _marked(env: dict[Any, Any]) -> dict[Any, Any]:
    if any(isinstance(key, bytes) for key in env):
        return env
    for name in KEPT:
        if name in os.environ:
            env[name] = os.environ[name]
    ours = os.environ.get("MECHANIC_PATH", "").split(os.pathsep)
    if "MECHANIC_TRACE" in os.environ:
        ours.insert(0, os.path.dirname(os.path.abspath(__file__)))
    path = [*ours, *str(env.get("PYTHONPATH", "")).split(os.pathsep)]
    kept = list(dict.fromkeys(part for part in path if part))
    return {**env, "PYTHONPATH": os.pathsep.join(kept)} if kept else env


def _noted(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return E2eSession.run with its result recorded, and changed if the request asks for it."""

    def noted(self: Any, command: str, *args: Any, **options: Any) -> Any:
        result = run(self, command, *args, **options)
        at = len(_notes)
        _notes.append(
            {
                "text": command,
                **_caller(),
                "exit_code": result.exit_code,
                "stdout": result.stdout.encode("utf-8", "replace").decode()[:LIMIT],
                "stderr": result.stderr.encode("utf-8", "replace").decode()[:LIMIT],
                "home": str(self.home),
                "work": str(self.work),
            }
        )
        return _bent(result) if _bend.get("command") == at else result

    return noted


def _bent(result: Any) -> Any:
    if _bend["part"] == "exit_code":
        return dataclasses.replace(result, exit_code=0 if result.exit_code else 1)
    empty = {_bend["part"]: "", f"{_bend['part']}_bytes": b""}
    return dataclasses.replace(result, **empty)


def _caller() -> dict[str, Any]:
    """Return file and line of the first frame outside the test framework."""
    frame = sys._getframe(2)
    here = os.path.dirname(sys.modules["mngr_e2e.session"].__file__ or "")
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        frame = frame.f_back
    return {"file": frame.f_code.co_filename, "line": frame.f_lineno}
