"""Agents that end at the same time are stopped in one visit: alone, each costs as much as ten."""

from __future__ import annotations

import threading

from mngr.api import Agent, Mngr


class Stopper:
    """Who comes while a visit is under way waits for the next, which is for all that wait."""

    def __init__(self, api: Mngr) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._visit = threading.Lock()
        self._waiting: list[Agent] = []
        self._failed: dict[str, Exception] = {}

    def stop(self, agent: Agent) -> None:
        """Returns when it is stopped."""
        with self._lock:
            self._waiting.append(agent)
        with self._visit:
            with self._lock:
                chosen, self._waiting = self._waiting, []
            if chosen:
                self._stop(chosen)
            failure = self._failed.pop(agent.id, None)
        if failure is not None:
            raise failure

    def _stop(self, chosen: list[Agent]) -> None:
        """As they stand now: of one that has ended meanwhile nothing is recorded."""
        try:
            self._api.stop_many(self._api.list([each.id for each in chosen]))
        except Exception as error:  # raised again by the thread that waits
            if len(chosen) == 1:
                self._failed[chosen[0].id] = error
                return
            for each in chosen:  # one that cannot be stopped is no other's failure
                self._stop([each])
