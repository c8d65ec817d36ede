"""A run of the whole pipeline with two hundred agents, each in its own sandbox."""

from __future__ import annotations

import html
import os
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import modal
from mngr_tmr.journal.model import Outcome
from tests.support.cloud import running
from tests.support.cloud.running import owner
from tests.support.places import on_cloud
from tests.support.robots import SETTINGS, Robots

MANY = int(os.environ.get("MNGR_MODAL_AGENTS", "200"))


@pytest.mark.soak
def test_two_hundred_agents_in_sandboxes(tmp_path: Path) -> None:
    if reason := running.why_not():
        pytest.skip(reason)
    root = Path("/")  # with Python and pytest, as the image of such a project would have
    with running.cloud(tmp_path / "cloud", root) as cloud, on_cloud(cloud, tmp_path / "w") as cli:
        found = modal.pipeline(cloud, cli, MANY, 16)
        latest = [task.latest for task in found.run.tasks.values() if task.latest]
        outcomes = Counter(each.ended.outcome for each in latest if each.ended)
        assert outcomes == {Outcome.UNCHANGED: MANY}
        assert cloud.sandboxes(owner(cli)) == []
        assert cli("host", "audit", "--provider", "modal", "--format", "json").json()["hosts"] == []
        assert found.most_in_a_second() <= modal.LIMIT and found.memory < 150
        assert found.run.forecast and found.run.forecast.host_rate
        assert all(host.cost for host in found.run.hosts.values())
        print(f"{found.seconds:.0f} s, {found.memory:.0f} MB, {found.methods()}")


VARIES = r"[0-9a-f]{12,40}|(\d+ min )?\d+(\.\d+)? (ms|s|min)\b|\d{4}-\d\d-\d\d [\d:]+ UTC"


def said(page: str, world: str) -> list[str]:
    """The words of a report but for hosts, times and what was spent."""
    bare = html.unescape(re.sub(r"<(style|script).*?</\1>|<[^>]+>", "\n", page, flags=re.S))
    masked = re.sub(VARIES, "#", re.sub(r" in all · .*", " in all", bare))
    lines = [line.strip().replace(f"/{world}/", "/WORLD/") for line in masked.splitlines()]
    return [line for line in lines if line.strip("#") and not re.search("host|modal|Foreca", line)]


@pytest.mark.soak
def test_a_run_on_modal_is_the_same_run(tmp_path: Path) -> None:
    """One word more in the command; the same commits, and the same answers for every test."""
    if reason := running.why_not():
        pytest.skip(reason)
    found = []
    with running.cloud(tmp_path / "cloud", Path("/")) as cloud:
        for name, more in (("here", ()), ("there", ("--provider", "modal"))):
            with on_cloud(cloud, tmp_path / name) as cli:
                robots = Robots(cli)
                cli.write("pyproject.toml", SETTINGS.replace("python -m", f"{sys.executable} -m"))
                robots.base = cli.commit("a Python that is not on PATH over there")
                cli(*robots.words, "--yes", "--workers", "1", *more, timeout=900).ok()
                tried = [(id, task.latest) for id, task in robots.run.tasks.items()]
                ended = {id: each.ended.outcome for id, each in tried if each and each.ended}
                hosts = len(robots.run.hosts)
                report = cli.controller_home / "tmr" / robots.name / "report" / "index.html"
                found.append((robots.branch(), ended, hosts, said(report.read_text(), name)))
    (branch, answers, hosts, page), (elsewhere, theirs, sandboxes, other) = found
    assert (branch, answers) == (elsewhere, theirs)
    assert page == other
    assert not hosts and sandboxes
