"""The report in a real browser, opened from disk."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mngr_e2e.artifacts import slug
from mngr_view.writing import write
from tests.support.browser import Browser
from tests.support.journals import large_run, node

BACKGROUND = "getComputedStyle(document.body).backgroundColor"
ROWS = "[...document.querySelectorAll('tr[data-find]')].filter(r => r.offsetParent).length"


def page_of(report: Path, name: str) -> Path:
    return report / "tests" / f"{slug(node(name))}.html"


def various(report: Path) -> list[Path]:
    """Pages of each kind, those with the most in them."""
    folders = [sorted((report / name).iterdir()) for name in ("commits", "logs", "casts")]
    logs = [page for folder in folders for page in folder if page.suffix == ".html"]
    names = ("canary", "improved", "refused")
    return [report / "index.html", *(page_of(report, name) for name in names), *logs]


def test_no_page_complains_runs_foreign_code_or_asks_a_network(
    browser: Browser, report: Path
) -> None:
    for page in various(report):
        browser.open(page)
        assert browser.ask("window.pwned") is None, page
        assert browser.complaints() == [], page
        inside = [each for each in browser.asked_for() if not each.startswith("data:")]
        assert all(each.startswith(report.as_uri()) for each in inside), inside


def test_markup_that_slipped_in_would_not_run(
    browser: Browser, report: Path, tmp_path: Path
) -> None:
    """The policy of each page is the second wall, should an escape ever be missing."""
    text = (report / "index.html").read_text()
    attack = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>"
    attack += "<script src='https://example.invalid/x.js'></script>"
    page = tmp_path / "index.html"
    page.write_text(text.replace("</body>", f"{attack}</body>"))
    browser.open(page)
    assert browser.ask("window.pwned") is None
    assert any("Content Security Policy" in each for each in browser.complaints())


def test_everything_can_be_read_without_scripts(browser: Browser, report: Path) -> None:
    browser.scripts(False)
    browser.open(report / "index.html")
    said = browser.ask("document.body.innerText")
    for told in (
        "3 tests fail the same way",
        "1. Return the day",
        "mngr connect",
        "Confusing spots",
        "All tests",
    ):
        assert told in said
    assert browser.ask(ROWS) == 11
    assert browser.ask("document.getElementById('filter').offsetParent") is None


@pytest.mark.parametrize("width", [360, 1200])
def test_no_page_is_wider_than_the_window(browser: Browser, report: Path, width: int) -> None:
    browser.size(width, 800)
    for page in various(report):
        browser.open(page)
        browser.ask("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert browser.ask("document.documentElement.scrollWidth") <= width, page


def test_dark_and_light_follow_the_reader(browser: Browser, report: Path) -> None:
    browser.open(report / "index.html")
    assert browser.ask(BACKGROUND) == "rgb(255, 255, 255)"
    browser.prefer("dark")
    assert browser.ask(BACKGROUND) == "rgb(15, 19, 24)"


def test_words_narrow_the_table_and_a_count_leads_to_its_tests(
    browser: Browser, report: Path
) -> None:
    browser.open(report / "index.html")
    browser.type("#filter", "died crashed")
    browser.until(f"{ROWS} === 2")
    browser.click(".tile a[href='#end-died']")
    browser.until("location.hash === '#end-died'")


def test_a_link_to_a_test_opens_its_page(browser: Browser, report: Path) -> None:
    browser.open(report / "index.html")
    browser.click("section.ending a")
    browser.until(
        "document.querySelector('h1')?.innerText.startsWith('tests/test_notes.py::test_')"
    )


def test_a_recording_plays(browser: Browser, report: Path) -> None:
    [page] = (report / "casts").glob("*.html")
    browser.open(page)
    browser.until("!!document.querySelector('.ap-player')")
    browser.click(".ap-overlay-start")
    browser.until("document.querySelector('.ap-term').innerText.includes('played')")
    assert browser.complaints() == []
    browser.open(page_of(report, "canary"))
    assert browser.ask("document.querySelector('iframe').offsetParent !== null")


def test_a_thousand_tests_open_without_delay(browser: Browser, tmp_path: Path) -> None:
    """Under 2 s on a quiet machine, which the benchmark measures; here others are at work too."""
    page = write(large_run(tmp_path, 1000).folder, tmp_path / "out")
    began = time.monotonic()
    browser.open(page)
    assert browser.ask(ROWS) == 1000
    assert time.monotonic() - began < 15
