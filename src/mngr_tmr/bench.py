"""Where tests run that must be believed: bare agents with a clean checkout, a few, reused.

What runs there is agents' code. It gets neither the user's home nor their environment.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from mngr.api import Agent, CreateRequest, Mngr
from mngr.errors import MngrError, TimedOut
from mngr_tmr import probing
from mngr_tmr.fleet import ARTIFACTS, unpack
from mngr_tmr.model import Options, Proof, Test, TestRun
from mngr_tmr.settings import Project, pytest_command

TIMED_OUT = 124
LOG_LIMIT = 400_000
PROBE_LIMIT = 32 << 20

# $1 commit, $2 set-up command, $3 what runs pytest, $4 a folder of our own, $5 the name of one for
# temporary files, then arguments for pytest. The probe's lines go to stdout, pytest's own words to
# stderr. Temporary files lie where they would without us: sockets among them have room for 108
# characters, and tests that pass for their author have to pass here.
SCRIPT = r"""
commit=$1 setup=$2 pytest=$3 own=$4 tmp=${TMPDIR:-/tmp}/$5; shift 5
safe='-c core.hooksPath=/dev/null -c core.fsmonitor=false'
git $safe checkout -q --detach --force "$commit" || exit 90
git clean -qffdx || exit 90
mkdir -p "$own/home" && mkdir -m 700 "$tmp" || exit 90
export HOME="$own/home" TMPDIR="$tmp" MNGR_TMR_PROBE="$own/probe.jsonl"
export PYTHONPATH="$own:$PWD/src:$PWD" PYTHONDONTWRITEBYTECODE=1
: > "$MNGR_TMR_PROBE"
if [ -n "$setup" ]; then sh -c "$setup" > "$own/log" 2>&1 < /dev/null || {
  tail -c LOG_LIMIT "$own/log" >&2; exit 91
}; fi
eval "$pytest"' -p mngr_tmr_probe -p no:cacheprovider -q "$@"' > "$own/log" 2>&1 < /dev/null
code=$?
head -c PROBE_LIMIT "$MNGR_TMR_PROBE"
tail -c LOG_LIMIT "$own/log" >&2
rm -rf "$own" "$tmp"
exit "$code"
""".replace("LOG_LIMIT", str(LOG_LIMIT)).replace("PROBE_LIMIT", str(PROBE_LIMIT))

# What a check that was cut short could not end or remove itself. Daemons leave its process group,
# but keep the folder for temporary files that only this worker's checks had.
SWEEP = r"""
tmp=${TMPDIR:-/tmp}/$1
for each in $(grep -lsF "TMPDIR=$tmp" /proc/[0-9]*/environ); do
  each=${each#/proc/}; kill -9 "${each%/environ}" 2>/dev/null
done
rm -rf "$tmp"*
"""


@dataclass(frozen=True)
class Check:
    """Run these tests of this commit, or all of them; `noop` makes every command do nothing."""

    what: str
    commit: str
    tests: tuple[str, ...] = ()
    noop: bool = False
    collect_only: bool = False
    traced: bool = False
    """Tell also which files each test needs."""
    keep: str = ""
    """A folder, relative to the run's, for the transcripts and recordings that the tests leave."""


@dataclass(frozen=True)
class Checked:
    tests: dict[str, Test]
    runs: dict[str, TestRun]
    errors: tuple[str, ...]
    proof: Proof
    touched: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict, compare=False)
    lines: Mapping[str, Mapping[str, str]] = field(default_factory=dict, compare=False)
    """The lines each test runs, by file, as 1-3,7."""
    told: str = field(default="", compare=False)
    """The end of what pytest printed."""
    finished: bool = True
    """Pytest came to its end, with whatever result; else some tests were never tried."""

    @property
    def timed_out(self) -> bool:
        return self.proof.exit_code == TIMED_OUT

    def passed(self, tests: Iterable[str]) -> bool:
        return all(self.outcome(each) == "passed" for each in tests)

    def outcome(self, node_id: str) -> str:
        return self.runs[node_id].outcome if node_id in self.runs else "missing"


class Bench:
    """A pool of bare agents. `check` may be called from many threads."""

    def __init__(
        self, api: Mngr, repository: str, run: str, folder: Path, project: Project, options: Options
    ) -> None:
        self._api, self._repository, self._run = api, repository, run
        self._folder, self._project, self._options = folder, project, options
        self._pytest = pytest_command(project, repository, options.provider)
        self._free: queue.Queue[Agent] = queue.Queue()
        self._made: list[Agent] = []
        self._lock = threading.Lock()
        self._number = 0
        self._closed = False

    # workers

    @contextmanager
    def _worker(self, commit: str) -> Iterator[Agent]:
        agent = self._take(commit)
        try:
            yield agent
        finally:
            self._free.put(agent)

    def _take(self, commit: str) -> Agent:
        if self._closed:
            raise MngrError("nothing is checked any more")
        with suppress(queue.Empty):
            return self._free.get_nowait()
        with self._lock:
            number = len(self._made) + 1
            if self._closed:
                raise MngrError("nothing is checked any more")
            if number <= max(1, self._options.workers):
                agent = self._make(number, commit)
                self._made.append(agent)
                return agent
        return self._free.get()

    def _make(self, number: int, commit: str) -> Agent:
        name = f"tmr-{self._run}-bench-{number}"
        request = CreateRequest(
            address=name,
            provider=self._options.provider,
            type="command",
            args=("tail", "-f", "/dev/null"),
            source=self._repository,
            transfer="git-mirror",
            branch=f"{commit}:mngr/{name}",
            committed_only=True,
            labels={"tmr": self._run, "role": "bench"},
        )
        return self._api.create(request).agent

    def sweep(self) -> None:
        """What a killed process left, perhaps in the middle of a check, which ends with it."""
        self._destroy([each for each in self._api.list() if self._is_mine(each)])

    def _is_mine(self, agent: Agent) -> bool:
        record = agent.evidence.record
        labels = record.labels if record is not None else {}
        return labels.get("tmr") == self._run and labels.get("role") == "bench"

    def close(self) -> None:
        """Nothing of a worker is anybody's work."""
        with self._lock:
            self._closed = True
            made, self._made = self._made, []
        self._destroy(made)

    def _destroy(self, agents: Sequence[Agent]) -> None:
        if agents:
            bury = self._api.destroy_many(agents, drop_branch=True)
            for agent in agents:
                bury(agent)
                words = ["sh", "-c", SWEEP, "mngr", _temporary(agent)]
                with suppress(MngrError, OSError):
                    agent.host.run(words, timeout=60)

    # checks

    def check(self, check: Check) -> Checked:
        with self._worker(check.commit) as agent:
            self._api.deliver(agent, check.commit, cwd=self._repository)
            checked = self._checked(agent, check)
            if self._closed:  # and so was pytest, half-way: that says nothing about its tests
                raise MngrError("the check was ended")
            if check.keep:  # before the next check cleans the checkout
                self._keep(agent, self._folder / check.keep)
            return checked

    def check_all(
        self,
        what: str,
        commit: str,
        tests: Sequence[str],
        *,
        noop: bool = False,
        traced: bool = False,
    ) -> list[Checked]:
        """The same, spread over the workers, whole files together."""
        shards = _shards(tests, max(1, self._options.workers))
        checks = [Check(what, commit, shard, noop, traced=traced) for shard in shards]
        with ThreadPoolExecutor(max_workers=max(1, len(checks))) as pool:
            try:
                return list(pool.map(self.check, checks))
            except (KeyboardInterrupt, SystemExit):
                self.close()  # or we would wait here for the checks
                raise

    def _checked(self, agent: Agent, check: Check) -> Checked:
        # A folder that no earlier check knew of, and could have left something in.
        own = os.path.join(agent.host.home, "agents", agent.id, f"check-{os.urandom(8).hex()}")
        probe = Path(__file__).with_name("probe.py").read_bytes()
        files = {f"{own}/mngr_tmr_probe.py": (probe, 0o600)}
        if check.traced:
            touch = Path(__file__).with_name("touch.py").read_bytes()
            files[f"{own}/mngr_tmr_touch.py"] = (touch, 0o600)
        if check.traced and self._options.coverage:
            lines = Path(__file__).with_name("lines.py").read_bytes()
            files[f"{own}/mngr_tmr_lines.py"] = (lines, 0o600)
        if check.tests:
            files[f"{own}/select.json"] = (json.dumps(check.tests).encode(), 0o600)
        agent.host.put(files)
        arguments = self._arguments(check)
        variables = ["env", *([f"MNGR_TMR_SELECT={own}/select.json"] if check.tests else [])]
        variables += ["MNGR_E2E_NOOP=1"] if check.noop else []
        if check.traced and (self._options.coverage or self._options.only == "changed"):
            variables.append("MNGR_E2E_COVERAGE=1")
        words = [check.commit, self._project.setup, self._pytest, own]
        words.append(f"{_temporary(agent)}{os.urandom(3).hex()}")
        argv = [*variables, "sh", "-c", SCRIPT, "mngr", *words, *arguments]
        timeout = float(self._project.check_timeout)
        try:
            done = self._api.exec(agent, argv, timeout=timeout)
        except TimedOut:
            return self._kept(check, arguments, TIMED_OUT, b"", b"timed out")
        if done.exit_code in (90, 91):
            told = done.stderr.decode("utf-8", "replace").strip()
            what = "set-up" if done.exit_code == 91 else "checkout"
            raise MngrError(f"the {what} of {check.commit[:12]} failed: {told[-300:]}")
        return self._kept(check, arguments, done.exit_code, done.stdout, done.stderr)

    def _keep(self, agent: Agent, folder: Path) -> None:
        """In place of what an earlier check left there. What ran is an agent's code: filtered."""
        shutil.rmtree(folder, ignore_errors=True)
        listing = os.path.join(agent.host.home, "agents", agent.id, ".artifacts")
        with suppress(MngrError):  # a verdict does not wait for its pictures
            done = self._api.exec(agent, ["sh", "-c", ARTIFACTS, "mngr", listing], timeout=300)
            unpack(done.stdout, folder)

    def _arguments(self, check: Check) -> list[str]:
        """Files rather than node ids: a test that is gone is then missing, not an error."""
        arguments = [*self._options.pytest_args]
        arguments += ["-p", "mngr_tmr_touch"] if check.traced else []
        arguments += ["-p", "mngr_tmr_lines"] if check.traced and self._options.coverage else []
        arguments += ["--collect-only"] if check.collect_only else []
        files = dict.fromkeys(each.partition("::")[0] for each in check.tests)
        return [*arguments, "--", *(files or self._options.paths)]

    def _kept(
        self, check: Check, arguments: list[str], code: int, probe: bytes, log: bytes
    ) -> Checked:
        with self._lock:
            self._number += 1
            number = self._number
        name = f"checks/{os.getpid()}-{number:04d}.log"
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(log)
        probed = probing.parse(probe)
        noop = "MNGR_E2E_NOOP=1 " if check.noop else ""
        command = f"{noop}pytest {' '.join(arguments)}"[:2000]
        return Checked(
            tests=probed.tests,
            runs=probed.runs,
            errors=tuple(probed.errors),
            touched=probed.touched,
            lines=probed.lines,
            proof=Proof(check.what, command, code, check.commit, name),
            told=log[-4000:].decode("utf-8", "replace"),
            finished=probed.finished,
        )


def _temporary(agent: Agent) -> str:
    return f"tmr-{agent.id[-8:]}-"


def _shards(tests: Sequence[str], count: int) -> list[tuple[str, ...]]:
    """As even as whole files allow; a single file is cut."""
    files: dict[str, list[str]] = {}
    for each in tests:
        files.setdefault(each.partition("::")[0], []).append(each)
    groups = list(files.values())
    if len(groups) < count:
        size = max(1, -(-len(tests) // count))
        return [tuple(tests[at : at + size]) for at in range(0, len(tests), size)]
    shards: list[list[str]] = [[] for _ in range(count)]
    for group in sorted(groups, key=len, reverse=True):
        min(shards, key=len).extend(group)
    return [tuple(shard) for shard in shards if shard]
