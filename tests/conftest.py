"""Fixtures: the CLI on two hosts, real hosts, engines and services."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import plugins
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

# A shell starts background processes with Ctrl-C ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadlines for single examples, because the machine may be loaded. `make soak` runs more
# examples.
settings.register_profile("mngr", deadline=None, max_examples=40)
settings.register_profile("soak", deadline=None, max_examples=1000)
settings.load_profile("mngr")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark expensive tests on the bare host for the soak, before pytest selects by marks."""
    for item in items:
        found = getattr(item, "callspec", None)
        if found and "bare" in found.params.values() and item.get_closest_marker("dear"):
            item.add_marker(pytest.mark.soak)


@pytest.fixture(params=["local", "bare"])
def mngr(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cli]:
    """Yield a CLI with its own home, on the local host and again on one behind `env -i sh`."""
    cli = Cli(tmp_path, provider=request.param)
    yield cli
    ended(cli)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Cli]:
    """Yield a CLI on the local host, for behaviour that does not depend on the host."""
    cli = Cli(tmp_path)
    yield cli
    ended(cli)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[machines.Lab]:
    """Yield two hosts with sshd, shared by all tests of a process; each test leaves them empty."""
    if reason := machines.why_not():
        pytest.skip(reason)
    with machines.lab(tmp_path_factory.mktemp("lab")) as made:
        made.start(2)
        yield made


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[docker_engine.Engine]:
    """Yield a Docker engine that all processes of this session share; tests leave it empty."""
    if reason := docker_engine.why_not():
        pytest.skip(reason)
    base = tmp_path_factory.getbasetemp()
    with docker_engine.engine(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) as made:
        yield made


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[running.Cloud]:
    """Yield Modal's service on loopback, one per process; each test has its own login."""
    if reason := running.why_not():
        pytest.skip(reason)
    if running.REAL in os.environ:
        yield running.Real()
        return
    with running.cloud(tmp_path_factory.mktemp("cloud")) as made:
        yield made


@pytest.fixture(scope="module")
def own_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[running.Cloud]:
    """Yield a separate service for a module whose tests stop and freeze it."""
    with running.cloud(tmp_path_factory.mktemp("cloud")) as made:
        yield made


@pytest.fixture(scope="session")
def pods() -> Iterator[kubernetes.Pods]:
    """Yield a Kubernetes cluster, only for the soak: building its programs takes ten minutes."""
    if reason := kubernetes.why_not():
        pytest.skip(reason)
    with kubernetes.pods() as made:
        yield made


@pytest.fixture(scope="module")
def own_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[docker_engine.Engine]:
    """Yield a separate engine for a module whose tests stop and freeze it."""
    with docker_engine.engine(tmp_path_factory.mktemp("engine")) as made:
        yield made


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[slurm_cluster.Cluster]:
    """Yield a separate cluster for a module, whose controller may stop answering for long."""
    with slurm_cluster.cluster(patience=300) as made:
        yield made


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """Yield the host of each provider in turn, which the test may cut off."""
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


# Docker by templates is slow, and Slurm by templates covers the same code.
DEAR = {
    each: pytest.param(each, marks=pytest.mark.soak) for each in ("docker-template", "kubernetes")
}


@pytest.fixture(params=[DEAR.get(each, each) for each in PLACES])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Yield the host of each provider in turn."""
    opened, why_not = PLACES[request.param]
    if reason := why_not():
        pytest.skip(reason)
    with opened(request, tmp_path) as found:
        yield found


@pytest.fixture(scope="session", autouse=True)
def _for_pytest_in_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Make pytest faster in tests that start it.

    It keeps the files of earlier runs, whose removal takes 40 s for 100,000 files, and does not
    load plugins that no test needs.
    """
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(tmp_path_factory.mktemp("inner"))
    os.environ["PYTEST_ADDOPTS"] = " ".join(plugins.OPTIONS)
