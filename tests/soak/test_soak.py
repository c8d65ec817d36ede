"""The long ones: many agents, many seeds, random kills. `make soak` runs them."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.audit import SEED
from tests.support.cli import Cli, until

pytestmark = pytest.mark.soak


@pytest.fixture(autouse=True)
def _say_the_seed() -> None:
    print(f"MNGR_SOAK_SEED={SEED}")


def test_three_hundred_agents_live_side_by_side(local: Cli) -> None:
    lines = [json.dumps({"name": f"a{n}", "args": ["sh", "-c", "cat > heard"]}) for n in range(300)]
    began = time.monotonic()
    made = local("create", "--batch", "-", input="\n".join(lines), timeout=600)
    print(f"300 creates in {time.monotonic() - began:.1f} s")
    assert made.code == 0, made.err[-2000:]
    assert len(made.out.splitlines()) == 300
    agents = local("list", "--format", "json").ok().json()["agents"]
    assert {agent["state"] for agent in agents} == {"RUNNING"}
    names = [f"a{n}" for n in range(300)]
    began = time.monotonic()
    local("message", *names, "-m", "to all of you", timeout=600).ok()
    print(f"300 messages in {time.monotonic() - began:.1f} s")
    folders = [Path(agent["work_dir"]) for agent in agents]
    until(lambda: all((f / "heard").read_text() == "to all of you\n" for f in folders), timeout=60)
    began = time.monotonic()
    local("stop", *names, timeout=900).ok()
    print(f"300 stops in {time.monotonic() - began:.1f} s")
    agents = local("list", "--format", "json").ok().json()["agents"]
    assert {agent["state"] for agent in agents} == {"STOPPED"}
    began = time.monotonic()
    local("destroy", "--force", *names, timeout=900).ok()
    print(f"300 destroys in {time.monotonic() - began:.1f} s")
    assert local("list", "--format", "json").ok().json()["agents"] == []
    assert local.processes() == []


def test_a_thousand_random_messages_arrive_byte_for_byte_and_in_order(local: Cli) -> None:
    from mngr.api import Mngr
    from mngr.settings.layers import Config

    dice = random.Random(SEED)
    local.create("ear", "--", "sh", "-c", "stty -echo; exec cat > heard")
    alphabet = "abc XYZ09-_;|&$`'\"\\#{}%~*?[]()<>!\t\né漢🙂"
    expected = ""
    home = str(local.controller_home)
    os.environ.update({key: local.env[key] for key in ("MNGR_HOST_DIR", "HOME")})
    api = Mngr(Config.load(home, str(local.repo), {}, []))
    for _ in range(1000):
        text = "".join(dice.choices(alphabet, k=dice.randrange(1, 400)))
        if not text.strip():
            continue
        assert api.message("ear", text).ok
        expected += text.removesuffix("\n") + "\n"
    heard = local.work_dir("ear") / "heard"
    until(lambda: heard.stat().st_size >= len(expected.encode()), timeout=60)
    assert heard.read_text() == expected


def test_two_hundred_concurrent_labels_all_stay(local: Cli) -> None:
    local.create("foo")
    with ThreadPoolExecutor(16) as pool:
        done = list(
            pool.map(lambda n: local("label", "foo", f"k{n}=v{n}", timeout=300), range(200))
        )
    assert [each.code for each in done] == [0] * 200, done[0].err
    assert local.agent("foo")["labels"] == {
        "project": "repo",
        **{f"k{n}": f"v{n}" for n in range(200)},
    }


def test_random_kills_never_lose_work_or_confuse_the_list(local: Cli) -> None:
    """kill -9 at random moments of random commands; each agent's file must always be somewhere."""
    dice = random.Random(SEED)
    names = [f"n{number}" for number in range(4)]
    precious: dict[str, str] = {}
    for turn in range(150):
        name = dice.choice(names)
        verb = dice.choice(
            ["create", "create", "destroy", "restore", "rename", "start", "stop", "gc"]
        )
        words = {
            "create": ["create", name, "--no-connect", "--", "sleep", "1000"],
            "destroy": ["destroy", "--force", name],
            "restore": ["restore", name],
            "rename": ["rename", name, dice.choice(names)],
            "start": ["start", name],
            "stop": ["stop", name],
            "gc": ["gc"],
        }[verb]
        process = local.start(*words)
        if dice.random() < 0.6:
            time.sleep(dice.random() * 0.4)
            process.send_signal(signal.SIGKILL)
        process.communicate()
        listed = local("list", "--format", "json").ok()
        assert "unreadable" not in listed.err
        for agent in listed.json()["agents"]:
            folder = Path(agent["work_dir"])
            if agent["id"] not in precious and folder.is_dir() and agent["state"] == "RUNNING":
                precious[agent["id"]] = f"work {turn}"
                (folder / "precious").write_text(precious[agent["id"]])
        for agent_id, content in precious.items():
            assert content in _found(local, agent_id), (
                f"turn {turn} {words}: {agent_id} lost {content}"
            )
    local("gc", timeout=300).ok()
    states = {agent["state"] for agent in local("list", "--format", "json").ok().json()["agents"]}
    assert states <= {"RUNNING", "STOPPED", "LOST", "FAILED"}
    print(
        f"{len(precious)} agents with work, {len(os.listdir(local.home / 'agents'))} still listed"
    )


def _found(cli: Cli, agent_id: str) -> list[str]:
    short = agent_id.removeprefix("agent-")[:8]
    places = [
        *cli.home.glob(f"worktrees/*-{short}/precious"),
        cli.home / "trash" / agent_id / "work/precious",
    ]
    return [place.read_text() for place in places if place.exists()]
