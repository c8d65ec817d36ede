"""The parser of the probe's reports. The code under test may forge lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from mngr.model.struct import Json
from mngr_tmr.journal.events import as_table, loaded, number_of, table_of, text_of
from mngr_tmr.journal.model import Test, TestRun
from mngr_tmr.run.signatures import signature

LINE_LIMIT = 400_000
ORDER = {"passed": 0, "skipped": 1, "failed": 2}
CRASHED = "???"
"""The stage of a test whose worker of xdist died."""
PASSED, FAILED, INTERRUPTED, NONE = 0, 1, 2, 5
"""How pytest exits."""


@dataclass
class Probed:
    """One run of pytest, as the probe saw it."""

    tests: dict[str, Test] = field(default_factory=dict)
    selected: dict[str, int] = field(default_factory=dict)
    """How many times each test was selected."""
    runs: dict[str, TestRun] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    touched: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """The files that each test used; None if that is unknown."""
    lines: dict[str, dict[str, str]] = field(default_factory=dict)
    """The lines each test runs, by file."""
    mutants: dict[int, dict[str, str]] = field(default_factory=dict)
    """The outcomes of the tests with each mutant."""
    finished: int | None = None
    """The exit status that pytest ended with, if it did."""
    stages: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Per test, stages and outcomes in the order they came."""
    failed: bool = False
    """Whether a test, or a part of one, failed."""


def parse(data: bytes, nonce: str) -> Probed:
    """Return the report; lines without the nonce are not the probe's."""
    probed = Probed()
    for entry in _entries(data):
        if entry.get("nonce") != nonce:
            continue
        if "collected" in entry:
            node_id = text_of(entry, "collected")
            probed.tests[node_id] = Test(node_id, text_of(entry, "file"), text_of(entry, "doc"))
        elif "selected" in entry:
            times = max(1, int(number_of(entry, "times")))
            probed.selected[text_of(entry, "selected")] = times
        elif "error" in entry:
            probed.errors.append(
                f"{text_of(entry, 'error')}: {_last_line(text_of(entry, 'message'))}"
            )
        elif "test" in entry:
            _note(probed, entry)
        elif "touched" in entry:
            probed.touched[text_of(entry, "touched")] = _files(entry)
        elif "mutant" in entry:
            number, outcomes = entry.get("mutant"), entry.get("outcomes")
            if type(number) is int and isinstance(outcomes, dict):
                probed.mutants[number] = {node: str(each) for node, each in outcomes.items()}
        elif "ran" in entry:
            _join(probed.lines.setdefault(text_of(entry, "ran"), {}), entry)
        elif "finished" in entry:
            code = entry.get("finished")
            probed.finished = code if isinstance(code, int) else None
    return probed


def incomplete(probed: Probed, code: int, *, collect_only: bool = False) -> str:
    """Return why the results are not valid; "" if they are.

    A valid session has ended, with the exit code that its reports explain, and with one report of
    each stage of each test.
    """
    if probed.finished is None:
        return "the test session did not finish"
    if probed.finished != code:
        return f"pytest ended with exit code {probed.finished}, and its process with {code}"
    if code == INTERRUPTED and probed.errors and not probed.stages:
        return ""  # it does not collect
    if code not in (PASSED, FAILED, NONE):
        return f"pytest ended with exit code {code}"
    if collect_only:
        return ""
    return _unexplained(probed, code) or _unreported(probed)


def _unexplained(probed: Probed, code: int) -> str:
    failed = probed.failed or bool(probed.errors)
    expected = FAILED if failed else PASSED if probed.selected else NONE
    if code == expected:
        return ""
    return f"pytest ended with exit code {code}, but its reports say {expected}"


def _unreported(probed: Probed) -> str:
    strays = probed.stages.keys() - probed.selected.keys()
    if strays:
        return f"{sorted(strays)[0]} was reported, but not collected"
    for node_id, times in probed.selected.items():
        stages = probed.stages.get(node_id, [])
        outcomes = [outcome for _, outcome in stages]
        if "rerun" in outcomes or (CRASHED, "failed") in stages:
            continue  # some stages come twice, or never
        begun = stages.count(("setup", "passed"))
        if Counter(stage for stage, _ in stages) != Counter(
            setup=times, call=begun, teardown=times
        ):
            return f"{node_id} was not reported once for each stage"
    return ""


def cut_short(probed: Probed) -> dict[str, TestRun]:
    """Return the tests during which a session without valid results ended."""
    message = "pytest ended in the middle of it"
    text = signature("call", "Interrupted", message, "")
    run = TestRun("failed", 0.0, "call", "Interrupted", message, "", text)
    begun = [n for n, stages in probed.stages.items() if stages[-1] == ("setup", "passed")]
    return dict.fromkeys(begun, run)


def _files(entry: Mapping[str, Json]) -> tuple[str, ...] | None:
    files = entry.get("files")
    if entry.get("alone") is not True or not isinstance(files, list):
        return None
    return tuple(each for each in files if isinstance(each, str))


def _join(files: dict[str, str], entry: Mapping[str, Json]) -> None:
    """Add lines; those of the test's own process and of others are reported separately."""
    for path, text in table_of(entry, "lines").items():
        if isinstance(text, str):
            files[path] = f"{files[path]},{text}" if path in files else text


def _entries(data: bytes) -> Iterator[Mapping[str, Json]]:
    for line in data.split(b"\n"):
        if line and len(line) <= LINE_LIMIT:
            yield as_table(loaded(line))


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else ""


def _note(probed: Probed, entry: Mapping[str, Json]) -> None:
    """Add one stage: the outcome of a test is the worst of set-up, call and teardown."""
    node_id, stage, outcome = (text_of(entry, key) for key in ("test", "stage", "outcome"))
    if entry.get("part") is not True:
        probed.stages.setdefault(node_id, []).append((stage, outcome))
    probed.failed |= outcome == "failed"
    outcome = "failed" if outcome == "rerun" else outcome
    if outcome not in ORDER:
        return
    spent = number_of(entry, "seconds")
    before = probed.runs.get(node_id, TestRun("passed"))
    if ORDER[outcome] <= ORDER[before.outcome] and node_id in probed.runs:
        probed.runs[node_id] = replace(before, seconds=before.seconds + spent)
        return
    exception, message, frame = (text_of(entry, key) for key in ("exception", "message", "frame"))
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
