"""Prices by prefix; and the watcher's shell comes to the same sums as Python."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mngr.agents.base import AgentType, Tokens
from mngr.ops.limits.prices import TABLE, Prices, plain
from mngr.ops.limits.watcher import Limits, script
from mngr.settings.layers import Config
from tests.support.cli import until
from tests.support.records import agent_record

SHIPPED = Prices(Config("/nowhere", "", ()))


def test_the_longest_prefix_wins() -> None:
    for model, input in (
        ("claude-opus-4-20250514", 15),
        ("claude-opus-4-1-20250805", 15),
        ("claude-opus-4-6", 5),
        ("claude-opus-5-5", 4),
        ("claude-opus-9", 5),
        ("claude-haiku-4-5-20251001", 1),
        ("gpt-5-mini-2025-08-07", 0.25),
        ("gpt-5.4", 2.5),
        ("openrouter/anthropic/claude-sonnet-4-5", 3),
        ("eu.anthropic.claude-3-5-haiku-20241022-v1:0", 0.8),
    ):
        price = SHIPPED.find(model)
        assert price is not None and price.input == input, model
    for unknown in ("", "claude", "llama-4", "my-gpt-5"):
        assert SHIPPED.find(unknown) is None, unknown


def test_the_shipped_table_makes_sense() -> None:
    for prefix, (input, output, read, write) in TABLE.items():
        assert 0 < read < input <= write <= output, prefix
        assert plain(prefix) == prefix


@pytest.mark.parametrize(
    ("model", "input"),
    [("claude-next", 15), ("gpt-9", 30), ("o9", 30), ("gemini-9", 2), ("llama-4", 30)],
)
def test_a_model_without_a_price_counts_as_the_dearest_of_its_vendor(
    model: str, input: float
) -> None:
    assert SHIPPED.find(model) is None
    assert SHIPPED.guarded({model: Tokens(input=1_000_000)}) == input


class Metered(AgentType):
    conversation = ("used",)

    def meter(self) -> str:
        return 'sed "s/^/$1 /" "$1/used"'


def watching(
    folder: Path, meter: str, max_cost: float | None = None, max_tokens: int | None = None
) -> str:
    """Return the watcher's script, and write the files that it reads."""
    limits = {"max_cost": max_cost, "max_tokens": max_tokens}
    record = agent_record(launch="l", launch_time=0.0, **limits)
    (folder / "used").write_text(meter)
    (folder / "prices").write_text(SHIPPED.lines())
    (folder / "limits").write_text(Limits.of(record).lines())
    (folder / "started").write_text('{"launch":"l","pid":1,"time":1}\n')
    return script(str(folder), record, Metered(), 1)


def excess(
    folder: Path, meter: str, max_cost: float | None = None, max_tokens: int | None = None
) -> str:
    """What the watcher itself would say of this usage."""
    text = watching(folder, meter, max_cost, max_tokens)
    asked = text[: text.index("\nprintf '%s\\n' \"$launch $$\"")] + "\nread_limits\nexcess\n"
    done = subprocess.run(["sh", "-c", asked, "sh", "1"], capture_output=True, text=True)
    assert done.stderr == "", done.stderr
    return done.stdout.strip()


NUMBERS = st.integers(0, 10**10)
MODELS = st.one_of(
    st.sampled_from([*TABLE, "x/gpt-5", "us.anthropic.claude-opus-4-1", "nobody-knows"]),
    st.text("abcdefgo-0123456789./:", min_size=1, max_size=20),
)


@settings(max_examples=25)
@example(used=[("us.anthropic.claude-haiku-4-5-v1:0", 10**6, 0, 0, 0), ("x/gpt-5", 1, 0, 0, 0)])
@given(used=st.lists(st.tuples(MODELS, NUMBERS, NUMBERS, NUMBERS, NUMBERS), max_size=6))
def test_the_watcher_counts_as_we_do(
    used: list[tuple[str, int, int, int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("watcher")
    meter = "".join(" ".join(map(str, row)) + "\n" for row in used)
    models: dict[str, Tokens] = {}
    for model, input, output, read, write in used:
        more = Tokens(input=input, output=output, cache_read=read, cache_write=write)
        models[model] = models.get(model, Tokens()) + more
    tokens = sum(each.total for each in models.values())
    cost = SHIPPED.guarded(models)
    said = excess(folder, meter, max_tokens=1, max_cost=0.000001)
    if tokens > 1:
        assert said == f"over its limit of 1 tokens ({tokens} used)"
    said = excess(folder, meter, max_cost=0.000001)
    if cost > 0.0000011:
        shown = float(said.rpartition("($")[2].removesuffix(" used)"))
        assert shown == pytest.approx(cost, rel=1e-3)
    elif cost < 0.0000009:
        assert said == ""


def test_what_a_meter_prints_by_mistake_counts_nothing(tmp_path: Path) -> None:
    for torn in ("", "\n", "gpt-5", "gpt-5 100", "gpt-5 1 2 3\n", "gpt-5 x y z w\n"):
        assert excess(tmp_path, torn, max_tokens=1, max_cost=0.000001) == ""


@pytest.fixture
def launcher() -> Iterator[int]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process.pid
        process.kill()


@pytest.mark.parametrize("name", ["started", "metered"])
def test_a_named_pipe_in_place_of_a_file_does_not_delay_the_limit(
    name: str, launcher: int, tmp_path: Path
) -> None:
    text = watching(tmp_path, "gpt-5 100 0 0 0\n", max_tokens=1)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    argv = ["sh", "-c", text, "sh", str(launcher)]
    assert subprocess.run(argv, capture_output=True, timeout=30).stderr == b""
    said = (tmp_path / "over.l").read_text()
    assert said == '"over its limit of 1 tokens (100 used)"\n'


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small disk")
def test_a_limit_holds_though_nothing_can_be_written(launcher: int, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "nr_inodes=20", "mngr-test", str(small)]
    subprocess.run(mount, check=True)
    try:
        text = watching(small, "gpt-5 1 0 0 0\n", max_tokens=9)
        with subprocess.Popen(["sh", "-c", text, "sh", str(launcher)]) as process:
            until((small / "metered").exists, timeout=30)
            with contextlib.suppress(OSError):
                for number in range(20):
                    (small / str(number)).touch()
            (small / "used").write_text("gpt-5 100 0 0 0\n")
            assert process.wait(timeout=30) == 0
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


@pytest.mark.parametrize("name", ["prices", "limits", "watcher"])
def test_a_watcher_whose_files_were_replaced_leaves_the_limit_to_other_processes(
    name: str, launcher: int, tmp_path: Path
) -> None:
    text = watching(tmp_path, "", max_tokens=1)
    with subprocess.Popen(["sh", "-c", text, "sh", str(launcher)]) as process:
        until((tmp_path / "watcher").exists, timeout=30)
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "pipe").rename(tmp_path / name)
        try:
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()
