"""Whatever agents and their tests hand over: probe lines, archives, paths, times."""

from __future__ import annotations

import io
import json
import os
import string
import subprocess
import tarfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mngr.api import local_repository
from mngr_tmr.dispatch import artifacts
from mngr_tmr.dispatch.quota import reset_time
from mngr_tmr.dispatch.resets import stated_reset
from mngr_tmr.journal.model import TestRun
from mngr_tmr.probes.reports import cut_short, incomplete, parse
from mngr_tmr.run.settings import ProjectSettings, matches
from mngr_tmr.run.signatures import normalise, signature
from mngr_tmr.verify import patches
from mngr_tmr.verify.assertions import changed_hooks
from mngr_tmr.verify.forbidden import changed_judge
from tests.support.cli import Cli

# what the probe wrote


NONCE = "n" * 32
Line = Mapping[str, object]


def lines(*entries: Line) -> bytes:
    return b"".join(json.dumps({"nonce": NONCE, **each}).encode() + b"\n" for each in entries)


def stage(name: str, outcome: str = "passed", test: str = "t.py::a") -> Line:
    return {"test": test, "stage": name, "outcome": outcome, "seconds": 0.1, "part": False}


def whole(*outcomes: str, code: int = 0, test: str = "t.py::a") -> list[Line]:
    """All that is told about a session with one test."""
    stages = ("setup", "call", "teardown")
    told: list[Line] = [
        stage(name, outcome, test) for name, outcome in zip(stages, outcomes, strict=True)
    ]
    return [{"collected": test}, {"selected": test}, *told, {"finished": code}]


SIMPLE = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
KEYS = st.sampled_from(["test", "outcome", "stage", "collected", "error", "seconds", "finished"])
ENTRIES = st.dictionaries(KEYS, SIMPLE | st.lists(SIMPLE, max_size=2), max_size=5) | SIMPLE


@given(st.lists(st.binary(max_size=60) | ENTRIES.map(lambda each: json.dumps(each).encode())))
def test_no_line_disturbs_the_reading(told: list[bytes]) -> None:
    data = b"\n".join([*told, lines(stage("setup"), stage("call"), stage("teardown"))])
    probed = parse(data, NONCE)
    assert "t.py::a" in probed.runs
    assert all(run.outcome in ("passed", "failed", "skipped") for run in probed.runs.values())


PASSED = whole("passed", "passed", "passed")
FAILED = whole("passed", "failed", "passed", code=1)


def verdict(entries: list[Line], code: int) -> str:
    return incomplete(parse(lines(*entries), NONCE), code)


def test_a_whole_session_is_a_verdict() -> None:
    assert not verdict(PASSED, 0) and not verdict(FAILED, 1)
    assert not verdict([{"finished": 5}], 5)
    assert not verdict([{"error": "t.py", "message": "no"}, {"finished": 2}], 2)
    skipped: list[Line] = [
        {"selected": "a"},
        stage("setup", "skipped", "a"),
        stage("teardown", test="a"),
    ]
    assert not verdict([*skipped, {"finished": 0}], 0)
    crashed: list[Line] = [{"selected": "a"}, stage("setup", test="a"), stage("???", "failed", "a")]
    assert not verdict([*crashed, {"finished": 1}], 1)
    part = {**stage("call", "failed"), "part": True}
    assert not verdict([part, *whole("passed", "passed", "passed", code=1)], 1)


@given(st.integers(0, len(PASSED) - 1), st.sampled_from([PASSED, FAILED]))
def test_a_session_with_a_line_less_is_none(at: int, told: list[Line]) -> None:
    code = 1 if told is FAILED else 0
    left = [each for place, each in enumerate(told) if place != at or "collected" in each]
    assert bool(verdict(left, code)) is ("collected" not in told[at])


@given(st.sampled_from(PASSED[2:5]), st.integers(2, 5))
def test_a_session_with_a_line_twice_is_none(line: Line, at: int) -> None:
    assert verdict([*PASSED[:at], line, *PASSED[at:]], 0)


@given(st.integers(0, 255), st.integers(0, 255))
def test_the_exit_code_is_the_one_that_the_reports_explain(told: int, code: int) -> None:
    entries = [*PASSED[:-1], {"finished": told}]
    assert bool(verdict(entries, code)) is ((told, code) != (0, 0))


@given(st.text(max_size=40))
def test_lines_of_another_nonce_count_for_nothing(nonce: str) -> None:
    forged = b"".join(json.dumps({**each, "nonce": nonce}).encode() + b"\n" for each in PASSED)
    probed = parse(forged + lines(*FAILED), NONCE)
    assert probed.runs["t.py::a"].outcome == "failed" and not incomplete(probed, 1)
    assert parse(forged, NONCE) == parse(b"", NONCE)


def test_a_forged_pass_does_not_hide_a_failure() -> None:
    told = lines(stage("setup"), stage("call", "failed"), stage("call"), stage("teardown"))
    assert parse(told, NONCE).runs["t.py::a"].outcome == "failed"


@pytest.mark.parametrize("after", [[], [stage("setup", test="t.py::b")]])
def test_a_process_that_ends_within_a_test_did_not_pass_it(
    after: list[Line],
) -> None:
    told: list[Line] = [{"selected": "t.py::a"}, stage("setup"), *after]
    run = cut_short(parse(lines(*told), NONCE))["t.py::a"]
    assert (run.outcome, run.message) == ("failed", "pytest ended in the middle of it")


def test_a_test_is_the_worst_of_its_stages() -> None:
    def one(*told: Line) -> TestRun:
        return parse(lines(*told), NONCE).runs["t.py::a"]

    assert one(stage("setup", "skipped")).outcome == "skipped"
    assert one(stage("setup", "failed")).stage == "setup"
    assert one(stage("setup"), stage("call"), stage("teardown", "failed")).outcome == "failed"
    assert one(stage("setup"), stage("call", "rerun"), stage("call")).outcome == "failed"


def test_huge_and_deep_lines_are_passed_over() -> None:
    told = lines({"test": "x" * 500_000}) + b"[" * 50_000 + b"\n" + lines(stage("call"))
    assert list(parse(told, NONCE).runs) == ["t.py::a"]


# archives


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return data.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def test_nothing_is_written_outside_and_nothing_but_files(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    data = archive(
        (member("/etc/absolute"), b"x"),
        (member("../out"), b"x"),
        (member("a/../../out"), b"x"),
        (member("link", tarfile.SYMTYPE, "/etc"), b""),
        (member("link/through"), b"x"),
        (member("hard", tarfile.LNKTYPE, "/etc/passwd"), b""),
        (member("device", tarfile.CHRTYPE), b""),
        (member("pipe", tarfile.FIFOTYPE), b""),
        (member("."), b"x"),
        (member("n" * 300), b"x"),
        (member("/".join("d" * 20)), b"x"),
        (member("good/file"), b"x"),
        (member("good"), b"a file where a folder is"),
        (member("good/file/deeper"), b"a folder where a file is"),
        (member("last"), b"y"),
    )
    assert artifacts.unpack(data, inside) == 3
    found = {str(path.relative_to(inside)): path for path in inside.rglob("*")}
    assert set(found) == {"good", "good/file", "last", "link", "link/through"}
    assert not any(path.is_symlink() for path in found.values())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_limits_hold_whatever_an_archive_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "FILE_LIMIT", 10)
    monkeypatch.setattr(artifacts, "TOTAL_LIMIT", 25)
    monkeypatch.setattr(artifacts, "COUNT_LIMIT", 4)
    big = archive((member("big"), b"x" * 11), *((member(f"f{n}"), b"x" * 10) for n in range(4)))
    assert artifacts.unpack(big, tmp_path / "big") == 2
    many = archive(*((member(f"f{n}"), b"") for n in range(9)))
    assert artifacts.unpack(many, tmp_path / "many") == 4


@given(st.data())
def test_torn_and_garbled_archives_give_what_they_can(data: st.DataObject) -> None:
    whole = bytearray(archive(*((member(f"f{n}"), b"content" * 40) for n in range(3))))
    for place in data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=6)):
        whole[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        inside = Path(folder, "in")
        inside.mkdir()
        artifacts.unpack(bytes(whole[:cut]), inside)
        assert [each.name for each in Path(folder).iterdir()] == ["in"]


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_nothing_in_place_of_the_list_of_artifacts_is_opened(tmp_path: Path, kind: str) -> None:
    precious, listing = tmp_path / "precious", tmp_path / ".artifacts"
    precious.write_text("mine")
    if kind == "pipe":
        os.mkfifo(listing)
    else:
        listing.symlink_to(precious)
    (tmp_path / ".mngr-e2e").mkdir()
    (tmp_path / ".mngr-e2e" / "result.json").write_text("{}")
    argv = ["sh", "-c", artifacts.ARTIFACTS, "mngr", str(listing)]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, timeout=10, check=True)
    assert artifacts.unpack(done.stdout, tmp_path / "out") == 1
    assert precious.read_text() == "mine"


# paths and signatures


@pytest.mark.parametrize(
    ("path", "glob", "expected"),
    [
        (".github/workflows/ci.yml", ".github/**", True),
        (".github", ".github/**", False),
        ("a/.github/x", ".github/**", False),
        (".gitattributes", ".git*", True),
        ("a/b/tests/c.py", "**/tests/**", True),
        ("tests/c.py", "**/tests/**", True),
        ("test_x.py", "**/test_*.py", True),
        ("src/a.py", "*.py", False),
        ("a\nb/tests/x", "**/tests/*", True),
        ("src/[x].py", "src/[x].py", False),
    ],
)
def test_globs(path: str, glob: str, expected: bool) -> None:
    assert matches(path, glob) is expected


NAMES = st.text(string.ascii_letters + "._-*[]\n é", min_size=1)
PATHS = st.lists(NAMES.filter(lambda name: name not in (".", "..")), min_size=1, max_size=5)


@given(PATHS)
def test_every_path_is_on_one_side(parts: list[str]) -> None:
    path = "/".join(parts)
    ProjectSettings().is_implementation(path)
    assert matches(path, "**")
    assert not ProjectSettings(implementation=("src/**",)).is_implementation(f"x{path}")
    assert ProjectSettings(implementation=("src/**",)).is_implementation(f"src/{path}")


# what no agent may touch, wherever it lies

OFF_LIMITS = [
    *(".git", ".git/config", ".gitignore", ".gitattributes", ".gitmodules", ".gitlab-ci.yml"),
    *(".github/workflows/x.yml", ".circleci/config.yml", "azure-pipelines.yml", "Jenkinsfile"),
    *(".mngr/settings.toml", ".mngr-e2e/1/result.json", ".pre-commit-config.yaml"),
    *(
        "sitecustomize/__init__.py",
        "usercustomize.so",
        "x.pth",
        "a/__pycache__/x.cpython-311.pyc",
        "x-1.dist-info/entry_points.txt",
    ),
    *(
        "x.egg-info",
        "x.egg-info/PKG-INFO",
        "pytest.ini",
        "sitecustomize.py",
        ".GitAttributes",
        ".g\u200cit/config",
        "JENKINSFILE",
    ),
]
BELOW = st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=5), max_size=4)


@pytest.mark.parametrize("path", OFF_LIMITS)
@given(BELOW)
def test_forbidden_paths_are_so_at_any_depth(path: str, folders: list[str]) -> None:
    assert ProjectSettings().is_forbidden("/".join([*folders, path]))


@pytest.mark.parametrize("path", ["git", "a/gitignore.py", "src/mngr/x.py", "legit", "x.git"])
def test_others_are_not(path: str) -> None:
    assert not ProjectSettings().is_forbidden(path)


def test_a_projects_own_list_replaces_only_what_is_a_matter_of_taste() -> None:
    own = ProjectSettings(forbidden=("secrets/**",))
    assert own.is_forbidden("secrets/key") and not own.is_forbidden(".github/x.yml")
    assert own.is_forbidden("a/.gitattributes") and own.is_forbidden("tests/pytest.ini")


@pytest.mark.parametrize(
    ("path", "old", "new", "told"),
    [
        ("pyproject.toml", "[tool.pytest.ini_options]\n", None, "how pytest runs tests"),
        ("a/pyproject.toml", "", "[tool.pytest.ini_options]\naddopts = '-p x'\n", "how pytest"),
        ("pyproject.toml", "[tool.mngr_e2e]\ntimeout = 9\n", "", "how pytest runs tests"),
        ("pyproject.toml", "[project]\nname = 'a'\n", "[project]\nname = 'b'\n", ""),
        ("pyproject.toml", "", "not toml", "how pytest runs tests: pyproject.toml"),
        ("tox.ini", "[pytest]\na = 1\n", "[pytest]\na = 2\n", "how pytest runs tests: tox.ini"),
        ("tox.ini", "[tox]\na = 1\n", "[tox]\na = 2\n", ""),
        ("tests/setup.cfg", None, "[tool:pytest]\na = %(b)s\n", "how pytest runs tests"),
        ("setup.cfg", "", "[broken", "how pytest runs tests: setup.cfg"),
        ("pytest.py", None, "", "adds a module that shadows pytest"),
        ("src/mngr_e2e/__init__.py", None, "", "adds a module that shadows mngr_e2e"),
        ("src/mngr_e2e/__init__.py", "old", "new", ""),
        ("src/jot/pytest.py", None, "", ""),
        ("iniconfig.py", None, "", "shadows iniconfig"),
        ("src/iniconfig/__init__.py", None, "", "shadows iniconfig"),
        ("json.py", None, "", "shadows json"),
        ("src/colorsys.cpython-311-x86_64-linux-gnu.so", None, "", "shadows colorsys"),
        ("src/iniconfig.py", "old", "new", ""),
        ("src/jot/iniconfig.py", None, "", ""),
        ("iniconfig/notes.py", None, "", ""),
        ("jot.py", None, "", ""),
        ("pyproject.toml", "", "[project.entry-points.pytest11]\na = 'b'\n", "entry points"),
        ("pyproject.toml", "[project.scripts]\na = 'b'\n", "", "changes entry points"),
        ("pyproject.toml", "", "[tool.poetry.plugins.pytest11]\na = 'b'\n", "entry points"),
        ("setup.cfg", "", "[options.entry_points]\npytest11 =\n  a = b\n", "entry points"),
        ("setup.cfg", "", "[metadata]\nname = a\n", ""),
        ("setup.py", "setup()", "setup(entry_points={'pytest11': ['a = b']})", "entry points"),
        ("setup.py", "setup()", "setup(name='a')", ""),
        ("setup.py", None, "setup(", "entry points"),
        ("a.egg-info/entry_points.txt", None, "[pytest11]\na = b\n", "changes entry points"),
    ],
)
def test_how_tests_are_run_is_not_for_agents_to_say(
    path: str, old: str | None, new: str | None, told: str
) -> None:
    why = changed_judge(path, old, new, lambda: frozenset({"iniconfig"}))
    assert told in why if told else not why


@pytest.mark.parametrize(
    ("source", "hooks"),
    [
        ("def pytest_runtest_call(): ...", ["pytest_runtest_call"]),
        ("from x import pytest_runtest_call", ["pytest_runtest_call"]),
        ("from x import y as pytest_runtest_call", ["pytest_runtest_call"]),
        ("pytest_runtest_call = x", ["pytest_runtest_call"]),
        ("pytest_plugins: list[str] = ['x']", ["pytest_plugins"]),
        ("if True:\n    def pytest_runtest_call(): ...", ["pytest_runtest_call"]),
        ("import pytest_asyncio\ndef test_a():\n    pytest_x = 1", []),
    ],
)
def test_hooks_are_found_however_they_come(source: str, hooks: list[str]) -> None:
    assert changed_hooks("", source) == hooks
    assert changed_hooks(source, source) == []


# signatures


@given(st.text(max_size=200), st.integers(0, 10**12), st.integers(0, 2**64))
def test_numbers_and_addresses_are_no_difference(text: str, number: int, address: int) -> None:
    one = f"at {number} of /tmp/a{number}/b: <Note object at {address:#x}> {text}"
    other = f"at 7 of /srv/x/y: <Note object at 0x7f> {text}"
    assert signature("call", "E", one, "f") == signature("call", "E", other, "f")
    assert len(normalise(text).splitlines()) <= 1


def test_a_signature_separates_the_lines_of_a_message_and_shows_where_it_is_cut() -> None:
    shown = signature("call", "E", "expected it to succeed\nit exited with 2\n", "t.py:f")
    assert shown.startswith("call: E: expected it to succeed; it exited with # in t.py:f [")
    assert f"{'x' * 99}… [" in signature("call", "E", "x" * 300, "")


# times


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NOW = at("2026-03-01T12:00:30")


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("quota: resets 2026-03-01T14:00:00Z", at("2026-03-01T14:00")),
        (f"quota: {at('2026-03-01T15:00'):.0f}", at("2026-03-01T15:00")),
        ("quota: resets 14:00 (UTC)", at("2026-03-01T14:00")),
        ("quota: resets 11:00 (UTC)", at("2026-03-02T11:00")),
        ("quota: resets 12:00 (UTC)", NOW + 5),
        ("quota: resets 2026-03-01T11:00:00Z", NOW + 5),
        ("quota: resets 2026-99-01T11:00:00Z", NOW + 3600),
        ("quota", NOW + 3600),
        ("quota: resets 1:07 PM (UTC)", at("2026-03-01T13:07")),
        ("quota: resets 12:30 AM (UTC)", at("2026-03-02T00:30")),
        ("quota: resets Mar 6, 14:00 (UTC)", at("2026-03-06T14:00")),
        ("quota: resets Mar 6 at 14:00 (America/New_York)", at("2026-03-06T19:00")),
        ("quota: resets Mar 6th, 2026 1:07 AM (UTC)", at("2026-03-06T01:07")),
        ("quota: resets Mar 6, 2pm (UTC)", at("2026-03-06T14:00")),
        ("quota: resets March 6 (UTC)", at("2026-03-06T00:00")),
        ("quota: resets Jan 2, 2027, 09:00 (UTC)", at("2027-01-02T09:00")),
        ("quota: resets Feb 28, 14:00 (UTC)", NOW + 5),
        ("quota: resets Mar 1 (UTC)", NOW + 3600),
        ("quota: resets Feb 31, 14:00 (UTC)", NOW + 3600),
        ("quota: resets Monday 09:00 (UTC)", at("2026-03-02T09:00")),
        ("quota: resets Sun 11:00 (UTC)", at("2026-03-08T11:00")),
        ("quota: resets Thursday (UTC)", at("2026-03-05T00:00")),
    ],
)
def test_when_a_quota_comes_back(reason: str, expected: float) -> None:
    assert reset_time(reason, NOW) == expected


@given(st.text(max_size=80), st.text("0123456789:TZ-() UTC/apmMarSunday,", max_size=40))
def test_no_text_makes_a_pause_of_nothing(text: str, numbers: str) -> None:
    assert reset_time(f"quota: resets {text} {numbers}", NOW) >= NOW + 5


ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"])
FORMS = (
    "{day:%b} {day.day}, {day:%H:%M}",
    "{day:%b} {day.day} at {day:%H:%M}",
    "{day:%b} {day.day}, {day:%I:%M%p}",
    "{day:%B} {day.day}, {day.year}, {day:%I:%M %p}",
)


@given(
    begin=st.integers(0, 3650 * 24 * 3600),
    ahead=st.integers(1, 170 * 24 * 60),
    zone=ZONES,
    form=st.sampled_from(FORMS),
)
def test_a_reset_on_a_day_is_read_as_printed(begin: int, ahead: int, zone: str, form: str) -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=begin)
    reset = (start + timedelta(minutes=ahead)).replace(second=0, microsecond=0)
    day = reset.astimezone(ZoneInfo(zone))
    assume(day.replace(fold=1 - day.fold).utcoffset() == day.utcoffset())  # no hour that recurs
    words = f"quota: resets {form.format(day=day)} ({zone})"
    assert stated_reset(words, start.timestamp()) == reset.timestamp()


@given(
    begin=st.integers(0, 3650 * 24 * 3600),
    ahead=st.integers(1, 7 * 24 * 60 - 15),
    form=st.sampled_from(["{day:%a} {day:%H:%M}", "{day:%A} {day:%I:%M%p}"]),
)
def test_a_reset_on_a_weekday_is_the_next_one(begin: int, ahead: int, form: str) -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=begin)
    reset = (start + timedelta(minutes=ahead)).replace(second=0, microsecond=0)
    words = f"quota: resets {form.format(day=reset)} (UTC)"
    assert stated_reset(words, start.timestamp()) == reset.timestamp()


# git


def test_strange_paths_are_cut_and_laid_like_others(local: Cli) -> None:
    names = ["tests/a b\n.py", "tests/é.py", "-x.py", "src/tab\t.py", "src/\udcff.py"]
    base = local.commit("base")
    for name in names:
        local.write(name, "x\n")
    head = local.commit("head")
    repo = local_repository(str(local.repo))
    assert {each.path for each in patches.changes(repo, base, head)} == set(names)
    scratch = local.base

    def is_test(path: str) -> bool:
        return path.startswith("tests/")

    ours = patches.only(repo, scratch, base, head, is_test, "ours\n")
    rest = patches.only(repo, scratch, base, head, lambda path: not is_test(path), "rest\n")
    assert len(patches.changes(repo, base, ours)) == 2
    tree = patches.picked(repo, scratch, f"{ours}^{{tree}}", base, rest)
    assert tree == local.git("rev-parse", f"{head}^{{tree}}")
    assert patches.patch_id(repo, base, ours) != patches.patch_id(repo, base, rest)
    assert list(scratch.glob("index.*")) == []
