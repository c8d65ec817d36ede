"""The bench: a few agents without a program, which run checks, each in a fresh clone.

The code that runs there comes from agents. It gets neither the user's home nor their environment.
"""

from __future__ import annotations

import json
import os
import queue
import shlex
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from mngr.api import Agent, CreateRequest, Mngr, git_settings, local_repository, sandbox_script
from mngr.errors import MngrError, TimedOut
from mngr_tmr.dispatch.artifacts import ARTIFACTS, unpack
from mngr_tmr.journal.proofs import Proof
from mngr_tmr.probes import reports, sources
from mngr_tmr.run import runs
from mngr_tmr.run.options import Options
from mngr_tmr.run.settings import ProjectSettings, pytest_command
from mngr_tmr.verify import checkout
from mngr_tmr.verify.attempts import attempted
from mngr_tmr.verify.checkout import Interpreter, Room, Surroundings
from mngr_tmr.verify.checks import TIMED_OUT, Check, Checked, shards

NOOP = "MNGR_E2E_NOOP"


@dataclass(frozen=True)
class BenchWorker:
    """An agent of the bench, and what its host offers."""

    agent: Agent
    place: Surroundings
    commits: set[str] = field(default_factory=set)
    """Commits that are known to be there. Code in a sandbox cannot remove any."""


class Bench:
    """A pool of workers. `check` may be called from many threads."""

    def __init__(
        self,
        api: Mngr,
        repository: str,
        run: str,
        folder: Path,
        project: ProjectSettings,
        options: Options,
        address: Callable[[str], str] = str,
    ) -> None:
        self._address = address
        self._api, self._repository, self._run = api, repository, run
        self._folder, self._project, self._options = folder, project, options
        self._pytest = pytest_command(project, repository, options.provider)
        self._free: queue.Queue[BenchWorker] = queue.Queue()
        self._made: list[BenchWorker] = []
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._python: Interpreter | None = None
        self._number = 0
        self._closed = threading.Event()

    # workers

    @contextmanager
    def _worker(self, commit: str) -> Iterator[BenchWorker]:
        worker = self._take(commit)
        try:
            yield worker
        finally:
            self._free.put(worker)

    def _take(self, commit: str) -> BenchWorker:
        if self._closed.is_set():
            raise MngrError("the checks were stopped")
        with suppress(queue.Empty):
            return self._free.get_nowait()
        with self._lock:
            number = len(self._made) + 1
            if self._closed.is_set():
                raise MngrError("the checks were stopped")
            if number <= max(1, self._options.workers):
                worker = self._make(number, commit)
                self._made.append(worker)
                return worker
        return self._free.get()

    def _make(self, number: int, commit: str) -> BenchWorker:
        name = f"tmr-{self._run}-bench-{number}"
        request = CreateRequest(
            address=self._address(name),
            provider=self._options.provider,
            type="command",
            args=("tail", "-f", "/dev/null"),
            source=self._repository,
            transfer="git-mirror",
            branch=f"{commit}:mngr/{name}",
            committed_only=True,
            labels={"tmr": self._run, "role": "bench"},
        )
        agent = self._api.create(request).agent
        place = Surroundings.of(self._api.exec(agent, checkout.LOOK, timeout=60).stdout)
        if not self._project.sandbox:
            place = replace(place, bare="the project disables it")
        return BenchWorker(agent, place)

    def sweep(self) -> None:
        """Destroy the workers that a killed process left, with their checks."""
        self._destroy(runs.agents(self._api, self._run, "bench"))

    def close(self) -> None:
        """Destroy all workers; their checks are stopped."""
        with self._lock:
            self._closed.set()
            made, self._made = self._made, []
        self._destroy([worker.agent for worker in made])

    def _destroy(self, agents: Sequence[Agent]) -> None:
        if agents:
            destroy = self._api.destroy_many(agents, drop_branch=True)
            for agent in agents:
                destroy(agent)
                words = ["sh", "-c", checkout.SWEEP, "mngr", _temporary(agent)]
                with suppress(MngrError, OSError):
                    self._api.run_beside(agent, words, timeout=60)

    # properties of the project, read once

    @cached_property
    def _gitconfig(self) -> bytes:
        """Return the user's git settings that affect how files are written."""
        found = git_settings(local_repository(self._repository))
        return checkout.git_config(found).encode("utf-8", "surrogateescape")

    def modules(self) -> frozenset[str]:
        """Return the top-level modules that are installed where the tests run."""
        head = local_repository(self._repository).line("rev-parse", "HEAD")

        def ask() -> frozenset[str]:
            with self._worker(head) as worker:
                return self._interpreter(worker.agent).modules

        return attempted(ask, bool, self._closed.wait)

    def _interpreter(self, agent: Agent) -> Interpreter:
        with self._asking:
            if self._python is None:
                self._python = self._asked(agent)
            return self._python

    def _asked(self, agent: Agent) -> Interpreter:
        own = _own(agent)
        [(name, data)] = sources(["survey"]).items()
        self._api.put(agent, {f"{own}/{name}": (data, 0o600)})
        words = ["env", f"MNGR_TMR_REPOSITORY={self._repository}", "sh", "-c", checkout.ASK]
        done = self._api.exec(agent, [*words, "mngr", self._pytest, own], timeout=120)
        return Interpreter.of(done.stdout)

    # checks

    def check(self, check: Check) -> Checked:
        def is_valid(checked: Checked) -> bool:
            return not checked.infrastructure

        return attempted(lambda: self._check_once(check), is_valid, self._closed.wait)

    def _check_once(self, check: Check) -> Checked:
        with self._worker(check.commit) as worker:
            if worker.place.bare or check.commit not in worker.commits:
                self._api.deliver(worker.agent, check.commit, cwd=self._repository)
                worker.commits.add(check.commit)
            return self._checked(worker, check)

    def check_all(
        self,
        what: str,
        commit: str,
        tests: Sequence[str],
        *,
        noop: bool = False,
        traced: bool = False,
    ) -> list[Checked]:
        """Run checks of these tests on all workers; the tests of a file stay together."""
        parts = shards(tests, max(1, self._options.workers))
        checks = [Check(what, commit, shard, noop, traced=traced) for shard in parts]
        with ThreadPoolExecutor(max_workers=max(1, len(checks))) as pool:
            try:
                return list(pool.map(self.check, checks))
            except (KeyboardInterrupt, SystemExit):
                self.close()  # otherwise this would wait for the checks
                raise

    def _checked(self, worker: BenchWorker, check: Check) -> Checked:
        agent, own, nonce = worker.agent, _own(worker.agent), os.urandom(16).hex()
        self._api.put(agent, self._files(worker, check, own))
        arguments = self._arguments(check)
        words = [own, check.commit, agent.record.work_dir, f"{_temporary(agent)}{own[-6:]}"]
        words += [check.keep, self._project.setup, self._pytest, *arguments]
        over = False
        try:
            done = self._api.exec(
                agent,
                ["sh", "-c", checkout.CHECK, "mngr", *words],
                timeout=float(self._project.check_timeout),
                input=checkout.orders(nonce, check.tests, {NOOP: "1"} if check.noop else {}),
            )
            over = not check.keep
            self._refuse_broken(check, done.exit_code, done.stderr)
            if check.keep:
                self._keep(agent, f"{own}/work", self._folder / check.keep)
            told = (done.exit_code, done.stdout, done.stderr)
        except TimedOut:
            told = (TIMED_OUT, b"", b"timed out")
        finally:
            if not over:
                self._remove(agent, own)
        if self._closed.is_set():  # pytest was stopped as well, so its results are not valid
            raise MngrError("the check was stopped")
        return self._kept(worker, check, arguments, nonce, *told)

    def _files(self, worker: BenchWorker, check: Check, own: str) -> dict[str, tuple[bytes, int]]:
        files = {f"plug/{name}": data for name, data in sources(self._plugins(check)).items()}
        files["gitconfig"] = self._gitconfig
        if check.mutants:
            files["plug/mutants.json"] = json.dumps(check.mutants).encode()
        if not worker.place.bare:
            agent, python = worker.agent, self._interpreter(worker.agent)
            here = self._repository if agent.shares_files else ""
            room = Room(own, agent.host_home, f"{agent.folder}/env", here)
            box = checkout.sandbox(room, worker.place, python, self._project)
            files["box"] = sandbox_script(box).encode("utf-8", "surrogateescape")
        return {f"{own}/{name}": (data, 0o600) for name, data in files.items()}

    def _plugins(self, check: Check) -> list[str]:
        """Return the plugins for pytest; each beside the probe costs time."""
        measures = self._options.coverage or self._options.only == "changed"
        wanted = {
            "touch": check.traced,
            "lines": check.reach or (check.traced and measures),
            "mutate": bool(check.mutants),
        }
        return ["probe", *(name for name, is_wanted in wanted.items() if is_wanted)]

    def _refuse_broken(self, check: Check, code: int, log: bytes) -> None:
        told = log.decode("utf-8", "replace").strip()
        if code == checkout.CHECKOUT_FAILED:
            raise MngrError(f"the checkout of {check.commit[:12]} failed: {told[-300:]}")
        if code == checkout.SETUP_FAILED:
            what = f"`{self._project.setup}` failed in a checkout of {check.commit[:12]}"
            hint = "correct `setup` under [tool.mngr_tmr]"
            raise MngrError(f"{what}: {told[-300:] or 'it printed nothing'}", hint)
        if code == checkout.LEAKED:
            why = told.splitlines()[-1].removeprefix("mngr: ") if told else "bwrap did not start"
            raise MngrError(
                f"nothing was checked, because the sandbox failed: {why}",
                "check that `bwrap --ro-bind / / true` works, "
                "or set sandbox = false under [tool.mngr_tmr]",
            )

    def _keep(self, agent: Agent, work: str, folder: Path) -> None:
        """Replace the artifacts of an earlier check, filtered: they come from an agent's code."""
        shutil.rmtree(folder, ignore_errors=True)
        words = ["sh", "-c", ARTIFACTS, "mngr", f"{os.path.dirname(work)}/artifacts"]
        with suppress(MngrError):  # the verdict does not depend on artifacts
            unpack(self._api.exec(agent, words, cwd=work, timeout=300).stdout, folder)

    def _remove(self, agent: Agent, own: str) -> None:
        with suppress(MngrError, OSError):
            words = ["sh", "-c", f'{checkout.REMOVE}remove "$1"', "mngr", own]
            self._api.run_beside(agent, words, timeout=300)

    def _arguments(self, check: Check) -> list[str]:
        """Return pytest's arguments: files, so that a removed test is missing, not an error."""
        arguments = [*self._options.pytest_args]
        for name in self._plugins(check)[1:]:
            arguments += ["-p", f"mngr_tmr_{name}"]
        arguments += ["--collect-only"] if check.collect_only else []
        files = dict.fromkeys(each.partition("::")[0] for each in check.tests)
        return [*arguments, "--", *(files or self._options.paths)]

    def _kept(
        self,
        worker: BenchWorker,
        check: Check,
        arguments: list[str],
        nonce: str,
        code: int,
        probe: bytes,
        log: bytes,
    ) -> Checked:
        name = self._log(log)
        probed = reports.parse(probe, nonce)
        problem = ""
        if code != TIMED_OUT:
            problem = reports.incomplete(probed, code, collect_only=check.collect_only)
        noop = f"{NOOP}=1 " if check.noop else ""
        command = f"{noop}pytest {shlex.join(arguments)}"[:2000]
        bare = worker.place.bare
        return Checked(
            tests=probed.tests,
            runs=reports.cut_short(probed) if problem or code == TIMED_OUT else probed.runs,
            errors=() if problem else tuple(probed.errors),
            touched=probed.touched,
            lines=probed.lines,
            mutants=probed.mutants,
            proof=Proof(
                check.what, command, code, check.commit, name, not bare, may_fail=check.may_fail
            ),
            told=log[-4000:].decode("utf-8", "replace"),
            finished=not problem and code != TIMED_OUT,
            infrastructure=problem,
            bare=bare,
        )

    def _log(self, log: bytes) -> str:
        with self._lock:
            self._number += 1
            name = f"checks/{os.getpid()}-{self._number:04d}.log"
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(log)
        return name


def _own(agent: Agent) -> str:
    """Return a new folder, whose name no earlier check could know."""
    return os.path.join(agent.folder, f"check-{os.urandom(8).hex()}")


def _temporary(agent: Agent) -> str:
    return f"tmr-{agent.id[-8:]}-"
