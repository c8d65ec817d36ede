"""The pytest plugin: the `e2e` fixture, and the outcome of each test in its artifacts."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mngr_e2e import artifacts, blocks, coverage, settings, switches
from mngr_e2e.artifacts import TestRecord
from mngr_e2e.commands.guard import Guard
from mngr_e2e.commands.tree import MARK
from mngr_e2e.environment import Directories, environment
from mngr_e2e.redaction.reports import redact_report
from mngr_e2e.runs import RunFolder
from mngr_e2e.session import E2eSession

SESSION = pytest.StashKey[E2eSession]()
_config: pytest.Config | None = None  # pytest_runtest_logreport gets none
RUN_ID = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    global _config
    _config = config
    worker: dict[str, str] = getattr(config, "workerinput", {})
    given = worker.get(switches.RUN) or switches.text(switches.RUN)
    config.stash[RUN_ID] = given or artifacts.new_run_id()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: pytest.Item) -> None:
    """Give the id of the run to all workers of xdist."""
    inputs: dict[str, str] = node.workerinput  # type: ignore[attr-defined]
    inputs[switches.RUN] = node.config.stash[RUN_ID]


@pytest.fixture(scope="session")
def e2e_settings(pytestconfig: pytest.Config) -> settings.Settings:
    """Return `[tool.mngr_e2e]`; a project may override this fixture."""
    return settings.load(pytestconfig.rootpath)


@pytest.fixture(scope="session")
def e2e_run_folder(pytestconfig: pytest.Config, e2e_settings: settings.Settings) -> Iterator[Path]:
    """Yield the folder of this run's artifacts."""
    base = pytestconfig.rootpath / e2e_settings.artifacts
    run = RunFolder(base, pytestconfig.stash[RUN_ID], e2e_settings.keep_runs)
    yield run.folder
    run.close()


@pytest.fixture(scope="session")
def e2e_guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    """Yield the guard, which ends all commands if pytest is killed."""
    guard = Guard(tmp_path_factory.getbasetemp())
    yield guard
    guard.close()


@pytest.fixture
def e2e(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    e2e_settings: settings.Settings,
    e2e_run_folder: Path,
    e2e_guard: Guard,
) -> Iterator[E2eSession]:
    """Yield a session with its own home and work directory."""
    session = _open(request, tmp_path, e2e_settings, e2e_run_folder, e2e_guard)
    request.node.stash[SESSION] = session
    session.save()
    try:
        session.prepare()
        yield session
    finally:
        session.close()
        e2e_guard.note(session.artifacts, None)
        coverage.combine(e2e_settings, session.artifacts)


def _open(
    request: pytest.FixtureRequest,
    base: Path,
    chosen: settings.Settings,
    run: Path,
    guard: Guard,
) -> E2eSession:
    folder = artifacts.open_test(run, request.node.nodeid)
    place = Directories(request.config.rootpath, base / "home", base / "work", folder).make()
    env = environment(chosen, place)
    env.update(coverage.variables(chosen, env, run, folder))
    env[MARK] = env.get(MARK, "") + guard.mark
    session = E2eSession(place, chosen, _record(request), env)
    session.redactor.on_change = lambda: guard.note(folder, session.redactor)
    session.redactor.on_change()
    return session


def _record(request: pytest.FixtureRequest) -> TestRecord:
    qualname = str(getattr(request.function, "__qualname__", request.node.name))
    cited = blocks.in_docstring(request.function.__doc__ or "")
    return TestRecord(
        request.node.nodeid,
        artifacts.source_sha256(request.path, qualname),
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
        blocks=[block.text for block in cited],
        noop=switches.is_on(switches.NOOP),
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    session = item.stash.get(SESSION, None)
    if session is not None:
        _judge(session.record_of_test, report)
        redact_report(report, session.redactor)
        if report.when == "teardown":
            session.finish()
            del item.stash[SESSION]
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record a crash: xdist reports a worker that died during a test without a phase."""
    if str(report.when) == "???" and _config is not None:
        base = _config.rootpath / settings.load(_config.rootpath).artifacts
        artifacts.mark_crashed(base / _config.stash[RUN_ID], report.nodeid)


def _judge(record: TestRecord, report: pytest.TestReport) -> None:
    """Set the outcome to the worst of the three phases, as pytest counts them."""
    if report.when == "call" or (report.when == "setup" and not report.passed):
        record.outcome = _outcome(report)
    elif report.when == "teardown" and report.failed:
        record.outcome = "error"


def _outcome(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return "xpassed" if report.passed else "xfailed"
    if report.failed and report.when != "call":
        return "error"
    return str(report.outcome)
