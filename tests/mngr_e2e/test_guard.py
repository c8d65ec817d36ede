"""The process that outlives pytest, tested with pytest processes that are killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from mngr_e2e.commands import tree
from mngr_e2e.commands.guard import Guard, note, unfinished
from mngr_e2e.redaction import Redactor


def test_it_leaves_at_the_word_though_the_pipe_is_still_open(tmp_path: Path) -> None:
    guard = Guard(tmp_path)
    held = os.dup(guard.pipe)  # like a child that pytest has forked
    assert guard.close() == 0
    os.close(held)


def test_a_run_goes_on_without_it(tmp_path: Path) -> None:
    guard = Guard(tmp_path)
    tree.send([guard.pid], signal.SIGKILL)
    for _ in range(2):
        guard.note(tmp_path, Redactor({}))
    assert guard.close() == -signal.SIGKILL


def test_it_knows_of_tests_that_have_not_ended_what_to_take_out(tmp_path: Path) -> None:
    redact = Redactor({"A_TOKEN": "hunter22"}, ["id-[0-9]+"])
    one, two = tmp_path / "one", tmp_path / "two"
    notes = [note(one, redact), note(two, Redactor({})), note(one, None)]
    assert list(unfinished(notes)) == [two]
    redact.add("told-later")
    found = unfinished([*notes, note(two, redact), note(one, redact)[:-5]])
    assert found[two]("hunter22 id-7 told-later") == "[A_TOKEN] [redacted] [secret]"
    assert list(found) == [two]
