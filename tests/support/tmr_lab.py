"""Verification and integration on a real repository and a real bench, without agents.

The attempts are commits, one for each way in which an agent may be right or wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mngr.api import Mngr, local_repository
from mngr.git.repository import Repo
from mngr.model.struct import Json
from mngr.settings.layers import Config
from mngr_tmr.integrate.integrate import Integration, Resolve
from mngr_tmr.journal.fold import apply
from mngr_tmr.journal.model import Baseline, Ended, Outcome, Run, Task, Try, Verdict
from mngr_tmr.run.options import Options
from mngr_tmr.run.settings import ProjectSettings
from mngr_tmr.verify.bench import Bench
from mngr_tmr.verify.checks import Check, Checked
from mngr_tmr.verify.verify import RealInspector
from tests.support import tmr_kit as kit
from tests.support.cli import Cli

ALPHA, BETA, GAMMA = (kit.Spec(name) for name in ("alpha", "beta", "gamma"))
SHARED = [kit.Spec(f"shared_{n}", f"shared {n}", f"shared works {n}") for n in (1, 2, 3)]
SPECS = [ALPHA, BETA, GAMMA, *SHARED]
FINE = "tests/test_fine.py"
FINE_SOURCE = kit.source(kit.Spec("fine"))
WORDS = "tests/test_words.py::test_words"
WORDS_SOURCE = """
from pathlib import Path


def test_words():  # the folder in two pieces: nothing but the gate knows that it is read
    words = Path(__file__).parents[1].joinpath("do" "cs", "wor" "ds.txt")
    assert words.read_text() == "these words\\n"
"""

COMMANDS = {
    **{name: kit.broken(name) for name in ("alpha", "beta", "gamma")},
    "fine": kit.mended("fine"),
    "shared": 'echo "shared is broken $1"\n',
}
Files = Mapping[str, str | None]
"""path -> what is in it; None: it is gone"""


class Remembering(Bench):
    """A bench that runs the same tests of the same files only once."""

    repo: Repo

    def check(self, check: Check) -> Checked:
        tree = self.repo.line("rev-parse", f"{check.commit}^{{tree}}")
        known = replace(check, commit=tree, keep="")
        if known not in self._known:
            self._known[known] = super().check(check)
        return self._known[known]

    @cached_property
    def _known(self) -> dict[Check, Checked]:
        return {}


class Lab:
    mutant_seconds = 20

    def __init__(self, cli: Cli, *, sandbox: bool = True) -> None:
        self.cli, self.folder = cli, cli.base / "lab"
        self.source = kit.source(*SPECS)
        self.base = self._write(cli)
        self.repo = local_repository(str(cli.repo))
        config = Config.load(str(cli.home), str(cli.repo), {}, [])
        self.project = ProjectSettings(
            pytest=kit.PYTEST, sandbox=sandbox, mutant_seconds=self.mutant_seconds
        )
        self.options = Options(repeats=1, workers=2)
        self.api = Mngr(config)
        self.bench = self._bench()
        self.plain = self._baseline()
        self.verdicts: dict[str, Verdict] = {}
        self.gates: list[Mapping[str, Any]] = []
        """What the last integration's gates said."""

    def _bench(self) -> Bench:
        repo, options = str(self.cli.repo), replace(self.options)
        if not self.project.sandbox:  # tests that leave marks have other results the next time
            return Bench(self.api, repo, "lab", self.folder, self.project, options)
        bench = Remembering(self.api, repo, "lab", self.folder, self.project, options)
        bench.repo = self.repo
        return bench

    def _write(self, cli: Cli) -> str:
        files = {kit.FILE: self.source, FINE: FINE_SOURCE, "NOTES.md": "notes\n"}
        files |= {"tests/test_words.py": WORDS_SOURCE, "docs/words.txt": "these words\n"}
        return kit.write(cli, COMMANDS, files)

    def _baseline(self) -> Run:
        run = self.new_run("plain")
        checked = self.bench.check(Check("baseline", self.base))
        run.tests = checked.tests
        run.baseline = {node: Baseline((each,)) for node, each in checked.runs.items()}
        return run

    def new_run(self, name: str) -> Run:
        run = Run(name=name, repository=str(self.cli.repo), base=self.base, options=self.options)
        if hasattr(self, "plain"):
            run.tests, run.baseline = self.plain.tests, self.plain.baseline
        return run

    # attempts

    def commit(self, files: Files, base: str = "") -> str:
        self.cli.git("checkout", "-q", "--force", "--detach", base or self.base)
        for path, text in files.items():
            if text is None:
                (self.cli.repo / path).unlink()
            else:
                self.cli.write(path, text)
        return self.cli.commit("Work")

    def task(self, node_id: str, head: str, *, name: str = "", base: str = "") -> Task:
        """Return a task with an attempt that ended with this commit."""
        standing = self.plain.baseline[node_id].standing
        id = name or node_id.rpartition("test_")[2]
        ended = Ended(Outcome.FIXED, head=head, ref="refs/x", summary=f"Mended {id}")
        each = Try(1, f"tmr-lab-{id}-1", base or self.base, 0.0, ended=ended)
        return Task(id, node_id, "fix" if standing == "failed" else "improve", tries=[each])

    def attempt(self, node_id: str, files: Files, *, name: str = "", base: str = "") -> Task:
        """Return the same for these files, with its verdict."""
        task = self.task(node_id, self.commit(files, base), name=name, base=base)
        self.verify(task)
        return task

    def verify(self, task: Task, run: Run | None = None) -> Verdict:
        inspector = RealInspector(
            run or self.plain, self.repo, self.bench, self.project, self.folder / "scratch"
        )
        assert task.latest is not None
        task.latest.verdict = inspector.verify(task, task.latest)
        return task.latest.verdict

    # the branch

    def integrate(
        self,
        name: str,
        tasks: Sequence[Task],
        resolve: Resolve | None = None,
        known: Run | None = None,
        *,
        include_flagged: bool = False,
    ) -> Run:
        """Integrate; `known` is an earlier integration, whose gates are reused."""
        run = self.new_run(name)
        run.options = replace(run.options, include_flagged=include_flagged)
        run.gates = known.gates if known else {}
        run.tasks = {task.id: task for task in tasks}
        self.gates = []

        def note(type: str, fields: Mapping[str, Json]) -> None:
            apply(run, {"type": type, "time": 0.0, **fields})
            self.gates += [fields] if type == "gated" else []

        scratch = self.folder / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        nobody: Resolve = lambda tree, base, part, paths: ""  # noqa: E731
        Integration(run, self.repo, self.bench, scratch, note, resolve or nobody).integrate()
        return run

    def failing(self, commit: str, tests: Sequence[str]) -> list[str]:
        checked = self.bench.check(Check("look", commit, tuple(tests)))
        assert not checked.errors
        return [each for each in tests if checked.outcome(each) != "passed"]

    def passing_before(self) -> list[str]:
        return [n for n, each in self.plain.baseline.items() if each.standing == "passed"]

    def close(self) -> None:
        self.bench.close()
        self.cli.close()


def lab_in(folder: Path, *, sandbox: bool = True) -> Lab:
    """Return a lab; without a sandbox, tests can leave marks outside of their checkout."""
    cli = Cli(folder)
    try:
        return Lab(cli, sandbox=sandbox)
    except BaseException:
        cli.close()
        raise
