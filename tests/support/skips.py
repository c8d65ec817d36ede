"""Fail a run in CI if a test was skipped."""

from __future__ import annotations

import os

import pytest


class SkipsFail:
    """Records every skip, of a test or of a whole module, and fails the session for it."""

    def __init__(self) -> None:
        self.skipped: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        # An expected failure is reported as a skip too, but it did run.
        if report.skipped and not hasattr(report, "wasxfail"):
            where = report.longrepr
            self.skipped[report.nodeid] = where[2] if isinstance(where, tuple) else str(where)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.skipped and session.exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.skipped:
            terminalreporter.section("skipped, which fails the run because CI is set", red=True)
        for test, reason in sorted(self.skipped.items()):
            terminalreporter.line(f"{test}: {reason}", red=True)


def pytest_configure(config: pytest.Config) -> None:
    in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    # With xdist the workers only report; the controller sets the exit code.
    if in_ci and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipsFail(), "skips-fail")
