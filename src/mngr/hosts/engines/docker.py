"""Containers of a Docker engine, through the `docker` program; DOCKER_HOST chooses the engine."""

from __future__ import annotations

import hashlib
import os
import re
import time

from mngr.errors import MngrError
from mngr.hosts import ledger
from mngr.hosts.base import Capabilities, HostRequest, Lease
from mngr.hosts.engines import engine as engines
from mngr.hosts.engines import holding
from mngr.hosts.engines.engine import TAG, Engine
from mngr.hosts.ledger import HostNote
from mngr.model.completed import Completed

VOLUMES = "{{range .Mounts}}{{.Name}} {{.Destination}}\n{{end}}"
UNNAMED = re.compile("[0-9a-f]{64}")
"""The name that Docker gives to a volume, for instance for each VOLUME of a Dockerfile."""

BUILD = 3600.0
"""Seconds that building an image may take."""


class DockerProvider(Engine):
    name = program = "docker"
    capabilities = Capabilities(new_hosts=True, snapshots=True, restarts=True)
    build_keys = ("image", "base", "file", "context", "cpus", "memory", "network", "volume")

    def entering(self, handle: str, *, tty: bool) -> list[str]:
        return ["docker", "exec", "-it" if tty else "-i", handle]

    def prepare(self, request: HostRequest) -> HostRequest:
        return request.replace(build={**request.build, "image": self._image(request)})

    def make(self, note: HostNote, request: HostRequest) -> str:
        words = ["run", "-d", "--name", f"{self.prefix}{note.name}-{note.id[-8:]}"]
        words += ["--hostname", note.name]
        for key, value in {**note.tags, **self.tags(note)}.items():
            words += ["--label", f"{key}={value}"]
        # The engine must not restart a host that ends itself.
        limited = note.lifetime or note.idle
        words += ["--restart", "no" if limited else "unless-stopped"]
        for key in ("cpus", "memory", "network", "volume"):
            if request.build.get(key):
                words += [f"--{key}", request.build[key]]
        first, *rest = holding.words(note.id, note.lifetime, note.idle)
        return self.tell(
            *words,
            *request.start,
            "--entrypoint",
            first,
            request.build["image"],
            *rest,
            timeout=300,
        )

    def _image(self, request: HostRequest) -> str:
        if request.build.get("image"):
            return request.build["image"]
        file = request.build.get("file")
        if file or request.build.get("context"):
            return self._built(file or "", request.build.get("context", "."))
        return self._default(request.build.get("base") or self.setting("base"))

    def _built(self, file: str, context: str) -> str:
        words = ["build", "-q", *(["-f", file] if file else []), context]
        return self.tell(*words, timeout=BUILD).splitlines()[-1]

    def _default(self, base: str) -> str:
        """Return the default image, built once per version of the packaged Dockerfile."""
        path = os.path.join(os.path.dirname(__file__), "Dockerfile")
        with open(path, "rb") as file:
            content = file.read()
        mark = hashlib.sha256(content + base.encode()).hexdigest()[:12]
        image = f"mngr-host:{mark}"
        if self.ask("image", "inspect", image).code == 0:
            return image
        words = ["build", "-q", "-t", image]
        words += ["--build-arg", f"BASE={base}"] if base else []
        self.tell(*words, "-", input=content, timeout=BUILD)
        return image

    def remove(self, handle: str) -> None:
        done = self.ask("rm", "-f", "-v", handle, timeout=120)
        deadline = time.monotonic() + 120
        while "already in progress" in done.complaint and time.monotonic() < deadline:
            time.sleep(0.2)
            done = self.ask("rm", "-f", "-v", handle, timeout=120)
        if done.code and "No such container" not in done.complaint:
            raise MngrError(f"docker: {done.complaint}")

    def start(self, handle: str) -> None:
        if self.ask("unpause", handle).code:  # it fails for a container that is not paused
            self.tell("start", handle, timeout=120)

    def stop(self, handle: str) -> None:
        self.tell("stop", "-t", "10", handle, timeout=120)

    def snapshot(self, handle: str, name: str) -> str:
        self._check_volumes(handle)
        self.tell("commit", handle, name, timeout=BUILD)
        return name

    def _check_volumes(self, handle: str) -> None:
        """Raise if `remove` would delete the agents' files and no image would have them."""
        notes = ledger.known(self.controller, self.name)
        home = next((note.home for note in notes if note.handle == handle), "")
        told = self.tell("inspect", "-f", VOLUMES, handle).splitlines()
        for name, _, folder in (line.partition(" ") for line in told):
            if UNNAMED.fullmatch(name) and f"{home}/".startswith(f"{folder.rstrip('/')}/"):
                raise MngrError(
                    f"docker: the agents' files are on an anonymous volume ({folder}), which is "
                    "not part of an image and is removed with the container",
                    "pull their work and destroy them before the host",
                )

    def complaint(self, done: Completed) -> str:
        """Return the error without Docker's final lines, which only repeat or refer to others."""
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        final = ("See '", "Run '", "Usage:", "Error: failed to start")
        told = [line for line in lines if line and not line.startswith(final)]
        return told[-1].removeprefix("docker: ") if told else done.complaint

    def leases(self) -> list[Lease]:
        asked = [f'{{{{.Label "{TAG}{key}"}}}}' for key in engines.KEYS]
        told = self.tell(
            *("ps", "-a", "--no-trunc", "--filter", f"label={TAG}", "--format"),
            "\t".join(["{{.ID}}", "{{.State}}", "{{.Status}}", *asked]),
            timeout=engines.LOOK,
        )
        return [_lease(line) for line in told.splitlines()]


def _lease(line: str) -> Lease:
    handle, state, status, *values = line.split("\t")
    return engines.lease(handle, values, state == "running", why(status))


def why(status: str) -> str:
    """Return the reason for Docker's `Exited (71) 5 minutes ago`, if the code is one of mngr's."""
    found = re.match(r"(?:Exited|Restarting) \((\d+)\)", status)
    return (holding.ended(int(found[1])) if found else "") or status.lower()
