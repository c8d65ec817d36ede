"""Pods of a Kubernetes cluster, through `kubectl` and its contexts.

A handle is `POD/NAMESPACE/CONTEXT`. Namespace and context are recorded when the host is created,
because kubectl's current context may change. An empty part means kubectl's default.
"""

from __future__ import annotations

import json
import re
import time

from mngr.errors import MngrError, TimedOut, UsageError
from mngr.hosts import ledger, spawn
from mngr.hosts.base import Capabilities
from mngr.hosts.engines import engine, holding, pods
from mngr.hosts.engines.engine import TAG, Engine, NotMade

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.hosts.base import HostRequest, Lease
    from mngr.hosts.engines.engine import EngineHost
    from mngr.hosts.ledger import HostNote
    from mngr.model.completed import Completed
    from mngr.model.struct import Json

    Scope = tuple[str, str]
    """Namespace and context."""

READY = 600.0
"""Default of the seconds that a pod may take to be ready, including the download of its image."""
GRACE = 10
"""Seconds that the first process gets to end the others."""
ENDING = 90
"""Seconds a node may take to end what runs in a pod."""
LOOK = f"--request-timeout={engine.LOOK - 2:g}s"
"""Makes kubectl end by itself, in case mngr was killed and cannot end it."""
PREFIXES = r'^(error: |Error from server \(\w+\): |error when creating "STDIN": )+'
QUANTITY = r"\d+(\.\d+)?([numkMGTPE]|[KMGTPE]i)?"
LABEL = r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?"
# With these errors nothing was created. With others, such as Timeout or InternalError, this is
# unknown.
REFUSED = ("Forbidden", "Unauthorized", "NotFound", "BadRequest", "Invalid", "MethodNotAllowed")


class KubernetesProvider(Engine):
    name = "kubernetes"
    program = "kubectl"
    check = ("version", LOOK)
    capabilities = Capabilities(new_hosts=True)
    build_keys = (
        *("context", "namespace", "image", "cpus", "memory", "gpu"),
        *("node-selector", "service-account"),
    )

    def entering(self, handle: str, *, tty: bool) -> list[str]:
        pod, scope = _parts(handle)
        return ["kubectl", *_words(scope), "exec", "-it" if tty else "-i", pod, "-c", "host", "--"]

    def create(
        self, request: HostRequest, step: Callable[[str], None] = lambda name: None
    ) -> EngineHost:
        """Create a pod; its namespace and context are part of the note."""
        self.check_request(request)
        self._image(request.build)
        _check_values(request.build)
        namespace, context = self._current(*self._scope(request.build))
        build = {**request.build, "namespace": namespace, "context": context}
        return super().create(request.replace(build={k: v for k, v in build.items() if v}), step)

    def _scope(self, build: dict[str, str]) -> Scope:
        namespace, context = (build.get(k) or self.setting(k) for k in ("namespace", "context"))
        return namespace, context

    def _current(self, namespace: str, context: str) -> Scope:
        """Return kubectl's default scope; inside a cluster there is none."""
        words = ("config", "view", "--minify", "-o", "json")
        done = self.ask(*_words(("", context)), *words)
        if done.code:
            if context:
                hint = "see `kubectl config get-contexts`"
                raise UsageError(f"kubectl has no context {context!r}", hint)
            return namespace, context
        told = json.loads(done.stdout)
        usual = told["contexts"][0]["context"].get("namespace") or "default"
        return namespace or usual, context or told["current-context"]

    def make(self, note: HostNote, request: HostRequest) -> str:
        pod = f"{_plain(self.prefix + note.name)}-{note.id[-8:]}"
        scope = self._scope(note.build)
        manifest = json.dumps(self.manifest(pod, note, request)).encode()
        words = ("create", "--validate=false", "-f", "-")
        done = self.ask(*_words(scope), *words, input=manifest)
        if done.code and _refused(done):
            raise NotMade(f"kubernetes: {self.complaint(done)}")
        self.told(done)
        self._wait(pod, scope, pods.Watch(request.waiting))
        return "/".join((pod, *scope))

    def _wait(self, pod: str, scope: Scope, watch: pods.Watch) -> None:
        patience = self.patience(READY)
        try:
            told = self._watch(pod, scope, patience, watch, watch.decided)
        except TimedOut:
            why = watch.pod.reason if watch.pod else "the cluster did not answer"
            raise MngrError(
                f"kubernetes: pod {pod} did not start within {patience:g} s ({why})",
                "raise providers.kubernetes.patience, or request fewer resources",
            ) from None
        if told:
            raise MngrError(f"kubernetes: watching pod {pod} failed: {told}")
        if watch.pod and not watch.pod.ready:
            raise MngrError(f"kubernetes: pod {pod} cannot start: {watch.pod.reason}")

    def _watch(
        self, pod: str, scope: Scope, seconds: float, watch: pods.Watch, done: Callable[[], bool]
    ) -> str:
        """Watch a pod until `done`; return kubectl's error if that fails."""
        asked = [self.program, *_words(scope), "get", "pod", pod, *pods.WATCHING]
        deadline = time.monotonic() + seconds
        while not done():
            left = max(0.1, deadline - time.monotonic())
            told = spawn.run(asked, timeout=left, sink=watch, until=done)
            if told.code and not done():
                return self.complaint(told.replace(stderr=watch.errors))
            time.sleep(0 if done() else 0.5)  # a server ends every watch after some minutes
        return ""

    def manifest(self, pod: str, note: HostNote, request: HostRequest) -> dict[str, Json]:
        """Return the manifest; it mounts no credentials unless a service account is requested."""
        build = request.build
        account = build.get("service-account")
        spec: dict[str, Json] = {
            "restartPolicy": "Never",
            "automountServiceAccountToken": bool(account),
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": GRACE,
            "hostname": _plain(note.name),
            "containers": [self._container(note, build)],
        }
        if account:
            spec["serviceAccountName"] = account
        if build.get("node-selector"):
            key, _, value = build["node-selector"].partition("=")
            spec["nodeSelector"] = {key: value}
        if request.lifetime:  # the cluster's own limit, in case the first process does not end
            spec["activeDeadlineSeconds"] = round(request.lifetime) + 60
        metadata = self._tagged(pod, note)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _container(self, note: HostNote, build: dict[str, str]) -> dict[str, Json]:
        asked = {"cpu": build.get("cpus"), "memory": build.get("memory")}
        asked |= {"nvidia.com/gpu": build.get("gpu")}
        limits: dict[str, Json] = {key: value for key, value in asked.items() if value}
        return {
            "name": "host",
            "image": self._image(build),
            "imagePullPolicy": "IfNotPresent",
            "command": [*holding.words(note.id, note.lifetime, note.idle)],
            "resources": {"limits": limits, "requests": limits},
        }

    def _tagged(self, pod: str, note: HostNote) -> dict[str, Json]:
        """Return labels and annotations: names and tags may not be valid as labels."""
        labels = {**note.tags, **self.tags(note)}
        unfit = [f"{TAG}-name", *(k for k, v in note.tags.items() if not re.fullmatch(LABEL, v))]
        annotations = {key: labels.pop(key) for key in unfit}
        return {"name": pod, "labels": {**labels}, "annotations": {**annotations}}

    def _image(self, build: dict[str, str]) -> str:
        image = build.get("image") or self.setting("image")
        if not image:
            hint = "use -b image=NAME or providers.kubernetes.image; it requires sh, git, tar, tmux"
            raise UsageError("kubernetes has no default image", hint)
        return image

    def remove(self, handle: str) -> None:
        pod, scope = _parts(handle)
        self.tell(*_words(scope), "delete", "pod", pod, "--ignore-not-found", "--wait=false")
        self._ended(handle)

    def _ended(self, handle: str) -> None:
        """Wait until nothing runs in the pod; its node may keep the pod object for longer."""
        pod, scope = _parts(handle)
        watch = pods.Watch()
        try:
            told = self._watch(pod, scope, ENDING, watch, watch.ended)
        except TimedOut:
            hint = f"its node may be down; see `kubectl describe pod {pod}`"
            raise MngrError(
                f"kubernetes: pod {pod} is still running after {ENDING} s", hint
            ) from None
        if told and "not found" not in told:
            raise MngrError(f"kubernetes: watching pod {pod} failed: {told}")

    def lease(self, note: HostNote) -> Lease | None:
        return next(iter(self._look(self._scope(note.build), f"{TAG}={note.id}")), None)

    def leases(self) -> list[Lease]:
        """Return the pods in the default scope and in all recorded scopes."""
        notes = ledger.known(self.controller, self.name)
        scopes = [self._current(*self._scope({})), *(self._scope(note.build) for note in notes)]
        return [each for scope in dict.fromkeys(scopes) for each in self._look(scope, TAG)]

    def _look(self, scope: Scope, label: str) -> list[Lease]:
        words = ("get", "pods", "-l", label, "-o", "json", LOOK)
        told = self.tell(*_words(scope), *words, timeout=engine.LOOK)
        return [_lease(pods.parse(each), scope) for each in json.loads(told)["items"]]

    def complaint(self, done: Completed) -> str:
        """Return kubectl's error on one line, without the lines of its log."""
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        told = [line.strip() for line in lines if line and not re.match(r"[EWIF]\d{4} ", line)]
        return re.sub(PREFIXES, "", " ".join(told)) or done.complaint


def _check_values(build: dict[str, str]) -> None:
    """Raise on invalid values; the cluster's own errors about them are hard to read."""
    for key in ("cpus", "memory", "gpu"):
        if key in build and not re.fullmatch(QUANTITY, build[key]):
            hint = "use a number such as 2, 500m or 4Gi"
            raise UsageError(f"-b {key}={build[key]} is not a quantity", hint)
    if "=" not in build.get("node-selector", "="):
        raise UsageError("-b node-selector takes KEY=VALUE", "such as node-selector=disk=ssd")


def _refused(done: Completed) -> bool:
    """Return whether the cluster itself refused the request."""
    told = done.stderr.decode("utf-8", "replace")
    found = re.search(r"Error from server \((\w+)\)", told)
    return found[1] in REFUSED if found else " is invalid: " in told


def _parts(handle: str) -> tuple[str, Scope]:
    """Split a handle; a context may contain slashes."""
    pod, namespace, context = handle.split("/", 2)
    return pod, (namespace, context)


def _words(scope: Scope) -> list[str]:
    options = zip(("--namespace", "--context"), scope, strict=True)
    return [f"{option}={value}" for option, value in options if value]


def _plain(name: str) -> str:
    """Return a valid DNS name: lower case, no underscore, no hyphen at the end."""
    return name.lower().replace("_", "-")[:50].strip("-")


def _lease(pod: pods.Pod, scope: Scope) -> Lease:
    values = [pod.tags.get(f"{TAG}{key}", "") for key in engine.KEYS]
    return engine.lease("/".join((pod.name, *scope)), values, pod.running, pod.reason)
