"""A run at one moment, with the lookups and links that pages share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from mngr_e2e.artifacts import slug
from mngr_tmr.cli import progress
from mngr_tmr.journal.model import Eviction, Pick, Run, Task
from mngr_tmr.journal.proofs import Proof
from mngr_tmr.run import publishing
from mngr_tmr.run.signatures import normalise
from mngr_tmr.run.words import reason_of, result_of
from mngr_view.markup import Html, el, link, shortened, table
from mngr_view.reading import Reading
from mngr_view.repository import RunRepository


@dataclass
class View:
    reading: Reading
    repository: RunRepository
    plays: bool
    """Whether recordings can be played."""
    at_work: bool = True
    logs: set[str] = field(default_factory=set)
    """Logs that pages link to."""

    @property
    def run(self) -> Run:
        return self.reading.run

    @property
    def source(self) -> Path:
        return self.reading.folder

    @property
    def stage(self) -> str:
        if self.run.status:
            return self.run.status
        if not self.at_work:
            return "interrupted"
        return publishing.paused_in_words(self.run) or progress.stage(self.run)

    @cached_property
    def by_node(self) -> dict[str, Task]:
        return {task.node_id: task for task in self.run.tasks.values()}

    @cached_property
    def picks(self) -> dict[str, list[Pick]]:
        found: dict[str, list[Pick]] = {}
        for pick in self.run.picks:
            for task in pick.tasks:
                found.setdefault(task, []).append(pick)
        return found

    @cached_property
    def evictions(self) -> dict[str, list[Eviction]]:
        found: dict[str, list[Eviction]] = {}
        for each in self.run.evictions:
            found.setdefault(each.task, []).append(each)
        return found

    @property
    def repairs(self) -> list[Pick]:
        return [pick for pick in self.run.picks if pick.kind == "implementation"]

    def parent(self, pick: Pick) -> str:
        """Return the commit before this one on the branch."""
        at = self.run.picks.index(pick)
        return self.run.picks[at - 1].commit if at else self.run.base

    # addresses

    def test_link(self, node_id: str, up: str = "") -> Html | str:
        known = node_id in self.run.tests or node_id in self.by_node
        return link(node_id, *_up(up), "tests", f"{slug(node_id)}.html") if known else node_id

    def task_link(self, task_id: str, up: str = "") -> Html | str:
        task = self.run.tasks.get(task_id)
        return self.test_link(task.node_id, up) if task else task_id

    def commit_link(self, pick: Pick, up: str = "") -> Html:
        return link(pick.commit[:12], *_up(up), "commits", f"{pick.commit}.html")

    def log_link(self, proof: Proof, up: str) -> Html | str:
        if not proof.log or not (self.source / proof.log).is_file():
            return ""
        self.logs.add(proof.log)
        return link("log", *_up(up), "logs", log_name(proof.log))

    def evidence(self, proofs: tuple[Proof, ...], up: str) -> Html:
        rows = [
            (
                proof.what,
                el("code", shortened(proof.command, 300)),
                result(proof),
                el("span", proof.commit[:12], class_="whole"),
                el("span", self.log_link(proof, up), class_="whole"),
            )
            for proof in proofs
        ]
        return table(("Check", "Command", "Result", "Commit", ""), rows)


def result(proof: Proof) -> Html:
    """Return the result of a check; an expected failure is not red."""
    mood = "good" if proof.exit_code == 0 else "bad"
    return el("span", result_of(proof), class_=f"badge {'quiet' if proof.may_fail else mood}")


def exit_code(number: int) -> Html:
    return el("span", number, class_=f"badge {'good' if number == 0 else 'bad'}")


def _up(up: str) -> list[str]:
    return [each for each in up.split("/") if each]


def log_name(log: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", log.removeprefix("checks/")) + ".html"


def kind_of(task: Task, ending: str) -> str:
    """Return a text that is the same for results with the same reason, apart from numbers."""
    return f"{ending}: {normalise(reason_of(task))[:200]}"
