"""Reports to look at, written once: no test changes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr_view.writing import write
from tests.support.browser import Browser, program
from tests.support.journals import Story, whole_run


@pytest.fixture(scope="package")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return whole_run(tmp_path_factory.mktemp("told"))


@pytest.fixture(scope="package")
def report(story: Story, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run's report."""
    return write(story.folder, tmp_path_factory.mktemp("report") / "out").parent


@pytest.fixture(scope="package")
def shared_browser() -> Iterator[Browser]:
    if not program():
        pytest.skip("chromium is not installed")
    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(shared_browser: Browser) -> Browser:
    """As it comes: wide, light, with scripts."""
    shared_browser.size(1200, 900)
    shared_browser.prefer("light")
    shared_browser.scripts(True)
    return shared_browser
