"""A Kubernetes cluster for tests: one node, with its own network, processes and data.

Debian has no packages of the servers, so they are built from its source, once per machine.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.cli import Cli, until
from tests.support.lab import engine
from tests.support.lab.cluster import first_process, start_apart
from tests.support.lab.machines import HERE, cache

SERVER = "https://10.95.0.1:6443"
PAUSE = 'FROM mngr-lab:root\nCMD ["sh", "-c", "trap \'exit 0\' TERM; sleep infinity & wait"]\n'
PROGRAMS = ("kubectl", "etcd", "dockerd", "docker", "openssl", "ip", "unshare", "nsenter", "flock")
TO_BUILD = ("go", "dpkg-source")
DAEMONS = ("dockerd", "etcd", "apiserver", "scheduler", "kubelet")


def why_not() -> str:
    """Return why this machine cannot run a cluster, or an empty text."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a Kubernetes cluster for tests needs Linux and root"
    wanted = PROGRAMS if _built().exists() else (*PROGRAMS, *TO_BUILD)
    missing = [each for each in wanted if not shutil.which(each)]
    return f"a Kubernetes cluster for tests needs {', '.join(missing)}" if missing else ""


def _built() -> Path:
    script = (HERE / "kubernetes-build.sh").read_bytes()
    return cache() / f"kubernetes-{hashlib.sha256(script).hexdigest()[:12]}"


def programs() -> Path:
    """Return a folder with kube-apiserver, kube-scheduler and kubelet."""
    with open(cache() / "kubernetes.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _built().exists():
            words = ["nice", "-n", "15", str(HERE / "kubernetes-build.sh"), str(_built())]
            subprocess.run(words, check=True, timeout=7200)
    return _built()


@dataclass
class Pods:
    """The cluster. Its user `admin` may do everything, `guest` nothing."""

    folder: Path

    @property
    def env(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self.folder / "config")}

    def entering(self, *more: str) -> tuple[str, ...]:
        return ("nsenter", f"--target={first_process(self.folder)}", "--net", *more, "--")

    def start(self, users: Path) -> None:
        self._settle()
        start_apart("kubernetes.sh", self.folder, str(users), str(programs()))
        until(lambda: self.docker.docker("info").returncode == 0, 60, "the cluster's Docker")
        tag = ("-t", "mngr-lab:pause", "-")
        self.docker.told("build", "-q", "--network", "none", *tag, input=PAUSE.encode())
        self.wait()
        until(lambda: self.ask("get", "namespace", "default").returncode == 0, 60, "its namespace")
        self.told("create", "serviceaccount", "default")
        # Pods with a token also mount this; usually a controller writes it.
        self.told("create", "configmap", "kube-root-ca.crt", "--from-literal=ca.crt=none")

    def _settle(self) -> None:
        """Write the users, their tokens, and the address."""
        tokens = {"admin": os.urandom(16).hex(), "guest": os.urandom(16).hex()}
        rows = [f"{token},{name},{name}" for name, token in tokens.items()]
        _secret(self.folder / "tokens", f'{rows[0]},"system:masters"\n{rows[1]}\n')
        key = ["openssl", "genrsa", "-out", str(self.folder / "key"), "2048"]
        subprocess.run(key, check=True, capture_output=True)
        _secret(self.folder / "admin", _config(tokens, "admin"))
        _secret(self.folder / "config", _config(tokens, "admin"))

    @property
    def docker(self) -> engine.Engine:
        return engine.Engine(self.folder)

    def ready(self) -> bool:
        told = self.ask("get", "node", "node1", "-o", "json").stdout
        conditions = json.loads(told)["status"].get("conditions", []) if told else []
        return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)

    def wait(self) -> None:
        until(self.ready, 120, "the cluster's node")

    def down(self, daemon: str) -> None:
        """Kill a server, and do not start it again."""
        (self.folder / f"{daemon}.down").touch()
        self.kill(daemon)

    def kill(self, daemon: str) -> None:
        self._signal(daemon, "KILL")

    def freeze(self, daemon: str) -> None:
        """Accept connections without answering."""
        self._signal(daemon, "STOP")

    def _signal(self, daemon: str, name: str, *, check: bool = True) -> None:
        pid = (self.folder / f"{daemon}.pid").read_text().strip()
        words = [*self.entering("--pid", "--mount"), "kill", f"-{name}", pid]
        subprocess.run(words, check=check, capture_output=True)

    def up(self, daemon: str) -> None:
        (self.folder / f"{daemon}.down").unlink(missing_ok=True)
        self._signal(daemon, "CONT", check=False)
        self.wait()

    def ask(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*self.entering(), "kubectl", "--request-timeout=20s", *words],
            env=os.environ | self.env | {"HOME": str(self.folder)}, capture_output=True,
            timeout=150, check=False,
        )  # fmt: skip

    def told(self, *words: str) -> str:
        done = self.ask(*words)
        assert done.returncode == 0, f"kubectl {words}: {done.stderr.decode()}"
        return done.stdout.decode().strip()

    def names(self, cli: Cli) -> list[str]:
        """Return the pods that a home created and did not end."""
        try:
            mark = (cli.controller_home / "hosts" / "controller").read_text()
        except FileNotFoundError:
            return []
        words = ("get", "pods", "-A", "-l", f"mngr-host-controller={mark}", "-o", "json")
        found = (each["metadata"] for each in json.loads(self.told(*words))["items"])
        return [f"pod/{each['name']}" for each in found if "deletionTimestamp" not in each]

    def containers(self) -> list[str]:
        """Return the containers that run on the node for pods of any home."""
        return self.docker.told(
            "ps", "--filter", "name=k8s_host_", "--format", "{{.Names}}"
        ).split()

    def heal(self) -> None:
        """Start everything again and remove the pods that a failed test may have left."""
        for each in DAEMONS:
            (self.folder / f"{each}.down").unlink(missing_ok=True)
            self._signal(each, "CONT", check=False)
        self.wait()
        self.told("delete", "pods", "--all", "--wait=false", "--grace-period=0", "--force")
        until(lambda: not self.containers(), 120, "the end of the pods")


def _config(tokens: dict[str, str], current: str) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "lab", "cluster": {"server": SERVER, "insecure-skip-tls-verify": True}}
            ],
            "users": [{"name": name, "user": {"token": token}} for name, token in tokens.items()],
            "contexts": [
                {"name": name, "context": {"cluster": "lab", "user": name}} for name in tokens
            ],
            "current-context": current,
        }
    )


def _secret(path: Path, content: str) -> None:
    path.touch(mode=0o600)
    path.write_text(content)


@contextmanager
def pods() -> Iterator[Pods]:
    """Yield a cluster that ends with this process, even if that is killed."""
    made = Pods(engine.fresh_data())
    users = made.folder / "users"
    with open(users, "a+") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        made.start(users)
        yield made
    until(lambda: not made.folder.exists(), 60, "the end of the cluster")
