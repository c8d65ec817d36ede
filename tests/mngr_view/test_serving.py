"""`mngr view`: the pages on loopback, for who knows the address."""

from __future__ import annotations

import http.client
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.mngr_view.test_report import words
from tests.support.browser import Browser
from tests.support.cli import Cli
from tests.support.journals import Story


@pytest.fixture
def run(local: Cli, story: Story) -> Path:
    folder = local.controller_home / "tmr/night"
    shutil.copytree(story.folder, folder, symlinks=True)
    return folder


@pytest.fixture
def server(local: Cli, run: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = local.start("view", "night")
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def url(server: subprocess.Popen[bytes]) -> str:
    assert server.stdout is not None
    return server.stdout.readline().decode().strip()


def ask(url: str, path: str, host: str = "", method: str = "GET") -> http.client.HTTPResponse:
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.netloc, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host or where.netloc)
    connection.endheaders()
    return connection.getresponse()


def test_the_pages_are_served_to_who_knows_the_address(
    browser: Browser, server: subprocess.Popen[bytes], url: str
) -> None:
    browser.open(url)
    assert "3 tests fail the same way" in browser.ask("document.body.innerText")
    browser.click("section.ending a")
    browser.until("document.querySelector('h1')?.innerText.startsWith('tests/')")
    assert [each for each in browser.complaints() if "favicon" not in each] == []
    server.send_signal(signal.SIGINT)
    assert server.wait(60) == 0


def test_nothing_else_is_served_and_to_nobody_else(url: str, run: Path) -> None:
    token = urlsplit(url).path.split("/")[1]
    (run / "report/way-out").symlink_to("/etc")
    (run / "report/passwd.html").symlink_to("/etc/passwd")
    good = ask(url, f"/{token}/index.html")
    assert good.status == 200 and good.headers["X-Content-Type-Options"] == "nosniff"
    for path in (
        "/index.html",
        "/wrong/index.html",
        "//index.html",
        f"/{token}/../journal.jsonl",
        f"/{token}/..%2fjournal.jsonl",
        f"/{token}//etc/passwd",
        f"/{token}/%2fetc/passwd",
        f"/{token}/way-out/passwd",
        f"/{token}/passwd.html",
        f"/{token}/.mngr-report",
        f"/{token}/tests",
        f"/{token}/a%00b",
        f"/{token}/%ff",
    ):
        answer = ask(url, path)
        assert (answer.status, answer.read()) == (404, b""), path
    assert ask(url, f"/{token}/index.html", host="evil.example").status == 404
    assert ask(url, f"/{token}/index.html", method="POST").status == 501


def test_what_an_agent_wrote_is_handed_over_as_a_file(url: str, run: Path) -> None:
    token = urlsplit(url).path.split("/")[1]
    [cast] = (run / "report/casts").glob("*.cast")
    answer = ask(url, f"/{token}/casts/{cast.name}")
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.read() == cast.read_bytes()


def test_a_bundle_is_the_report_as_a_folder(local: Cli, run: Path) -> None:
    page = local("view", "--bundle", str(local.base / "bundle")).ok().out.strip()
    assert "night done" in words(Path(page))
    shutil.rmtree(run)
    local("view", str(local.base / "bundle"), "--bundle", "x").fails(2, "already")
    local("view").fails(4, "no runs yet")
    local("view", str(local.base)).fails(4, "neither")
    local("view", "--port", "99999").fails(2, "port")


def test_a_port_that_is_taken_is_named(local: Cli, run: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        local("view", str(run), "--port", port).fails(1, f"port {port} cannot be used")


def test_the_head_of_a_page_has_its_length_and_no_body(url: str) -> None:
    answer = ask(url, urlsplit(url).path, method="HEAD")
    assert int(answer.headers["Content-Length"]) > 1000 and answer.read() == b""
