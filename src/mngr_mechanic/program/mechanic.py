"""One task from its beginning to its outcome."""

from __future__ import annotations

import os
import shutil
import tempfile

from mngr_mechanic.program import blocked, project, stale, work
from mngr_mechanic.program.clock import Clock
from mngr_mechanic.program.improve import Improver
from mngr_mechanic.program.lab import Broken, Lab
from mngr_mechanic.program.repair import Repair
from mngr_mechanic.program.reports import Result
from mngr_mechanic.program.search import Found, describe
from mngr_mechanic.program.source import Edit, Source
from mngr_mechanic.program.task import Task

FIRST_RUN = 60.0
SHORT, LONGEST = "/tmp", 40


class Mechanic:
    def __init__(self, task: Task, root: str, probe: str, clock: Clock) -> None:
        self.task, self.root, self.clock, self.probe = task, root, clock, probe
        self.base = tempfile.mkdtemp(prefix="mech-", dir=_short_place())
        self.python = ""
        self.labs: list[Lab] = []

    def close(self) -> None:
        for lab in self.labs:
            lab.discard()
        shutil.rmtree(self.base, ignore_errors=True)

    def do(self) -> work.Done:
        try:
            return self._do()
        except project.NoPytest as error:
            return _blocked("none", str(error), "pytest in the project's Python")
        except Broken as error:
            return _blocked("none", str(error)[:6000], "tests that pytest can collect")

    def _do(self) -> work.Done:
        self.python = project.interpreter(self.root)
        self.clock.say(f"tests run with {self.python}")
        lab = self._lab()
        test = self.task.test
        run = lab.run([test], seconds=self.clock.wall(FIRST_RUN))
        result = run.results.get(test)
        if result is None:
            return self._without_result(lab, run.timed_out, run.results)
        self.clock.say(f"{test}: {result.outcome}")
        result.seconds = run.seconds
        if result.outcome == "skipped":
            return work.Done("none", f"{test} is skipped here, so nothing can be said of it.")
        if result.passed:
            return self._improve(lab, result)
        if self.task.mode == "improve":
            return _blocked(
                "none",
                f"{test} fails; only a test that passes can be improved",
                "a passing test, or the task to fix it",
            )
        return self._fix(lab, result)

    def _lab(self) -> Lab:
        base = os.path.join(self.base, str(len(self.labs)))
        os.mkdir(base)
        others = self.task.other_tests
        tests = [*others, self.task.test.partition("::")[0]] if others else []
        lab = Lab(self.root, base, self.probe, self.python, tests)
        lab.command = self.task.test_command
        self.labs.append(lab)
        return lab

    def _without_result(self, lab: Lab, timed_out: bool, results: dict[str, Result]) -> work.Done:
        test = self.task.test
        if timed_out:
            return _blocked("none", f"{test} does not end within {FIRST_RUN:g} s", "a faster test")
        for result in results.values():
            module = blocked.missing_module(result, self.root)
            if module:
                return _blocked(
                    "none",
                    f"{test} cannot be collected: there is no module {module}",
                    f"the Python package {module}",
                )
            if result.failure:
                return _blocked(
                    "none",
                    f"{test} cannot be collected:\n{result.failure.message[-3000:]}",
                    "a test file that can be imported",
                )
        return _blocked("none", f"there is no test {test}", "the node id of a test that exists")

    # a test that passes

    def _improve(self, lab: Lab, result: Result) -> work.Done:
        test = self.task.test
        if self.task.mode == "fix":
            return work.Done("none", f"{test} passes; there is nothing to fix.")
        path = test.partition("::")[0]
        runs = [result]
        for _ in range(self.task.repeat - 1):
            again = lab.run([test], seconds=FIRST_RUN).results.get(test)
            if again is None or not again.passed:
                return _blocked(
                    "none",
                    f"{test} passes only sometimes",
                    "a person who understands what it depends on",
                )
            runs.append(again)
        source = Source(path, lab.read(path))
        made = Improver(lab, source, runs, self.clock).improve()
        if not made.text:
            self.clock.say(f"nothing to improve: {made.remark}")
            weak = " It passes also when its commands are not run." if made.weak else ""
            return work.Done("none", f"{test} passes and needs nothing more: {made.remark}.{weak}")
        for line in made.added:
            self.clock.say(f"  + {line}")
        name = test.rpartition("::")[2]
        listed = "\n".join(f"- {' '.join(line.split())}" for line in made.added)
        weak = "It passed also when its commands were not run. " if made.weak else ""
        summary = f"Let {name} look at what its commands do\n\n{weak}Now it also says:\n{listed}"
        work.commit(self.root, path, made.text, summary)
        return work.Done("improve", summary)

    # a test that fails

    def _fix(self, lab: Lab, result: Result) -> work.Done:
        test = self.task.test
        program = blocked.missing_program(result, self.root)
        if program:
            reason = f"{test} runs {program}, which is not installed here"
            return _blocked("none", reason, f"the program {program}")
        module = blocked.missing_module(result, self.root)
        if module:
            return _blocked("none", f"there is no module {module}", f"the Python package {module}")
        path = test.partition("::")[0]
        source = Source(path, lab.read(path))
        done = self._stale(lab, source, result)
        return done or self._repair(lab, result)

    def _stale(self, lab: Lab, source: Source, result: Result) -> "work.Done | None":
        """The block is what a test has to agree with."""
        for edit in stale.edits(source, result):
            text = edit.applied(source.text)
            lab.write(source.path, text)
            passes = all(self._fresh_passes(lab) for _ in range(self.task.repeat))
            proves = passes and not self._fresh_passes(lab, noop=True)
            lab.write(source.path, source.text)
            if proves:
                shown = describe(source, edit)
                self.clock.say(f"the test is out of date: {shown}")
                name = self.task.test.rpartition("::")[2]
                summary = (
                    f"Bring {name} up to date with its block\n\nThe block it cites says "
                    f"something else than the test did:\n{shown}"
                )
                work.commit(self.root, source.path, text, summary)
                return work.Done("fix", summary)
        return None

    def _fresh_passes(self, lab: Lab, noop: bool = False) -> bool:
        run = lab.run([self.task.test], seconds=FIRST_RUN, fresh=True, noop=noop)
        return run.passed([self.task.test])

    def _repair(self, lab: Lab, result: Result) -> work.Done:
        repair = Repair(lab, self.task, result, self.clock, self.base)
        found = repair.find(self._more_labs)
        if found.edit is None:
            return self._gave_up(found, repair)
        return self._repaired(found.edit, repair.sources[found.edit.path])

    def _more_labs(self) -> list[Lab]:
        jobs = self.task.jobs or project.idle_cores()
        return [self._lab() for _ in range(min(jobs, 4) - 1)]

    def _gave_up(self, found: Found, repair: Repair) -> work.Done:
        why = "the time limit was reached" if found.out_of_time else "none of them is correct"
        tried = f"tried {found.tried} of {repair.count} candidate repairs; {why}"
        if not repair.count:
            tried = f"found no candidate repair: {repair.why_nothing()}"
        self.clock.say(tried)
        passed = "".join(f"\n- {each}" for each in found.rejected[:10])
        rejected = f"\nThese made the test pass but are wrong:{passed}" if passed else ""
        needs = "more time" if found.out_of_time else "a manual fix"
        return _blocked("none", f"{self.task.test} fails: {tried}.{rejected}", needs)

    def _repaired(self, edit: Edit, source: Source) -> work.Done:
        shown = describe(source, edit)
        self.clock.say(f"repaired: {shown}")
        name = self.task.test.rpartition("::")[2]
        summary = (
            f"Repair {edit.path}:{edit.line} ({edit.kind})\n\n{shown}\n\nFound by trying small "
            f"changes: {name} passes with it, and no test that reaches that line breaks."
        )
        work.commit(self.root, edit.path, edit.applied(source.text), summary)
        return work.Done("fix", summary)


def _short_place() -> "str | None":
    """Sockets are made below it, whose paths may have some hundred signs and no more."""
    usable = os.access(SHORT, os.W_OK | os.X_OK)
    return SHORT if usable and len(tempfile.gettempdir()) > LONGEST else None


def _blocked(attempted: str, reason: str, needs: str) -> work.Done:
    first = reason.split("\n", 1)[0]
    return work.Done(attempted, f"Nothing was changed: {first}", reason, needs)
