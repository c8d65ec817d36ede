"""Modal sandboxes as hosts: their requests and their failures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mngr.hosts.modal.bucket import Bucket
from mngr_tmr.dispatch.throttle import host_cost, over_budget
from mngr_tmr.journal.model import Run, Task, Try
from mngr_tmr.run import forecast
from mngr_tmr.run.costs import Forecast, HostTime
from mngr_tmr.run.options import Options
from tests.hosts.test_leases import AFTER, BEFORE, CUT, RESTART
from tests.support.cli import KILL_AT, ROOT, Cli, until
from tests.support.cloud.running import Cloud, owner
from tests.support.places import ended, on_cloud


@pytest.fixture
def modal(cloud: Cloud, tmp_path: Path) -> Iterator[Cli]:
    with on_cloud(cloud, tmp_path / "world") as cli:
        yield cli


def create(mngr: Cli, name: str, *words: str) -> None:
    mngr("host", "create", name, "--provider", "modal", *words).ok()


def hosts(mngr: Cli) -> dict[str, dict[str, Any]]:
    found = mngr("host", "list", "--format", "json").ok().json()["hosts"]
    return {each["name"]: each for each in found if each["provider_name"] == "modal"}


def asked(cloud: Cloud, mngr: Cli) -> dict[str, Any]:
    """Return the request that the only sandbox was created from."""
    (box,) = cloud.sandboxes(owner(mngr))
    return cloud.asked(box)


def state(mngr: Cli) -> Path:
    (found,) = (mngr.controller_home / "modal").glob("host-*.json")
    return found


def test_a_sandbox_is_made_as_asked(modal: Cli, cloud: Cloud, tmp_path: Path) -> None:
    cloud.order(owner(modal), secrets={"keys": {"API_KEY": "hush"}})
    (tmp_path / "Dockerfile").write_text("FROM debian\nRUN echo mine\n")
    create(
        *(modal, "box", "-b", "cpu=2.5", "-b", "memory=4g", "-b", "region=us-east"),
        *("-b", "secret=keys", "-b", "volume=cache:/cache", "-b", "cidr=10.0.0.0/8,1.2.3.4/32"),
        *("-b", f"file={tmp_path}/Dockerfile", "--max-age", "1h", "--host-label", "team=web"),
    )
    made = asked(cloud, modal)
    definition, tags = made["definition"], {x["tag_name"]: x["tag_value"] for x in made["tags"]}
    note = json.loads((modal.controller_home / "hosts" / "modal" / "box.json").read_text())
    assert (tags["mngr-host"], tags["mngr-host-name"]) == (note["id"], "box")
    assert tags["team"] == "web" and hosts(modal)["box"]["tags"] == {"team": "web"}
    assert abs(float(tags["mngr-host-ends"]) - note["time"] - 3600) < 2
    assert definition["resources"] == {
        "memory_mb": 4096,
        "milli_cpu": 2500,
        "gpu_config": {},
    }
    assert definition["timeout_secs"] == 3600 + 900
    assert definition["experimental_options_v2"] == {"enable_exit_snapshot": "True"}
    assert definition["scheduler_placement"]["regions"] == ["us-east"]
    assert definition["network_access"]["allowed_cidrs"] == ["10.0.0.0/8", "1.2.3.4/32"]
    image = cloud.asked(definition["image_id"])
    assert image["base_images"] and "RUN echo mine" in str(
        cloud.asked(image["base_images"][0]["image_id"])["dockerfile_commands"]
    )
    modal.create("foo@box")
    told = (
        modal("exec", "foo", "echo $API_KEY; nproc; echo x > /cache/x; hostname; id -un").ok().out
    )
    assert told.split() == ["hush", "3", "modal", "root"]
    # A second sandbox shares the volume and the image, which is not built again.
    cloud.order(owner(modal))
    create(modal, "other", "-b", "volume=cache:/cache", "-b", "offline=yes", "-b", "gpu=T4")
    modal.create("bar@other")
    assert modal("exec", "bar", "cat /cache/x").ok().out == "x\n"
    create(modal, "third")
    methods = Counter(method for _, method in cloud.requests(owner(modal)))
    assert methods["ImageGetOrCreate"] == 4, "two layers for each of two images"


def test_what_cannot_be_made_leaves_nothing(modal: Cli, cloud: Cloud) -> None:
    words = ("host", "create", "box", "--provider", "modal")
    modal(*words, "-b", "colour=red").fails(2, "modal takes image")
    modal(*words, "-b", "cpu=many").fails(2, "cpu=many")
    modal(*words, "-b", "volume=here").fails(2, "NAME:/PATH")
    modal(*words, "--max-age", "25h").fails(2, "24 hours")
    modal(*words, "-b", "secret=absent").fails(1, "Secret 'absent' not found")
    modal(*words, "-b", "image=im-absent").fails(1, "im-absent")
    cloud.order(owner(modal), build="no such base")
    modal(*words, "-b", "base=other").fails(1, "build the image", "no such base")
    cloud.order(owner(modal), quota=0)
    modal(*words).fails(1, "Workspace sandbox limit reached", "destroy hosts")
    cloud.order(owner(modal), deny=True)
    assert "Token validation failed" in modal(*words).fails(1, "modal token new").err
    cloud.order(owner(modal))
    assert hosts(modal) == {} and not cloud.sandboxes(owner(modal))


def test_without_a_token_everything_else_is_listed(cloud: Cloud, tmp_path: Path) -> None:
    with on_cloud(cloud, tmp_path / "world") as modal:
        create(modal, "box")
        modal.create("here")
        modal.create("there@box")
        without = {"MODAL_TOKEN_ID": "", "MODAL_TOKEN_SECRET": ""}
        listed = modal("list", "--format", "{name} {state}", env=without).ok()
        assert listed.out.splitlines() == ["here RUNNING", "there UNREACHABLE"]
        (line,) = listed.err.splitlines()
        assert "no token found: run `modal token new`" in line
        found = modal("provider", "list", "--format", "json", env=without).ok().json()
        reason = {each["name"]: each["reason"] for each in found["providers"]}["modal"]
        assert "modal token new" in reason
        modal("create", "x@.modal", "--", "true", env=without).fails(1, "modal token new")
        assert "modal token new" in modal("host", "audit", env=without).fails(1).err
    ended(modal)


def test_nothing_of_the_sdk_is_imported_to_list(modal: Cli, cloud: Cloud) -> None:
    modal("list").ok()
    modal("provider", "list").ok()
    assert cloud.requests(owner(modal)) == [] and modal.processes() == []


def test_a_lost_answer_leaves_no_second_sandbox(modal: Cli, cloud: Cloud) -> None:
    """The SDK asks again, and Modal reports that the name is taken: by its first attempt."""
    cloud.order(owner(modal), lose={"SandboxCreateV2": 1})
    create(modal, "box")
    assert len(cloud.sandboxes(owner(modal))) == 1
    modal.create("foo@box")
    # No attempt gets an answer: the sandbox is ended, and the error reports it.
    cloud.order(owner(modal), lose={"SandboxCreateV2": 100, "SandboxListV2": 100})
    modal("host", "create", "lost", "--provider", "modal").fails(1, "modal")
    cloud.order(owner(modal))
    assert len(cloud.sandboxes(owner(modal))) == 2
    audit = modal("host", "audit", "--end").ok().out
    assert "its creation was interrupted" in audit
    assert len(cloud.sandboxes(owner(modal))) == 1


def test_a_stopped_host_and_its_agents_come_back(modal: Cli, cloud: Cloud) -> None:
    modal.create("foo@.modal")
    modal("exec", "foo", "echo kept > kept.txt; rm README").ok()
    (first,) = cloud.sandboxes(owner(modal))
    modal("host", "stop", "foo").ok()
    assert cloud.sandboxes(owner(modal)) == []
    agent = modal.agent("foo")
    assert agent["state"] == "STOPPED" and "kept as a snapshot" in agent["state_reason"]
    modal("exec", "foo", "true").fails(5, "host foo is stopped: its files are kept as a snapshot")
    modal("host", "start", "foo").ok()
    assert cloud.sandboxes(owner(modal)) != [first]
    assert modal.state("foo") == "RUNNING"
    assert modal("exec", "foo", "cat kept.txt; ls").ok().out == "kept\nkept.txt\n"

    # Its machine fails while the agent runs: Modal keeps its files, and a new sandbox starts from
    # them.
    modal("exec", "foo", "echo more > more.txt").ok()
    cloud.end(owner(modal), *cloud.sandboxes(owner(modal)))
    agent = modal.agent("foo")
    assert (agent["state"], agent["host"]["state"]) == ("STOPPED", "STOPPED")
    assert "Modal failed" in agent["state_reason"]
    modal("start", "foo").ok()
    assert modal.state("foo") == "RUNNING"
    assert modal("exec", "foo", "cat kept.txt more.txt").ok().out == "kept\nmore\n"

    image = modal("host", "snapshot", "foo").ok().out.rstrip(".\n").split()[-1]
    create(modal, "twin", "-b", f"image={image}")
    assert modal("host", "destroy", "foo", "--force").ok().out.count("im-") == 1


def test_a_snapshot_that_expired_is_an_error(modal: Cli, cloud: Cloud) -> None:
    create(modal, "box")
    modal("host", "stop", "box").ok()
    kept = json.loads(state(modal).read_text())
    state(modal).write_text(json.dumps(kept | {"taken": kept["taken"] - 31 * 86400}))
    modal("host", "start", "box").fails(1, "30 days")
    state(modal).write_text(json.dumps(kept))
    modal("host", "start", "box").ok()
    assert hosts(modal)["box"]["state"] == "RUNNING"


def test_a_host_ends_itself_and_is_kept(modal: Cli, cloud: Cloud) -> None:
    """It ends at its lifetime, and when it is idle, also while no mngr command runs."""
    modal.create("old@.modal", "--max-age", "1h")
    create(modal, "quiet", "--idle-timeout", "3s")
    box = next(x for x in cloud.sandboxes(owner(modal)) if "old" in str(cloud.asked(x)["tags"]))
    script = "echo kept > /kept; for x in ~/.mngr/.began.*; do echo 1 > $x; done; kill 1"
    cloud.inside(box, script, ends=True)
    until(lambda: modal.state("old") == "STOPPED", 60, "the end of the old host")
    until(lambda: hosts(modal)["quiet"]["state"] == "STOPPED", 60, "the end of the quiet host")
    assert hosts(modal)["quiet"]["reason"] == "idle for its --idle-timeout"
    modal("host", "start", "quiet").ok()
    until(lambda: hosts(modal)["quiet"]["state"] == "STOPPED", 60, "its end again")


@pytest.mark.soak
def test_a_sandbox_that_nears_its_end_is_kept_before(modal: Cli, cloud: Cloud) -> None:
    """The bridge checks once a minute. At the end itself, Modal would save it too."""
    create(modal, "box", "--max-age", "14m")
    taken = lambda: [m for _, m in cloud.requests(owner(modal)) if m == "TaskSnapshotFilesystem"]  # noqa: E731
    until(taken, 100, "a snapshot")
    noted = lambda: json.loads(state(modal).read_text())["image"].startswith("im-")  # noqa: E731
    until(noted, 30, "the note of its image")


@pytest.mark.soak
def test_a_snapshot_may_take_longer_than_the_sdk_allows(modal: Cli, cloud: Cloud) -> None:
    create(modal, "box")
    cloud.order(owner(modal), hold={"TaskSnapshotFilesystem": 70})
    modal("host", "stop", "box", timeout=200).ok()
    cloud.order(owner(modal))
    modal("host", "start", "box").ok()


def test_one_list_serves_everybody(modal: Cli, cloud: Cloud) -> None:
    """Reading agents makes no request; a list is requested only if a host does not answer."""
    for name in ("one", "two", "three"):
        create(modal, name)
        modal.create(f"{name}@{name}")
    cloud.order(owner(modal), page=2)
    before = len(cloud.requests(owner(modal)))
    modal("list").ok()
    after = cloud.requests(owner(modal))[before:]
    assert {method for _, method in after} <= {
        *("TaskExecStart", "TaskExecStdinWrite", "TaskExecStdioRead", "TaskExecWait"),
    }
    cloud.end(owner(modal))
    modal("list").ok()
    methods = Counter(method for _, method in cloud.requests(owner(modal))[before:])
    assert methods["SandboxListV2"] <= 4 and methods["SandboxWaitV2"] <= 2 * 3
    before = len(cloud.requests(owner(modal)))
    assert {modal.state(name) for name in ("one", "two", "three")} == {"STOPPED"}
    again = Counter(method for _, method in cloud.requests(owner(modal))[before:])
    assert again["SandboxWaitV2"] == 0, "an end is final"


def test_another_home_s_sandboxes_are_left_alone(modal: Cli, cloud: Cloud, tmp_path: Path) -> None:
    create(modal, "box")
    with on_cloud(cloud, tmp_path / "other") as other:
        other.env["MODAL_TOKEN_ID"] = owner(modal)  # the same account
        create(other, "box")
        assert "created by another home" in other("host", "audit", "--end").ok().out
        other("host", "destroy", "box").ok()
        other.env["MODAL_TOKEN_ID"] = "nobody"
    assert len(cloud.sandboxes(owner(modal))) == 1
    (modal.controller_home / "hosts" / "modal" / "box.json").unlink()
    audit = modal("host", "audit", "--provider", "modal", "--end").ok().out
    assert "its record is missing" in audit and not cloud.sandboxes(owner(modal))


def test_requests_of_many_processes_share_one_rate(tmp_path: Path) -> None:
    """A hundred concurrent requests are spread over five seconds, with bursts of five."""
    path = str(tmp_path / "rate")
    with ThreadPoolExecutor(10) as pool:
        waits = sorted(pool.map(lambda _: Bucket(path).take(1000.0), range(100)))
    assert sum(wait < 0.05 for wait in waits) == 5 and 5.25 < waits[-1] < 5.30
    for first, last in zip(waits, waits[25:], strict=False):
        assert last - first >= 0.99, "more than 25 in a second"
    Path(path).write_bytes(b"torn")
    assert Bucket(path).take() == 0.0
    assert os.stat(path).st_size == 20


def killed(modal: Cli, step: str) -> None:
    """Begin to create an agent on a new sandbox, and kill mngr at that step."""
    words = ("create", f"{step.replace('_', '-')}@.modal", "--no-connect", "--", "sleep", "1000")
    assert modal(*words, env={KILL_AT: step}, timeout=200).code == -9


def begun(modal: Cli, cloud: Cloud, name: str, hold: float) -> None:
    """Kill mngr while Modal creates a sandbox; the bridge waits for the answer and records it."""

    def asked() -> int:
        return sum(method == "SandboxCreateV2" for _, method in cloud.requests(owner(modal)))

    before = asked()
    cloud.order(owner(modal), hold={"SandboxCreateV2": hold})
    making = modal.start("host", "create", name, "--provider", "modal")
    # The note does not count, because it is written before the request to the bridge.
    until(lambda: asked() > before, 60, "the request")
    making.kill()
    making.communicate()
    cloud.order(owner(modal))


def accounted(modal: Cli, cloud: Cloud, steps: tuple[str, ...]) -> None:
    """Check that `audit` finds every sandbox after a kill at any step; `--end` keeps whole ones."""
    for step in steps:
        killed(modal, step)
    before = len(cloud.sandboxes(owner(modal)))
    begun(modal, cloud, "making", hold=2)
    until(lambda: len(cloud.sandboxes(owner(modal))) == before + 1, 30, "the sandbox")
    found = modal("host", "audit", "--format", "json").json()["hosts"]
    problems = {each["name"].replace("-", "_"): each["problem"] for each in found}
    whole = [step for step in steps if step not in (*BEFORE, *CUT)]
    assert problems == {
        **dict.fromkeys(BEFORE, "never created: its creation was interrupted"),
        **dict.fromkeys(CUT, "its creation was interrupted"),
        **dict.fromkeys(whole, ""),
    }
    assert sum(each["running"] for each in found) == len(cloud.sandboxes(owner(modal)))
    modal("host", "audit", "--end").ok()
    assert len(cloud.sandboxes(owner(modal))) == len(whole)


def test_a_sandbox_whose_making_was_cut_short_is_found(modal: Cli, cloud: Cloud) -> None:
    accounted(modal, cloud, ("host_noted", "host_made", "launched"))


def test_a_sandbox_whose_making_was_cut_short_can_be_destroyed(modal: Cli, cloud: Cloud) -> None:
    """It was created without a recorded answer, is being created, or was never requested."""
    for step in ("host_made", "host_noted"):
        words = ("host", "create", step.replace("_", "-"), "--provider", "modal")
        assert modal(*words, env={KILL_AT: step}).code == -9
    states = {name: each["state"] for name, each in hosts(modal).items()}
    assert states == {"host-made": "CREATING", "host-noted": "CREATING"}
    begun(modal, cloud, "making", hold=3)
    for name in ("making", "host-made", "host-noted"):
        modal("host", "destroy", "--force", name).ok()
    methods = Counter(method for _, method in cloud.requests(owner(modal)))
    assert methods["SandboxTerminateV2"] == 2, "one that is being made is waited for"
    assert cloud.sandboxes(owner(modal)) == [] and hosts(modal) == {}


@pytest.mark.soak
def test_every_sandbox_is_accounted_for_wherever_mngr_was_killed(modal: Cli, cloud: Cloud) -> None:
    accounted(modal, cloud, (*BEFORE, "host_made", *AFTER))
    modal("create", "files@files", "--no-connect", "--", "sleep", "1000").ok()
    for verb, step in zip(("stop", "start"), RESTART, strict=True):
        assert modal("host", verb, "launched", env={KILL_AT: step}).code == -9
        modal("host", verb, "launched").ok()
    assert modal.state("launched") == modal.state("files") == "RUNNING"


def test_what_a_sandbox_costs_is_shown(modal: Cli, cloud: Cloud) -> None:
    """By the prices in the settings, for the time that it ran; a stopped one costs nothing more."""
    prices = ("-S", "providers.modal.cpu_price=1", "-S", "providers.modal.memory_price=0.5")
    create(modal, "box", "-b", "cpu=2", "-b", "memory=4g")  # 2 * 1 + 4 * 0.5: four dollars a second
    modal("host", "stop", "box").ok()
    kept = json.loads(state(modal).read_text())

    def cost() -> float:
        found = modal("host", "list", "--format", "json", *prices).ok().json()["hosts"]
        return float({each["name"]: each["cost"] for each in found}["box"])

    assert kept["ran"] > 0 and abs(cost() - 4 * kept["ran"]) < 0.001
    used = modal("usage", "--format", "json", *prices).ok().json()["hosts"]
    assert [(each["name"], each["cost"] > 0) for each in used] == [("box", True)]
    assert "cost of hosts so far: $" in modal("usage", *prices).ok().err
    modal("host", "start", "box").ok()
    assert cost() > 4 * kept["ran"]
    modal("host", "list", "-S", "providers.modal.cpu_price=cheap").fails(2, "cpu_price=cheap")


def test_a_run_counts_its_hosts_against_its_budget() -> None:
    run = Run(name="r", options=Options(max_cost=1.0, agents_per_host=2))
    run.forecast = Forecast(agents=1, minutes=10, host_rate=0.01)
    began = Try(number=1, agent_name="a", base="", intended=0.0, launched=100.0)
    run.tasks["t"] = Task(id="t", node_id="n", want="fix", tries=[began])
    assert host_cost(run, 200.0) == 0.5 and over_budget(run, 200.0) == ""
    assert over_budget(run, 301.0) == "the cost budget of the run ($1.00) is used up"
    began.ended_at = 150.0
    assert host_cost(run, 1000.0) == 0.25
    assert "Each host costs $36.00 per hour; about $3.00 in all." in forecast.told(run)
    run.hosts["h"] = HostTime(60.0, 1, 0.6)
    assert forecast.compared(run)[-1] == ("hosts", "$3.00 for hosts", "$0.60 for hosts")


@pytest.mark.soak
def test_the_checklist_for_modal_itself_works(modal: Cli) -> None:
    """On the test service nothing differs; without a token it fails with one line."""
    script = [sys.executable, str(ROOT / "scripts" / "modal_check.py"), "--no-arc"]
    done = subprocess.run(script, env=modal.env, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.count("same ") >= 18 and "DIFFERS" not in done.stdout
    without = {**modal.env, "MODAL_TOKEN_ID": "", "MODAL_TOKEN_SECRET": ""}
    done = subprocess.run(script, env=without, capture_output=True, text=True, timeout=200)
    assert done.returncode == 1 and "modal token new" in done.stderr
