"""A Slurm cluster for tests: munge, slurmctld and two slurmd in one network namespace."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from tests.support.cli import until
from tests.support.lab.machines import HERE

CONF = """\
ClusterName=lab
SlurmctldHost=lab(10.97.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,batch_sched_delay=0
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout={patience}
KillWait=2
MinJobAge={memory}
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=9
PartitionName=closed Nodes=ALL MaxTime=INFINITE State=UP AllowGroups=root
"""
NODE = "NodeName={name} NodeHostname=lab NodeAddr=10.97.0.1 Port={port} CPUs=64 RealMemory=8000\n"
PROGRAMS = ("sbatch", "srun", "munged", "slurmctld", "slurmd", "unshare", "nsenter", "ip", "flock")


def why_not() -> str:
    """Return why this machine cannot run a cluster, or an empty text."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a Slurm cluster for tests needs Linux and root"
    missing = [each for each in PROGRAMS if not shutil.which(each)]
    return f"a Slurm cluster for tests needs {', '.join(missing)}" if missing else ""


def start_apart(script: str, folder: Path, *words: str) -> None:
    """Run a script of this folder in its own namespaces; its folder is removed when it ends."""
    apart = 'unshare -m -n -p -i -u --fork --kill-child -- "$0" "$@" & echo $! > "$1/keeper"'
    start = ["sh", "-c", f'({apart}; wait; rm -rf "$1") &', str(HERE / script), str(folder)]
    with open(folder / "log", "ab") as log:
        subprocess.run(
            [*start, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, check=True,
        )  # fmt: skip
    until(lambda: first_process(folder), 30, "the cluster's first process")


def first_process(folder: Path) -> int:
    """Return the process that runs the script, in this machine's count; 0 if there is none."""
    try:
        keeper = int((folder / "keeper").read_text())
        children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    except (FileNotFoundError, ValueError):
        return 0
    return int(children[0]) if children else 0


@dataclass
class Cluster:
    folder: Path
    proctrack: str = "linuxproc"
    patience: int = 10
    memory: int = 60

    @property
    def env(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    @property
    def private(self) -> str:
        """Return a folder that each node has for itself and this machine does not have."""
        return str(self.folder / "private")

    @property
    def nodes(self) -> list[str]:
        """Return names of nodes, unique because cgroups of all clusters here share one place."""
        return [f"{self.folder.name}-{number}" for number in (1, 2)]

    @property
    def init(self) -> int:
        return first_process(self.folder)

    def entering(self) -> tuple[str, ...]:
        return ("nsenter", f"--net=/proc/{self.init}/ns/net", "--")

    def start(self, users: Path) -> None:
        for each in ("state", "private"):
            (self.folder / each).mkdir()
        nodes = [NODE.format(name=n, port=17001 + i) for i, n in enumerate(self.nodes)]
        conf = CONF.format(
            folder=self.folder, proctrack=self.proctrack, patience=self.patience, memory=self.memory
        )
        (self.folder / "slurm.conf").write_text("".join(nodes) + conf)
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        start_apart("cluster.sh", self.folder, str(users), *self.nodes)
        until(lambda: self.ask("sinfo", "-h", "-o", "%T %D") == "idle 2", 60, "the cluster")

    def freeze(self) -> None:
        """Stop Slurm from answering; running jobs continue."""
        for pid in self._daemons("slurm"):
            os.kill(pid, signal.SIGSTOP)

    def refuse(self) -> None:
        """End the controller, as for an upgrade, and break off every running step."""
        for pid in self._steps():
            os.kill(pid, signal.SIGKILL)
        # If it were killed, it would forget jobs that it has not recorded yet.
        for pid in self._daemons("slurmctld"):
            os.kill(pid, signal.SIGTERM)
        until(lambda: not self._daemons("slurmctld"), 30, what="the controller's end")

    def heal(self) -> None:
        """Undo `freeze` and `refuse`; may be repeated."""
        for pid in self._daemons("slurm"):
            os.kill(pid, signal.SIGCONT)
        if not self._daemons("slurmctld"):
            again = ["nsenter", "-a", "-t", str(self.init), "slurmctld"]
            subprocess.run(again, env=os.environ | self.env, check=True, timeout=60)
        until(lambda: "UP" in self.ask("scontrol", "ping"), 60, "the controller")

    def inside(self, node: str, script: str) -> str:
        """Run a command on a node without Slurm."""
        # A slurmd that starts a step has forked, and both processes look the same.
        slurmd = min(pid for pid in self._daemons("slurmd") if node.encode() in _words(pid))
        words = ["nsenter", "-a", "-t", str(slurmd), "sh", "-c", script]
        done = subprocess.run(words, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, f"{script}: {done.stderr.decode()}"
        return done.stdout.decode().strip()

    def _steps(self) -> list[int]:
        """Return the steps of remote commands, without the batch step of the job itself."""
        found = self._daemons("slurmstepd")
        return [pid for pid in found if not any(b"batch" in word for word in _words(pid))]

    def _daemons(self, name: str) -> list[int]:
        """Return the processes of this cluster whose names begin with this text."""
        mine = os.readlink(f"/proc/{self.init}/ns/pid")
        return [pid for pid in _named(name) if _namespace(pid) == mine]

    def ask(self, *words: str) -> str:
        done = subprocess.run(
            [*self.entering(), *words], env=os.environ | self.env, capture_output=True,
            timeout=60, check=False,
        )  # fmt: skip
        return done.stdout.decode().strip()


def _named(name: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            found += [int(path.parent.name)] if path.read_text().startswith(name) else []
        except OSError:
            continue
    return found


def _words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


@contextmanager
def cluster(
    proctrack: str = "linuxproc", *, patience: int = 10, memory: int = 60
) -> Iterator[Cluster]:
    """Its folder's name is short, for the sockets in it. `patience` is how many seconds a node may
    be silent before its jobs are given up, `memory` for how many ended jobs are known."""
    made = Cluster(Path(mkdtemp(prefix="slurm-", dir="/tmp")), proctrack, patience, memory)
    made.folder.chmod(0o711)  # munge requires it
    users = made.folder / "users"
    with open(users, "a+") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        made.start(users)
        yield made
    until(lambda: not made.folder.exists(), 60, "the end of the cluster")
