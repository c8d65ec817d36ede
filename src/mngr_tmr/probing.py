"""What the probe wrote -> tests and how they went. The file comes from agents' code: hostile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mngr.struct import Json
from mngr_tmr.model import Test, TestRun
from mngr_tmr.signatures import signature

LINE_LIMIT = 100_000
ORDER = {"passed": 0, "skipped": 1, "failed": 2}


@dataclass
class Probed:
    """One run of pytest, as the probe saw it."""

    tests: dict[str, Test] = field(default_factory=dict)
    runs: dict[str, TestRun] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    touched: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """The files each test needed; None where that cannot be told."""
    lines: dict[str, dict[str, str]] = field(default_factory=dict)
    """The lines each test runs, by file."""
    finished: bool = False
    begun: set[str] = field(default_factory=set)
    """Tests whose set-up passed."""
    called: set[str] = field(default_factory=set)


def parse(data: bytes) -> Probed:
    """Lines that are not the probe's are passed over."""
    probed = Probed()
    for entry in _entries(data):
        if "collected" in entry:
            node_id = _text(entry, "collected")
            probed.tests[node_id] = Test(node_id, _text(entry, "file"), _text(entry, "doc"))
        elif "error" in entry:
            probed.errors.append(f"{_text(entry, 'error')}: {_last_line(_text(entry, 'message'))}")
        elif "test" in entry:
            _note(probed, entry)
        elif "touched" in entry:
            probed.touched[_text(entry, "touched")] = _files(entry)
        elif "ran" in entry:
            probed.lines[_text(entry, "ran")] = _ran(entry)
        elif "finished" in entry:
            probed.finished = True
    for node_id in probed.begun - probed.called:
        _stopped_half_way(probed, node_id)
    return probed


def _files(entry: Mapping[str, Json]) -> tuple[str, ...] | None:
    files = entry.get("files")
    if entry.get("alone") is not True or not isinstance(files, list):
        return None
    return tuple(each for each in files if isinstance(each, str))


def _ran(entry: Mapping[str, Json]) -> dict[str, str]:
    lines = entry.get("lines")
    found = lines.items() if isinstance(lines, dict) else ()
    return {path: text for path, text in found if isinstance(text, str)}


def _entries(data: bytes) -> Iterator[Mapping[str, Json]]:
    for line in data.split(b"\n"):
        if not line or len(line) > LINE_LIMIT:
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            yield entry


def _text(entry: Mapping[str, Json], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else ""


def _note(probed: Probed, entry: Mapping[str, Json]) -> None:
    """A test is what the worst of its set-up, call and teardown is."""
    node_id, outcome = _text(entry, "test"), _text(entry, "outcome")
    if outcome not in ORDER:
        return
    probed.begun |= {node_id} if _text(entry, "stage") == "setup" and outcome == "passed" else set()
    probed.called |= {node_id} if _text(entry, "stage") == "call" else set()
    seconds = entry.get("seconds")
    spent = float(seconds) if isinstance(seconds, (int, float)) else 0.0
    before = probed.runs.get(node_id, TestRun("passed"))
    if ORDER[outcome] <= ORDER[before.outcome] and node_id in probed.runs:
        probed.runs[node_id] = _longer(before, spent)
        return
    stage, exception = _text(entry, "stage"), _text(entry, "exception")
    message, frame = _text(entry, "message"), _text(entry, "frame")
    failed = outcome == "failed"
    probed.runs[node_id] = TestRun(
        outcome=outcome,
        seconds=before.seconds + spent,
        stage=stage if failed else "",
        exception=exception,
        message=message,
        frame=frame,
        signature=signature(stage, exception, message, frame) if failed else "",
    )


def _stopped_half_way(probed: Probed, node_id: str) -> None:
    """Pytest itself came to its end in the middle of it: that is not a pass."""
    message = "pytest ended in the middle of it"
    text = signature("call", "Interrupted", message, "")
    probed.runs[node_id] = TestRun("failed", 0.0, "call", "Interrupted", message, "", text)


def _longer(run: TestRun, seconds: float) -> TestRun:
    from dataclasses import replace

    return replace(run, seconds=run.seconds + seconds)
