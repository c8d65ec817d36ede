"""One task from its beginning to its outcome."""

from __future__ import annotations

import os
import shutil
import tempfile

from mngr_mechanic.program import blocked, project, stale, work
from mngr_mechanic.program.clock import Stopwatch
from mngr_mechanic.program.improve import SECONDS, Improver
from mngr_mechanic.program.lab import Broken, Lab
from mngr_mechanic.program.repair import Repairer
from mngr_mechanic.program.reports import Result
from mngr_mechanic.program.search import describe
from mngr_mechanic.program.source import SourceFile
from mngr_mechanic.program.task import Assignment

SHORT, LONGEST = "/tmp", 40


class Mechanic:
    def __init__(self, task: Assignment, root: str, probe: str, clock: Stopwatch) -> None:
        self.task, self.root, self.clock, self.probe = task, root, clock, probe
        self.base = tempfile.mkdtemp(prefix="mech-", dir=_short_place())
        self.python = ""
        self.labs: list[Lab] = []
        self.file, _, rest = task.test.partition("::")
        self.is_python = self.file.endswith(".py")
        self.name = rest.rpartition("::")[2]

    def close(self) -> None:
        for lab in self.labs:
            lab.discard()
        shutil.rmtree(self.base, ignore_errors=True)

    def do(self) -> work.Done:
        try:
            return self._do()
        except project.NoPytest as error:
            return _blocked(str(error), "pytest in the project's Python")
        except Broken as error:
            return _blocked(str(error)[:6000], "tests that pytest can collect")

    def _do(self) -> work.Done:
        self.python = project.interpreter(self.root, self.task.python)
        self.clock.say(f"tests run with {self.python}")
        lab, test = self._lab(), self.task.test
        run = lab.run([test], seconds=self.clock.wall(SECONDS))
        result = run.results.get(test)
        if result is None:
            return self._without_result(run.timed_out, run.results)
        self.clock.say(f"{test}: {result.outcome}")
        result.seconds = run.seconds
        if result.outcome == "skipped":
            return work.Done("none", f"{test} is skipped here, so it cannot be checked.")
        if result.passed:
            return self._improve(lab, result)
        if self.task.mode == "improve":
            reason = f"{test} fails; only a test that passes can be improved"
            return _blocked(reason, "a passing test, or the task to fix it")
        return self._missing(result) or self._stale(lab, result) or self._repair(lab, result)

    def _lab(self) -> Lab:
        base = os.path.join(self.base, str(len(self.labs)))
        os.mkdir(base)
        others = self.task.other_tests
        settings = project.own_settings(self.root, self.file)
        tests = [*others, self.file] if others else [os.path.dirname(settings)] if settings else []
        lab = Lab(self.root, base, self.probe, self.python, tests)
        lab.settings = settings
        lab.command = self.task.test_command
        self.labs.append(lab)
        return lab

    def _without_result(self, timed_out: bool, results: dict[str, Result]) -> work.Done:
        test = self.task.test
        if timed_out:
            return _blocked(f"{test} does not end within {SECONDS:g} s", "a faster test")
        for result in results.values():
            module = blocked.missing_module(result, self.root)
            if module:
                reason = f"{test} cannot be collected: there is no module {module}"
                return _blocked(reason, "its Python package")
            if result.failure:
                reason = f"{test} cannot be collected:\n{result.failure.message[-3000:]}"
                return _blocked(reason, "a test file that can be imported")
        return _blocked(f"there is no test {test}", "the node id of a test that exists")

    def _committed(self, attempted: str, path: str, text: str, summary: str) -> work.Done:
        work.commit(self.root, path, text, summary)
        return work.Done(attempted, summary)

    # passing test

    def _improve(self, lab: Lab, result: Result) -> work.Done:
        test = self.task.test
        if self.task.mode == "fix" or not self.is_python:
            return work.Done("none", f"{test} passes; there is nothing to fix.")
        runs = [result]
        for _ in range(self.task.repeat - 1):
            again = lab.run([test], seconds=SECONDS).results.get(test)
            if again is None or not again.passed:
                needs = "a manual fix of its flakiness"
                return _blocked(f"{test} is flaky", needs, no_fix=True)
            runs.append(again)
        made = Improver(lab, SourceFile(self.file, lab.read(self.file)), runs, self.clock).improve()
        if not made.text:
            self.clock.say(f"nothing to improve: {made.remark}")
            weak = " It also passes if its commands do nothing." if made.weak else ""
            return work.Done("none", f"{test} passes and requires no change: {made.remark}.{weak}")
        for line in made.added:
            self.clock.say(f"  + {line}")
        listed = "\n".join(f"- {' '.join(line.split())}" for line in made.added)
        weak = "It also passed when its commands did nothing. " if made.weak else ""
        summary = f"Add assertions to {self.name}\n\n{weak}Added:\n{listed}"
        return self._committed("improve", self.file, made.text, summary)

    # failing test

    def _missing(self, result: Result) -> "work.Done | None":
        program = blocked.missing_program(result, self.root)
        if program:
            reason = f"the test runs {program}, which is not installed here"
            return _blocked(reason, "its installation")
        module = blocked.missing_module(result, self.root)
        if module:
            return _blocked(f"there is no module {module}", "its Python package")
        return None

    def _stale(self, lab: Lab, result: Result) -> "work.Done | None":
        """Update the test, if the block that it cites contradicts it."""
        if not self.is_python:
            return None
        source = SourceFile(self.file, lab.read(self.file))
        for edit in stale.edits(source, result):
            text = edit.applied(source.text)
            lab.write(source.path, text)
            passes = all(lab.passes_anew(self.task.test) for _ in range(self.task.repeat))
            proves = passes and not lab.passes_anew(self.task.test, noop=True)
            lab.write(source.path, source.text)
            if proves:
                shown = describe(source, edit)
                self.clock.say(f"the test is outdated: {shown}")
                summary = (
                    f"Update {self.name} to match its tutorial block\n\n"
                    f"The block that it cites contradicts the test:\n{shown}"
                )
                return self._committed("fix", source.path, text, summary)
        return None

    def _repair(self, lab: Lab, result: Result) -> work.Done:
        repair = Repairer(lab, self.task, result, self.clock)
        found = repair.find(self._more_labs)
        edit = found.edit
        if edit is not None:
            source = repair.sources[edit.path]
            shown = describe(source, edit)
            self.clock.say(f"repaired: {shown}")
            summary = (
                f"Fix {edit.path}:{edit.line} ({edit.kind})\n\n{shown}\n\nFound by trying small "
                f"edits: {self.name} passes with it, and no test that runs that line breaks."
            )
            return self._committed("fix", edit.path, edit.applied(source.text), summary)
        why = "the time limit was reached" if found.out_of_time else "none of them is correct"
        tried = f"tried {found.tried} of {repair.count} candidate repairs; {why}"
        if not repair.count:
            tried = f"found no candidate repair: {repair.why_nothing()}"
        self.clock.say(tried)
        passed = "".join(f"\n- {each}" for each in found.rejected[:10])
        rejected = f"\nThese made the test pass but are wrong:{passed}" if passed else ""
        needs = "more time" if found.out_of_time else "a manual fix"
        return _blocked(f"{tried}{rejected}", needs, no_fix=True)

    def _more_labs(self) -> list[Lab]:
        jobs = self.task.jobs or project.idle_cores()
        return [self._lab() for _ in range(min(jobs, 4) - 1)]


def _short_place() -> "str | None":
    """Return a short folder for sockets, whose paths may have about a hundred characters."""
    usable = os.access(SHORT, os.W_OK | os.X_OK)
    return SHORT if usable and len(tempfile.gettempdir()) > LONGEST else None


def _blocked(reason: str, needs: str, *, no_fix: bool = False) -> work.Done:
    first = reason.split("\n", 1)[0]
    return work.Done("none", f"Nothing was changed: {first}", reason, needs, no_fix)
