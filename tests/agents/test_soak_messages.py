"""Two hundred messages to ten busy agents at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.cli import Cli, Result
from tests.support.real import Stage, stage

pytestmark = pytest.mark.soak

AGENTS = [f"a{number}" for number in range(10)]
EACH = 20


@pytest.fixture
def claude(local: Cli) -> Iterator[Stage]:
    with stage(local, "claude") as ready:
        yield ready


def test_each_message_to_a_busy_agent_arrives_once_and_in_order(claude: Stage) -> None:
    server = claude.server
    # Busy all the time: what comes in while a command runs begins the same again.
    busy = server.on("go|note", say="Going.", run="sleep 1")
    for _ in range(7):
        busy.then(run="sleep 1")
    for name in AGENTS:
        claude.create(name, f"go {name}")

    def send(name: str) -> list[Result]:
        return [claude.say(name, f"note {name}-{number:02d}.") for number in range(EACH)]

    with ThreadPoolExecutor(len(AGENTS)) as pool:
        results = dict(zip(AGENTS, pool.map(send, AGENTS), strict=True))
    for name in AGENTS:
        claude.reaches(name, "WAITING", "end_of_turn")
        heard = re.findall(r"note (\S+)\.", server.conversation(f"go {name}").last.user_text)
        assert heard == [f"{name}-{number:02d}" for number in range(EACH)]
        for result in results[name]:
            result.ok()
    queued = [each for sent in results.values() for each in sent if "queued" in each.out]
    assert len(queued) > EACH * len(AGENTS) / 2, "they were not busy"
