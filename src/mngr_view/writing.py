"""Write the report of a run: one static folder that opens from disk.

A `Report` may be asked again and again while the run goes on: it reads what is new in the journal
and writes the pages that this changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from time import monotonic

from mngr_e2e.artifacts import slug
from mngr_tmr.journal.model import Pick, Task, Try
from mngr_view import artifacts, player, summary, testing
from mngr_view.folder import Folder
from mngr_view.layout import asset, page
from mngr_view.markup import decoded, diff, el, link, pre
from mngr_view.reading import Reading
from mngr_view.repository import Repository
from mngr_view.sections import agents, evidence
from mngr_view.view import View, log_name

EVERY = 5.0
"""Seconds between two reports of a run that goes on."""
SHARE = 0.05
"""At most so much of the time goes into them."""


def write(folder: Path, out: Path) -> Path:
    """The page to open."""
    return Report(folder, out).update()


class Report:
    def __init__(self, folder: Path, out: Path) -> None:
        self.folder = Folder(out)
        self._reading = Reading(folder)
        self._repository: Repository | None = None
        self._logs: set[str] = set()
        self._plays = player.is_installed()
        self._first = True

    def update(self) -> Path:
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
        # Last, so that whatever it links to is there.
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
            self._repository = Repository(self._reading.run.repository)
        repository = self._repository or Repository("")
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
        """A log never changes once it is there."""
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
    tasks = [view.run.tasks[each] for each in pick.tasks if each in view.run.tasks]
    return page(
        pick.subject,
        el("p", link(f"← {view.run.name}", "..", "index.html"), class_="nav"),
        el("h1", pick.subject),
        el("p", el("code", pick.commit), f" · {agents(tasks)}", class_="meta"),
        el("p", "Take it back with ", el("code", f"git revert {pick.commit[:12]}"), class_="meta"),
        evidence(view, pick, "../"),
        diff(view.repository.diff(view.parent(pick), pick.commit), 20_000),
        up="../",
    )


class Live:
    """Keeps the report of a run at work up to date, for a small share of its time."""

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
        except Exception as error:  # a hundred agents do not stop for want of a page
            self.problem = f"{type(error).__name__}: {error}"
        took = monotonic() - began
        self._next = began + took + max(EVERY, took / SHARE)
