"""Pods as hosts: what is asked for, and on a real cluster what comes of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.errors import UsageError
from mngr.hosts.base import HostRequest
from mngr.hosts.engines import pods as pod_states
from mngr.hosts.engines.kubernetes import KubernetesProvider
from mngr.hosts.ledger import HostNote
from mngr.settings.layers import Config
from tests.support.cli import Cli, until
from tests.support.lab.kubernetes import Pods
from tests.support.places import on_pods


@pytest.fixture
def kubernetes(tmp_path: Path) -> KubernetesProvider:
    return KubernetesProvider(Config.load(str(tmp_path), str(tmp_path), {}))


def manifest(
    provider: KubernetesProvider, build: dict[str, str], lifetime: float | None = None
) -> Any:
    note = HostNote(id=f"host-{'a' * 32}", name="My_box", provider="kubernetes", lifetime=lifetime)
    request = HostRequest(name="My_box", build=build, lifetime=lifetime)
    return provider.manifest("pod", note, request)


def test_a_pod_gets_no_credentials_unless_asked(kubernetes: KubernetesProvider) -> None:
    spec = manifest(kubernetes, {"image": "tools:1"})["spec"]
    assert spec["automountServiceAccountToken"] is False and "serviceAccountName" not in spec
    spec = manifest(kubernetes, {"image": "tools:1", "service-account": "builder"})["spec"]
    assert spec["automountServiceAccountToken"] and spec["serviceAccountName"] == "builder"


def test_a_pod_is_what_was_asked_for(kubernetes: KubernetesProvider) -> None:
    wanted = {"image": "tools:1", "cpus": "2", "memory": "1Gi", "gpu": "1", "node-selector": "a=b"}
    found = manifest(kubernetes, wanted, 600.0)
    spec, (container,) = found["spec"], found["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}
    assert spec["nodeSelector"] == {"a": "b"} and spec["activeDeadlineSeconds"] >= 600
    assert spec["hostname"] == "my-box" and spec["restartPolicy"] == "Never"
    assert container["command"][:2] == ["sh", "-c"] and container["command"][-2:] == ["600", "0"]
    assert found["metadata"]["labels"]["mngr-host"] == f"host-{'a' * 32}"


def test_tags_are_labels_where_a_label_may_hold_them(kubernetes: KubernetesProvider) -> None:
    tags = {"team": "web", "empty": "", "note": "a b", "end": "x-", "long": "x" * 64}
    note = HostNote(id=f"host-{'a' * 32}", name="box", provider="kubernetes", tags=tags)
    request = HostRequest(name="box", build={"image": "tools:1"}, tags=tags)
    metadata: Any = kubernetes.manifest("pod", note, request)["metadata"]
    assert {k: v for k, v in metadata["labels"].items() if k in tags} == {
        "team": "web",
        "empty": "",
    }
    assert metadata["annotations"].keys() == {"mngr-host-name", "note", "end", "long"}


def test_a_handle_says_where_the_pod_is(kubernetes: KubernetesProvider) -> None:
    words = kubernetes.entering("pod/team/arn:x:cluster/y", tty=False)
    where = ["kubectl", "--namespace=team", "--context=arn:x:cluster/y", "exec", "-i", "pod"]
    assert words == [*where, "-c", "host", "--"]
    assert kubernetes.entering("pod//", tty=True)[:4] == ["kubectl", "exec", "-it", "pod"]


def test_an_image_is_needed(kubernetes: KubernetesProvider) -> None:
    with pytest.raises(UsageError, match="no default image"):
        manifest(kubernetes, {})


def told(phase: str, state: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    containers = [{"name": "host", "state": state}] if state else []
    status = {"phase": phase, "containerStatuses": containers, **status}
    return {"metadata": {"name": "größe", "labels": {"a": "b"}}, "status": status}


def leaving(pod: dict[str, Any]) -> dict[str, Any]:
    return pod | {"metadata": pod["metadata"] | {"deletionTimestamp": "2030-01-01T00:00:00Z"}}


SAID = "rpc error: code = Unknown desc = no such\nimage"
PULL = {"waiting": {"reason": "ErrImagePull", "message": SAID}}
READY = [{"type": "Ready", "status": "True"}]
NOWHERE = {
    "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes",
}  # fmt: skip
CASES: list[tuple[dict[str, Any], bool, bool, bool, str]] = [
    (told("Pending"), True, False, False, ""),
    (told("Pending", conditions=[NOWHERE]), True, False, False, "Unschedulable: 0/1 nodes"),
    (told("Pending", PULL), True, False, True, "ErrImagePull: no such image"),
    (told("Running", {"running": {}}, conditions=READY), True, True, False, ""),
    (leaving(told("Running", {"running": {}})), False, False, True, "it is being deleted"),
    (told("Failed", {"terminated": {"exitCode": 71}}), False, False, True, "reached its --max-age"),
    (told("Failed", {"terminated": {"exitCode": 2}}), False, False, True, "failed"),
    (
        told("Failed", {"terminated": {"exitCode": 0}}, reason="DeadlineExceeded"),
        *(False, False, True, "reached its activeDeadlineSeconds"),
    ),
    (
        told("Failed", {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
        *(False, False, True, "out of memory"),
    ),
]


@pytest.mark.parametrize(("said", "running", "ready", "hopeless", "reason"), CASES)
def test_what_a_cluster_says_of_a_pod_is_understood(
    said: dict[str, Any], running: bool, ready: bool, hopeless: bool, reason: str
) -> None:
    pod = pod_states.parse(said)
    assert (pod.running, pod.ready, pod.hopeless, pod.reason) == (running, ready, hopeless, reason)
    assert pod.name == "größe" and pod.tags == {"a": "b"}


def event(said: dict[str, Any], kind: str = "MODIFIED") -> bytes:
    told = json.dumps({"type": kind, "object": said}, ensure_ascii=False)
    return told.encode() + b"\n"


@given(st.lists(st.sampled_from([case[0] for case in CASES]), min_size=1), st.integers(1, 200))
def test_a_watch_may_come_in_any_pieces(said: list[dict[str, Any]], size: int) -> None:
    data = b"".join(map(event, said))
    watch = pod_states.Watch()
    for start in range(0, len(data), size):
        watch(1, data[start : start + size])
    assert watch.pod == pod_states.parse(said[-1])
    watch(1, event(said[-1], "DELETED"))
    assert watch.decided() and watch.ended()


def test_a_pod_has_ended_when_nothing_runs_in_it() -> None:
    """Its node may keep it for a minute longer."""
    running, over = {"running": {"startedAt": "x"}}, {"terminated": {"exitCode": 0}}
    for state, ended in ((running, False), (over, True)):
        assert pod_states.parse(leaving(told("Running", state))).ended is ended
        assert not pod_states.parse(told("Running", state)).ended


def test_who_waits_is_told_what_holds_a_pod_up() -> None:
    reasons: list[str] = []
    watch = pod_states.Watch(reasons.append)
    starting = told("Pending", {"waiting": {"reason": "ContainerCreating"}})
    ready = told("Running", {"running": {}}, conditions=READY)
    for said in (told("Pending"), told("Pending", conditions=[NOWHERE]), starting, ready):
        watch(1, event(said))
    assert reasons == ["Unschedulable: 0/1 nodes"] and watch.decided()


# On a cluster.


@pytest.fixture
def cluster(pods: Pods, tmp_path: Path) -> Iterator[Cli]:
    with on_pods(pods, tmp_path) as cli:
        yield cli


def hosts(mngr: Cli) -> dict[str, dict[str, Any]]:
    found = mngr("host", "list", "--format", "json").ok().json()["hosts"]
    return {each["name"]: each for each in found if each["provider_name"] == "kubernetes"}


def make(mngr: Cli, name: str, *words: str) -> Any:
    return mngr("host", "create", name, "--provider", "kubernetes", *words, timeout=180)


TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"


@pytest.mark.soak
def test_a_pod_is_made_as_asked_and_has_no_credentials(cluster: Cli, pods: Pods) -> None:
    cluster.env["SECRET_TOKEN"] = "hidden"
    words = ("-b", "cpus=0.2", "-b", "memory=256Mi", "-b", "node-selector=disk=fast")
    make(cluster, "My_box-", *words, "--max-age", "2h").ok()
    spec = json.loads(pods.told("get", pods.names(cluster)[0], "-o", "json"))["spec"]
    assert spec["containers"][0]["resources"]["limits"] == {"cpu": "200m", "memory": "256Mi"}
    assert spec["nodeSelector"] == {"disk": "fast"} and spec["activeDeadlineSeconds"] == 7260
    assert hosts(cluster)["My_box-"]["time_left"].startswith("1h 59m")

    cluster.create("foo@My_box-")
    limit = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null"
    assert cluster("exec", "foo", f"{limit}; hostname").ok().out == f"{256 << 20}\nmy-box\n"
    # What is mounted and set inside, against the tokens that open this cluster.
    inside = cluster("exec", "foo", f"env; ls {TOKEN} 2>&1; cat /proc/mounts").ok().out
    assert "hidden" not in inside and "serviceaccount" not in inside.replace(TOKEN, "")
    cluster("exec", "foo", f"test ! -e {TOKEN} && test ! -e ~/.kube").ok()
    for line in (pods.folder / "tokens").read_text().splitlines():
        cluster("exec", "foo", f"! grep -rqsF {line.split(',')[0]} /proc/self/environ ~ /tmp").ok()
    cluster("host", "stop", "My_box-").fails(2, "cannot be stopped")
    assert len(pods.containers()) == 1
    cluster("host", "destroy", "--force", "My_box-").ok()
    assert pods.containers() == []


@pytest.mark.soak
def test_a_service_account_is_there_when_asked_for(cluster: Cli, pods: Pods) -> None:
    pods.told("create", "namespace", "team")
    for name in ("default", "builder"):
        pods.told("create", "serviceaccount", name, "-n", "team")
    pods.told("create", "configmap", "kube-root-ca.crt", "--from-literal=ca.crt=none", "-n", "team")
    try:
        words = ("-b", "namespace=team", "-b", "service-account=builder")
        cluster.create("foo@.kubernetes", *words)
        token = cluster("exec", "foo", f"cat {TOKEN}").ok().out
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        asked = pods.folder / "review"
        asked.write_text(json.dumps(review))
        answer = json.loads(pods.told("create", "-f", str(asked), "-o", "json"))["status"]
        assert answer["user"]["username"] == "system:serviceaccount:team:builder"
        cluster("host", "destroy", "--force", "foo").ok()
    finally:
        pods.told("delete", "namespace", "team", "--wait=false")


@pytest.mark.soak
def test_few_permissions_are_enough(cluster: Cli, pods: Pods) -> None:
    """Those that docs/hosts.md names."""
    verbs = "--verb=create,get,list,watch,delete"
    pods.told("create", "role", "pods", verbs, "--resource=pods")
    pods.told("create", "role", "exec", "--verb=create", "--resource=pods/exec")
    for each in ("pods", "exec"):
        pods.told("create", "rolebinding", each, f"--role={each}", "--user=guest")
    try:
        cluster.create("foo@.kubernetes", "-b", "context=guest")
        assert cluster("exec", "foo", "cat README").ok().out == "hello\n"
        cluster("host", "destroy", "--force", "foo").ok()
    finally:
        for each in ("pods", "exec"):
            pods.told("delete", "rolebinding", each)
    assert "cannot list" in cluster(
        "host", "audit", "--provider", "kubernetes",
        env={"MNGR__PROVIDERS__KUBERNETES__CONTEXT": "guest"},
    ).fails(1).err  # fmt: skip


@pytest.mark.soak
def test_a_host_stays_where_it_was_made(cluster: Cli, pods: Pods) -> None:
    """Also when kubectl goes elsewhere by default."""
    cluster.create("foo@.kubernetes")
    config = shutil.copy(pods.folder / "config", cluster.base / "config")
    cluster.env["KUBECONFIG"] = str(config)
    words = ["kubectl", "config", "use-context", "guest"]
    subprocess.run(words, env=cluster.env, check=True, capture_output=True)
    assert cluster.state("foo") == "RUNNING"
    cluster("host", "destroy", "--force", "foo").ok()
    assert pods.names(cluster) == []


@pytest.mark.soak
def test_a_host_of_a_cluster_that_is_gone_can_be_forgotten(cluster: Cli, pods: Pods) -> None:
    make(cluster, "box").ok()
    cluster.env["KUBECONFIG"] = str(shutil.copy(pods.folder / "config", cluster.base))
    words = ["kubectl", "config", "delete-context", "admin"]
    subprocess.run(words, env=cluster.env, check=True, capture_output=True)
    cluster("host", "destroy", "box").fails(1, "context", "admin")
    cluster("host", "forget", "box").fails(1, "--force if kubernetes is gone for good")
    cluster("host", "forget", "--force", "box").ok()
    assert hosts(cluster) == {}
    # Once the cluster is back, the pod still says whose it is.
    cluster.env |= pods.env
    found = cluster("host", "audit", "--provider", "kubernetes", "--end").ok().out
    assert "created here, but its record is missing" in found and pods.names(cluster) == []


@pytest.mark.soak
def test_what_cannot_be_made_is_said_in_one_line(cluster: Cli, pods: Pods) -> None:
    make(cluster, "a", "-b", "namespace=none").fails(1, 'namespaces "none" not found')
    make(cluster, "a", "-b", "context=none").fails(2, "kubectl has no context 'none'")
    make(cluster, "a", "-b", "context=guest").fails(1, 'User "guest" cannot create')
    make(cluster, "a", "-b", "cpus=many").fails(2, "cpus=many is not a quantity")
    make(cluster, "a", "-b", "node-selector=fast").fails(2, "node-selector takes KEY=VALUE")
    make(cluster, "a", "-b", "service-account=none").fails(1, 'serviceaccount "none" not found')
    make(cluster, "a", "-b", "image=none.invalid/tools:1").fails(1, "ErrImagePull", "none.invalid")
    make(cluster, "a", "-b", "image=Not An Image").fails(1, "InvalidImageName")
    cluster.env["MNGR__PROVIDERS__KUBERNETES__PATIENCE"] = "3"
    make(cluster, "a", "-b", "node-selector=disk=none").fails(
        1, "did not start within 3 s", "Unschedulable", "0/1 nodes are available"
    )
    folder = cluster.base / "bin"
    folder.mkdir()
    (folder / "nsenter").symlink_to(str(shutil.which("nsenter")))
    words = ("host", "create", "a", "--provider", "kubernetes")
    cluster(*words, env={"PATH": str(folder)}).fails(1, "kubectl is not installed")
    assert hosts(cluster) == {}
    until(lambda: not pods.names(cluster), 120, "the end of the pods that never started")
    assert "No hosts" in cluster("host", "audit").ok().out


@pytest.mark.soak
def test_a_pod_ends_with_its_lifetime(cluster: Cli, pods: Pods) -> None:
    make(cluster, "old", "--max-age", "15s").ok()
    make(cluster, "quiet", "--idle-timeout", "15s").ok()
    cluster.create("foo@.kubernetes")
    (pod,) = (name for name in pods.names(cluster) if "foo" in name)
    # As a cluster's owner may do with any pod.
    pods.told("patch", pod, "-p", '{"spec": {"activeDeadlineSeconds": 1}}')

    def reasons() -> dict[str, str]:
        return {name: each["reason"] for name, each in hosts(cluster).items() if each["reason"]}

    def states() -> set[str]:
        return {each["state"] for each in hosts(cluster).values()}

    # A pod that is about to end may not answer any more, and is not known to have ended.
    until(lambda: states() == {"STOPPED"} and len(reasons()) == 3, 120, "their ends")
    assert reasons()["old"] == "reached its --max-age"
    assert reasons()["quiet"] == "idle for its --idle-timeout"
    assert "reached its activeDeadlineSeconds" in reasons()["foo"]
    agent = cluster.agent("foo")
    assert agent["state"] == "STOPPED" and "activeDeadlineSeconds" in agent["state_reason"]
    cluster("start", "foo").fails(5, "is stopped: reached its activeDeadlineSeconds")
