"""Allocations of a Slurm cluster: each is one host, kept alive by a batch job.

The job itself starts the tmux server: with proctrack/cgroup, a server started by an srun step would
die with that step. The server ends with the allocation, and only then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from mngr.errors import MngrError, Unreachable
from mngr.hosts import spawn
from mngr.hosts.base import Capabilities, HostRequest, Lease
from mngr.hosts.engines import engine, holding
from mngr.hosts.engines.engine import TAG, Engine, EngineHost
from mngr.hosts.ledger import HostNote
from mngr.hosts.spawn import Sink
from mngr.model.completed import Completed
from mngr.model.quoting import join

PENDING = 600.0
"""Default of the seconds to wait until the allocation starts."""

OPTIONS = {
    "partition": "--partition",
    "time": "--time",
    "cpus": "--cpus-per-task",
    "memory": "--mem",
    "gres": "--gres",
    "account": "--account",
    "qos": "--qos",
    "constraint": "--constraint",
    "nodelist": "--nodelist",
}

# With -u, output goes to a terminal on the host, to which tar writes no archive and other programs
# write colours.
PIPED = r"""
exec 4>&1
code=$({ { "$@" 3>&- 4>&-; echo $? >&3; } | cat >&4 3>&-; } 3>&1)
exit "$code"
"""

# By default Slurm would pass on the whole environment, with every token in it.
# The current directory may not exist on the host.
COMMON = ("--export=HOME,USER,LOGNAME,SHELL,PATH,LANG,TZ", "--chdir=/")
KEPT = ("SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT")
"""Variables of Slurm that choose and open the cluster."""
FIELDS = "jobid:|,state:|,reason:|,timeleft:|,exit_code:|,comment:|"
LIVE = ("RUNNING", "PENDING", "CONFIGURING", "SUSPENDED", "COMPLETING")
NEVER = frozenset(
    "AccountNotAllowed BadConstraints DependencyNeverSatisfied InvalidAccount InvalidQOS "
    "PartitionConfig PartitionTimeLimit QOSNotAllowed".split()
)
"""Reasons for which a job waits until somebody changes it or the cluster."""
ENDED = {"TIMEOUT": "expired", "NODE_FAIL": "lost with its node", "OUT_OF_MEMORY": "out of memory"}
"""Words for states of jobs that do not complete a sentence."""
SUSPENDED = "its allocation is suspended"


class SlurmHost(EngineHost):
    """One allocation."""

    _engine: SlurmProvider

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        timeout: float,
        sink: Sink | None = None,
    ) -> Completed:
        """Run a command; if there is no answer, say whether the allocation is suspended."""
        try:
            return super().run(argv, input=input, timeout=timeout, sink=sink)
        except Unreachable as error:
            if SUSPENDED not in error.message and self._engine.suspended(self._note):
                error.message += f": {SUSPENDED}"
            raise


class SlurmProvider(Engine):
    name = "slurm"
    program = "scontrol"
    check = ("ping",)
    capabilities = Capabilities(new_hosts=True)
    build_keys = tuple(OPTIONS)
    serves = True

    def entering(self, handle: str, *, tty: bool) -> list[str]:
        # Without -u, Slurm buffers an incomplete line, and git would wait forever.
        step = _plain("srun", f"--jobid={handle}", "--overlap", "-n1", "-N1", "--quiet", *COMMON)
        return [*step, *(["--pty"] if tty else ["-u", "sh", "-c", PIPED, "mngr"])]

    def home(self, note: HostNote) -> str:
        """Return a separate home, because allocations usually share the user's home directory."""
        return f"{self.setting('home', '~/.mngr/slurm').rstrip('/')}/{note.name}-{note.id[-8:]}"

    def host(self, note: HostNote) -> SlurmHost:
        return SlurmHost(self, note)

    def suspended(self, note: HostNote) -> bool:
        try:
            lease = self.lease(note)
        except MngrError:
            return False
        return lease is not None and lease.reason.startswith(SUSPENDED)

    def make(self, note: HostNote, request: HostRequest) -> str:
        tag = ":".join([TAG, *self.tags(note).values()])
        words = ["sbatch", "--parsable", "--no-requeue", f"--job-name={self.prefix}{note.name}"]
        words += [f"--comment={tag}", "--output=/dev/null", "--nodes=1", *COMMON]
        words += [f"{OPTIONS[key]}={value}" for key, value in request.build.items()]
        if request.lifetime and "time" not in request.build:
            words.append(f"--time={max(1, -int(-request.lifetime // 60))}")
        hold = holding.words(note.id, note.lifetime, note.idle, self.home(note), "serve")
        script = f"#!/bin/sh\nexec {join(hold)}\n"
        handle = self._run(*words, *request.start, input=script.encode()).partition(";")[0]
        self._wait(handle)
        return handle

    def _wait(self, handle: str) -> None:
        patience = self.patience(PENDING)
        deadline, nap = time.monotonic() + patience, 0.1
        while True:
            state, reason = self._state(handle)
            if state == "RUNNING":
                return
            if state not in LIVE:
                raise MngrError(f"slurm: job {handle} is {state.lower() or 'gone'}{reason}")
            if reason[2:-1] in NEVER:
                raise MngrError(f"slurm: job {handle} cannot start{reason}")
            if time.monotonic() > deadline:
                raise MngrError(
                    f"slurm: job {handle} did not start within {patience:g} s{reason}",
                    "raise providers.slurm.patience, or request fewer resources",
                )
            time.sleep(nap)
            nap = min(nap * 1.5, 2.0)

    def _state(self, handle: str) -> tuple[str, str]:
        told = self._run("squeue", "-h", "-j", handle, "-t", "all", "-o", "%T|%r")
        state, _, reason = told.partition("|")
        return state, _cause(reason)

    def _run(self, program: str, *words: str, input: bytes | None = None) -> str:
        """Run one of Slurm's programs."""
        timeout = engine.LOOK if program == "squeue" else 60.0
        return self.told(spawn.run(_plain(program, *words), input=input, timeout=timeout))

    def remove(self, handle: str) -> None:
        """Cancel the job and wait until it has ended, because scancel only requests it."""
        done = spawn.run(_plain("scancel", handle), timeout=60)
        if done.code and "Invalid job id" not in done.complaint:
            raise MngrError(f"slurm: {done.complaint}")
        deadline = time.monotonic() + 120
        while any(each.handle == handle and each.running for each in self.leases()):
            if time.monotonic() > deadline:
                raise MngrError(
                    f"slurm: job {handle} is still running", f"see `squeue -j {handle}`"
                )
            time.sleep(0.2)

    def leases(self) -> list[Lease]:
        told = self._run("squeue", "-h", "--me", "-t", "all", "-O", FIELDS)
        found = (_lease(line) for line in told.splitlines())
        return [each for each in found if each]


def _plain(*command: str) -> list[str]:
    """Return the command without variables that change it: mngr may run in a job itself."""
    begins = ("SLURM_", "SRUN_", "SQUEUE_", "SCANCEL_")
    names = [each for each in os.environ if each.startswith(begins) and each not in KEPT]
    return [*(["env"] if names else []), *(f"-u{name}" for name in names), *command]


def _lease(line: str) -> Lease | None:
    words = [word.strip() for word in line.split("|")[:6]]
    tag, *values = words[-1].split(":")
    # The comment of another job may have several lines.
    if len(words) < 6 or tag != TAG or len(values) != len(engine.KEYS):
        return None
    handle, state, reason, left, code, _ = words
    # In some versions the exit code of a batch script is a wait status.
    ended = holding.ended(int(code) % 256 or int(code) // 256) if code.isdigit() else ""
    why = ended or f"its allocation is {ENDED.get(state, state.lower())}{_cause(reason)}"
    found = engine.lease(handle, values, state in LIVE, why)
    ends = time.time() + seconds(left) if found.running and seconds(left) else None
    return found.replace(ends=ends, ending=state == "COMPLETING")


def _cause(reason: str) -> str:
    """Return Slurm's reason in parentheses, if it gives one."""
    return "" if reason in ("", "None") else f" ({reason})"


def seconds(text: str) -> float:
    """Parse Slurm's `[D-][[H:]M:]S`; 0 for UNLIMITED, INVALID and similar."""
    days, _, clock = text.rpartition("-")
    parts = clock.split(":")
    if not all(part.isdigit() for part in parts) or (days and not days.isdigit()):
        return 0.0
    total = 0
    for part in parts:
        total = total * 60 + int(part)
    return float(total + int(days or 0) * 86400)
