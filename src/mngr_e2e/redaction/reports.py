"""Remove secrets from what pytest shows of a failure: message, values and captured output."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import pytest

T = TypeVar("T")


def redact_report(report: pytest.TestReport, redact: Callable[[str], str]) -> None:
    if report.longrepr is not None:
        report.longrepr = redacted(report.longrepr, redact)
    report.sections = redacted(report.sections, redact)


def redacted(shown: T, redact: Callable[[str], str]) -> T:
    """Return a tree of texts without secrets; pytest's own objects are changed in place."""
    found: object = shown
    if isinstance(shown, str):
        found = redact(shown)
    elif isinstance(shown, list):
        found = [redacted(each, redact) for each in shown]
    elif isinstance(shown, tuple):
        found = tuple(redacted(each, redact) for each in shown)
    elif hasattr(shown, "toterminal"):
        for name, value in vars(shown).items():
            setattr(shown, name, redacted(value, redact))
    return cast("T", found)
