"""Write the report of a run: a folder of static pages that can be opened from disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from time import monotonic

from mngr.errors import Refused
from mngr_e2e.artifacts import slug
from mngr_tmr.journal.model import Pick, Task, Try
from mngr_view import artifacts, player, summary, testing
from mngr_view.markup import asset, decoded, diff, el, link, page, pre
from mngr_view.reading import Reading
from mngr_view.repository import RunRepository
from mngr_view.sections import agents, evidence
from mngr_view.view import View, log_name

EVERY = 5.0
"""Seconds between two reports of a run in progress."""
SHARE = 0.05
"""Maximum share of time spent on writing reports."""
MARK = ".mngr-report"


def write(folder: Path, out: Path) -> Path:
    """Write the report and return its first page."""
    return Report(folder, out).update()


class Folder:
    """The folder of a report. Files appear by rename, and unchanged files are left alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = 0
        """Number of files written so far, without unchanged ones."""
        self._made: set[str] = set()

    def open(self) -> None:
        """Refuse a folder that has other files in it."""
        if self.path.is_dir() and any(self.path.iterdir()) and not (self.path / MARK).exists():
            raise Refused(f"{self.path} is not empty and not a report", "choose a new directory")
        self.path.mkdir(parents=True, exist_ok=True)
        self.file(MARK, b"")

    def page(self, name: str, text: str) -> Path:
        return self.file(name, text.encode("utf-8", "replace"))

    def file(self, name: str, data: bytes) -> Path:
        target = self.path / name
        if self._holds(target, data):
            return target
        self._make(target.parent)
        fresh = target.with_name(f".{target.name[:100]}.{os.getpid()}")
        fresh.write_bytes(data)
        fresh.replace(target)
        self.written += 1
        return target

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def _holds(self, target: Path, data: bytes) -> bool:
        try:
            return target.stat().st_size == len(data) and target.read_bytes() == data
        except OSError:
            return False

    def _make(self, parent: Path) -> None:
        if str(parent) not in self._made:
            parent.mkdir(parents=True, exist_ok=True)
            self._made.add(str(parent))


class Report:
    """Writes the report of a run, repeatedly while the run is in progress."""

    def __init__(self, folder: Path, out: Path) -> None:
        self.folder = Folder(out)
        self._reading = Reading(folder)
        self._repository: RunRepository | None = None
        self._logs: set[str] = set()
        self._plays = player.is_installed()
        self._first = True

    def update(self) -> Path:
        """Read new events, write the pages that change, and return the first page."""
        if self._first:
            self._open()
        touched = self._reading.advance()
        view = self._view()
        tests = self._stale(view, touched)
        view.repository.fetch(_pairs(view, tests))
        for node_id in tests:
            self._test(view, node_id)
        for pick in view.run.picks:
            if not self.folder.has(_commit_name(pick)):
                self.folder.page(_commit_name(pick), commit_page(view, pick))
        # Last, so that the pages it links to exist.
        text = summary.index(view)
        self._write_logs(view)
        self._first = False
        return self.folder.page("index.html", text)

    def _open(self) -> None:
        self.folder.open()
        for name in ("style.css", "page.js"):
            self.folder.file(name, asset(name))

    def _view(self) -> View:
        if self._repository is None and self._reading.run.repository:
            self._repository = RunRepository(self._reading.run.repository)
        repository = self._repository or RunRepository("")
        return View(self._reading, repository, self._plays, self._reading.at_work)

    def _stale(self, view: View, touched: set[str] | None) -> list[str]:
        if touched is None or self._first:
            return list(dict.fromkeys([*view.run.tests, *view.by_node]))
        return [view.run.tasks[each].node_id for each in touched if each in view.run.tasks]

    def _test(self, view: View, node_id: str) -> None:
        task = view.by_node.get(node_id)
        if task is not None:
            for each in task.tries:
                self._casts(view, task, each)
        self.folder.page(f"tests/{slug(node_id)}.html", testing.test_page(view, node_id))

    def _casts(self, view: View, task: Task, each: Try) -> None:
        for name, run in testing.recordings(view, task, each)[0]:
            for cast, path in testing.cast_names(name, run):
                self._cast(cast, path)

    def _cast(self, name: str, path: Path) -> None:
        data = artifacts.content(path)
        self.folder.file(f"casts/{name}.cast", data)
        if self._plays:
            player.install(self.folder)
            text = player.player_page(path.name, decoded(data), f"{name}.cast")
            self.folder.page(f"casts/{name}.html", text)

    def _write_logs(self, view: View) -> None:
        """Write the logs that pages link to. A log never changes."""
        for log in sorted(view.logs - self._logs):
            self._logs.add(log)
            name = f"logs/{log_name(log)}"
            if not self.folder.has(name):
                text = decoded(artifacts.content(view.source / log))
                self.folder.page(name, page(log, el("h1", log), pre(text, 500_000), up="../"))


def _commit_name(pick: Pick) -> str:
    return f"commits/{pick.commit}.html"


def _pairs(view: View, tests: Iterable[str]) -> list[tuple[str, str]]:
    tries = [each for node in tests if node in view.by_node for each in view.by_node[node].tries]
    return [pair for each in tries for pair in testing.verified(each)]


def commit_page(view: View, pick: Pick) -> str:
    tasks = view.run.tasks_of(pick)
    return page(
        pick.subject,
        el("p", link(f"← {view.run.name}", "..", "index.html"), class_="nav"),
        el("h1", pick.subject),
        el("p", el("code", pick.commit), f" · {agents(tasks)}", class_="meta"),
        el("p", "To revert it: ", el("code", f"git revert {pick.commit[:12]}"), class_="meta"),
        evidence(view, pick, "../"),
        diff(view.repository.diff(view.parent(pick), pick.commit), 20_000),
        up="../",
    )


class Live:
    """Updates the report of a run in progress, for a small share of its time."""

    def __init__(self, folder: Path, out: Path) -> None:
        self._report = Report(folder, out)
        self._next = 0.0
        self.problem = ""
        """Why the report could not be written, if it could not."""

    def show(self) -> None:
        began = monotonic()
        if began < self._next:
            return
        try:
            self._report.update()
        except Exception as error:  # a failure to write the report must not end the run
            self.problem = f"{type(error).__name__}: {error}"
        took = monotonic() - began
        self._next = began + took + max(EVERY, took / SHARE)
