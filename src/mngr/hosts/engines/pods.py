"""Parse the state of a pod."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from mngr.hosts.engines import holding
from mngr.model.struct import Json, Struct

REASONS = {
    "DeadlineExceeded": "reached its activeDeadlineSeconds",
    "Evicted": "evicted by its node",
    "NodeLost": "its node is lost",
    "Preempting": "preempted",
    "Shutdown": "its node was shut down",
    "OOMKilled": "out of memory",
}
WATCHING = ("--watch", "--output-watch-events", "-o", "json")
WAITING = ("", "ContainerCreating", "PodInitializing")
"""Reasons why a container has not started yet but will; any other reason requires the user."""


RPC = r"rpc error: code = \w+ desc = "


class Pod(Struct):
    """The current state of one pod."""

    name: str
    tags: dict[str, str]
    """Its annotations and labels."""
    running: bool
    """Whether it runs or may still start; False if it is being deleted."""
    ready: bool = False
    reason: str = ""
    """Why it has ended, or is not ready yet."""
    hopeless: bool = False
    """Whether it will never become ready."""
    ended: bool = False
    """Whether it was deleted and nothing runs in it, though its node may keep it for a minute."""


class Watch:
    """Parses the output of `kubectl get pod` with WATCHING, one event per line."""

    def __init__(self, waiting: Callable[[str], None] | None = None) -> None:
        self._held, self._waiting = b"", waiting
        self.pod: Pod | None = None
        self.errors = b""

    def __call__(self, stream: int, chunk: bytes) -> None:
        if stream == 2:
            self.errors += chunk
        else:
            *whole, self._held = (self._held + chunk).split(b"\n")
            for each in whole:
                self.pod = self._event(json.loads(each))
            stuck = self.pod and not self.decided() and self.pod.reason not in WAITING
            if self._waiting and self.pod and stuck:
                self._waiting(self.pod.reason)

    def _event(self, told: dict[str, Json]) -> Pod:
        pod = parse(told["object"])
        if told["type"] == "DELETED":
            return pod.replace(
                running=False, ready=False, hopeless=True, ended=True, reason="it was deleted"
            )
        return pod

    def decided(self) -> bool:
        return self.pod is not None and (self.pod.ready or self.pod.hopeless)

    def ended(self) -> bool:
        return self.pod is not None and self.pod.ended


def parse(told: Json) -> Pod:
    waiting = _first(told, "waiting")
    phase = _text(told, "status", "phase")
    leaving = bool(_text(told, "metadata", "deletionTimestamp"))
    running = phase in ("Running", "Pending") and not leaving
    return Pod(
        name=_text(told, "metadata", "name"),
        tags={**_strings(told, "annotations"), **_strings(told, "labels")},
        running=running,
        ready=any(_text(each, "type") == "Ready" and _text(each, "status") == "True"
                  for each in _list(told, "status", "conditions")),
        reason=_pending(told, waiting) if running else _ended(told, phase),
        hopeless=not running or _text(waiting, "reason") not in WAITING,
        ended=leaving and _first(told, "running") is None,
    )  # fmt: skip


def _pending(told: Json, waiting: Json) -> str:
    refused = [
        each
        for each in _list(told, "status", "conditions")
        if _text(each, "type") == "PodScheduled" and _text(each, "status") == "False"
    ]
    for each in (waiting, *refused):
        said = [_text(each, key) for key in ("reason", "message")]
        if any(said):
            return re.sub(RPC, "", " ".join(": ".join(filter(None, said)).split()))
    return ""


def _ended(told: Json, phase: str) -> str:
    """Return the reason from the first process's exit code, or from the cluster."""
    ended = _first(told, "terminated")
    code = _get(ended, "exitCode")
    told_by_code = holding.ended(code) if isinstance(code, int) else ""
    if phase in ("Running", "Pending"):
        return told_by_code or "it is being deleted"
    names = (_text(told, "status", "reason"), _text(ended, "reason"))
    known = next((REASONS[name] for name in names if name in REASONS), "")
    return told_by_code or known or (names[0] or phase).lower()


def _first(told: Json, state: str) -> Json:
    """Return that state of the pod's only container."""
    for each in _list(told, "status", "containerStatuses"):
        return _get(each, "state", state)
    return None


def _get(value: Json, *path: str) -> Json:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: Json, *path: str) -> str:
    return str(_get(value, *path) or "")


def _list(value: Json, *path: str) -> list[Json]:
    found = _get(value, *path)
    return found if isinstance(found, list) else []


def _strings(told: Json, key: str) -> dict[str, str]:
    found = _get(told, "metadata", key)
    return {k: str(v) for k, v in found.items()} if isinstance(found, dict) else {}
