"""The CLI as a fixture, on two hosts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.cli import Cli
from tests.support.cloud import running
from tests.support.lab import cluster as slurm_cluster
from tests.support.lab import engine as docker_engine
from tests.support.lab import kubernetes, machines
from tests.support.places import PLACES, Boxes, Place, ended, reaching
from tests.support.scheduling import pytest_xdist_make_scheduler
from tests.support.sites import SITES, Site
from tests.support.skips import pytest_configure

__all__ = ["pytest_configure", "pytest_xdist_make_scheduler"]

# A shell starts what it puts into the background with Ctrl-C ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Two loaded cores are no place for deadlines on single examples. `make soak` tries many more.
settings.register_profile("mngr", deadline=None, max_examples=40)
settings.register_profile("soak", deadline=None, max_examples=1000)
settings.load_profile("mngr")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before pytest chooses by marks."""
    for item in items:
        found = getattr(item, "callspec", None)
        if found and "bare" in found.params.values() and item.get_closest_marker("dear"):
            item.add_marker(pytest.mark.soak)


@pytest.fixture(params=["local", "bare"])
def mngr(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cli]:
    """The CLI in a world of its own, on the local host and again on one behind `env -i sh`."""
    cli = Cli(tmp_path, provider=request.param)
    yield cli
    ended(cli)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Cli]:
    """Only the local host: for what does not depend on where agents run."""
    cli = Cli(tmp_path)
    yield cli
    ended(cli)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[machines.Lab]:
    """Two hosts with sshd, shared by all tests of a process; each test leaves them empty."""
    if reason := machines.why_not():
        pytest.skip(reason)
    with machines.lab(tmp_path_factory.mktemp("lab")) as made:
        made.start(2)
        yield made


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[docker_engine.Engine]:
    """A Docker engine that all processes of this session share; each test leaves it empty."""
    if reason := docker_engine.why_not():
        pytest.skip(reason)
    base = tmp_path_factory.getbasetemp()
    with docker_engine.engine(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) as made:
        yield made


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[running.Cloud]:
    """Modal's service on the loopback, one per process; each test has a login of its own."""
    if reason := running.why_not():
        pytest.skip(reason)
    if running.REAL in os.environ:
        yield running.Real()
        return
    with running.cloud(tmp_path_factory.mktemp("cloud")) as made:
        yield made


@pytest.fixture(scope="module")
def own_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[running.Cloud]:
    """A service of a module's own, for tests that stop and freeze it."""
    with running.cloud(tmp_path_factory.mktemp("cloud")) as made:
        yield made


@pytest.fixture(scope="session")
def pods() -> Iterator[kubernetes.Pods]:
    """A Kubernetes cluster, for soak only: its programs are built for ten minutes, once."""
    if reason := kubernetes.why_not():
        pytest.skip(reason)
    with kubernetes.pods() as made:
        yield made


@pytest.fixture(scope="module")
def own_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[docker_engine.Engine]:
    """An engine of a module's own, for tests that stop and freeze it."""
    with docker_engine.engine(tmp_path_factory.mktemp("engine")) as made:
        yield made


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[slurm_cluster.Cluster]:
    """A cluster of a module's own, whose controller may be silent for long."""
    with slurm_cluster.cluster(patience=300) as made:
        yield made


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """Every provider's host in turn, which the test may cut off."""
    opened, why_not = SITES[request.param]
    if reason := why_not():
        pytest.skip(reason)
    with opened(request, tmp_path) as found:
        yield found


@pytest.fixture
def boxes(lab: machines.Lab, tmp_path: Path) -> Iterator[Boxes]:
    cli = reaching(lab, tmp_path)
    yield Boxes(cli, lab)
    ended(cli)
    for each in lab.machines:
        each.reset()


# Docker by templates is dear, and Slurm by templates shows the same.
DEAR = {
    each: pytest.param(each, marks=pytest.mark.soak) for each in ("docker-template", "kubernetes")
}


@pytest.fixture(params=[DEAR.get(each, each) for each in PLACES])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Every provider's host in turn."""
    opened, why_not = PLACES[request.param]
    if reason := why_not():
        pytest.skip(reason)
    with opened(request, tmp_path) as found:
        yield found


@pytest.fixture(scope="session", autouse=True)
def _for_pytest_in_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A pytest that a test starts neither removes what earlier runs left, 40 s for 100,000 files,
    nor loads hypothesis, which takes three times as long as all the rest of it."""
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(tmp_path_factory.mktemp("inner"))
    os.environ["PYTEST_ADDOPTS"] = "-p no:hypothesispytest"
