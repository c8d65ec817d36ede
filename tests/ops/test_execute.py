"""A command for an agent that was only remembered: its output is complete, or it did not run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mngr.errors import Stale
from mngr.hosts.local import LocalHost
from mngr.model.completed import Completed
from mngr.model.state import Judgement, State
from mngr.ops.look.listing import Agent
from mngr.ops.work.execute import stream
from tests.support.fox import evidence, record


class Terse(LocalHost):
    """A host on which every command writes the first characters of the refusal."""

    written: int

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        timeout: float,
        sink: Callable[[int, bytes], None] | None = None,
    ) -> Completed:
        nonce = argv[6]
        assert sink is not None
        for character in f"{nonce}\n"[: self.written]:
            sink(2, character.encode())
        return Completed(code=0, stdout=b"", stderr=b"")


def errors(tmp_path: Path, written: int) -> bytes:
    host = Terse(str(tmp_path))
    host.written = written
    agent = Agent(
        host=host,
        evidence=evidence(record("command", 0.0)),
        verdict=Judgement(state=State.RUNNING, reason="", since=0.0),
        now=0.0,
    )
    found: list[bytes] = []
    stream(agent, ["true"], lambda _, data: found.append(data), timeout=1, remembered=True)
    return b"".join(found)


@pytest.mark.parametrize("written", [0, 1, 16])
def test_errors_that_begin_like_the_refusal_are_passed_on(tmp_path: Path, written: int) -> None:
    assert len(errors(tmp_path, written)) == written


def test_the_refusal_itself_is_not(tmp_path: Path) -> None:
    with pytest.raises(Stale):
        errors(tmp_path, 17)
