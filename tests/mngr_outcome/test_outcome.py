"""The outcome file: what `publish` writes is read as it was meant, and nothing else is believed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mngr.errors import BadRecord
from mngr_outcome.outcome import (
    BYTES_LIMIT,
    TEXT_LIMIT,
    Blocked,
    Obstacle,
    Published,
    cleaned,
    parse_outcome,
)
from mngr_outcome.publish import scripts
from tests.support.properties import examples

HEAD = "0123456789abcdef0123456789abcdef01234567"
GOOD: dict[str, Any] = {
    "schema": 1,
    "task": "tests/test_a.py::test_b",
    "try": 2,
    "attempted": "fix",
    "blocked": None,
    "head": HEAD,
    "summary": "a comparison was wrong",
    "tests_added": ["tests/test_a.py::test_c[x-1]"],
    "confusing": [{"command": "jot", "tried": "to list", "happened": "nothing"}],
}
SHELLS = [
    [path] for name in ("dash", "bash", "ksh", "zsh") if (path := shutil.which(name)) is not None
]


def parsed(**changes: Any) -> Published:
    return parse_outcome(json.dumps(GOOD | changes).encode())


def test_a_good_outcome_is_read_and_written_back_as_it_was() -> None:
    outcome = parsed()
    assert outcome.task == GOOD["task"]
    assert outcome.try_number == 2
    assert outcome.confusing[0].happened == "nothing"
    assert outcome.to_json() == GOOD


def test_what_blocked_an_agent_is_kept() -> None:
    blocked = parsed(blocked={"reason": "no pandoc", "needs": "pandoc"}).blocked
    assert blocked is not None
    assert blocked == Blocked("no pandoc", "pandoc", Obstacle.MISSING)
    told = {"reason": "all \x1btried", "needs": "", "obstacle": "no fix"}
    assert parsed(blocked=told).blocked == Blocked("all tried", "", Obstacle.NO_FIX)


def test_a_newer_agent_may_say_more() -> None:
    assert parsed(mood="fine") == parsed()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"schema": 2}, "schema"),
        ({"schema": True}, "schema"),
        ({"schema": "1"}, "schema"),
        ({"task": None}, "task"),
        ({"task": "a\x1b[2J"}, "task"),
        ({"task": "x" * 3000}, "task"),
        ({"try": "2"}, "try"),
        ({"try": True}, "try"),
        ({"try": -1}, "try"),
        ({"try": 10**400}, "try"),
        ({"try": 1.0}, "try"),
        ({"attempted": "fixed"}, "attempted"),
        ({"attempted": ["fix"]}, "attempted"),
        ({"head": HEAD[:-1]}, "head"),
        ({"head": HEAD.upper()}, "head"),
        ({"head": "HEAD"}, "head"),
        ({"head": HEAD + "\n"}, "head"),
        ({"head": int("1" * 40)}, "head"),
        ({"summary": 3}, "summary"),
        ({"blocked": "yes"}, "blocked"),
        ({"blocked": {"reason": "x"}}, "needs"),
        ({"blocked": {"reason": None, "needs": ""}}, "reason"),
        ({"tests_added": "tests"}, "tests_added"),
        ({"tests_added": [1]}, "tests_added"),
        ({"tests_added": [""]}, "tests_added"),
        ({"tests_added": ["--pdb"]}, "--pdb"),
        ({"tests_added": ["/etc/passwd"]}, "/etc/passwd"),
        ({"tests_added": ["a/../../b.py::c"]}, "../b.py"),
        ({"tests_added": ["a.py::b\nc"]}, "tests_added"),
        ({"tests_added": ["a.py::b"] * 201}, "tests_added"),
        ({"confusing": {}}, "confusing"),
        ({"confusing": ["x"]}, "confusing"),
        ({"confusing": [{"command": "x", "tried": "y"}]}, "happened"),
    ],
)
def test_what_is_not_an_outcome_is_refused_by_name(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(BadRecord) as refused:
        parsed(**changes)
    assert named in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("missing", ["schema", "task", "try", "attempted", "head", "summary"])
def test_what_is_missing_is_named(missing: str) -> None:
    data = {key: value for key, value in GOOD.items() if key != missing}
    with pytest.raises(BadRecord, match=missing):
        parse_outcome(json.dumps(data).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b'{"schema":1,"schema":1}',
        json.dumps(GOOD | {"extra": float("nan")}).encode(),
        json.dumps(GOOD).encode() + b" " * BYTES_LIMIT,
        b"\xff\xfe" + json.dumps(GOOD).encode("utf-16-le"),
    ],
)
def test_bytes_that_are_no_outcome_are_refused(data: bytes) -> None:
    with pytest.raises(BadRecord):
        parse_outcome(data)


def test_a_text_cannot_steer_a_terminal_and_is_cut_at_its_limit() -> None:
    outcome = parsed(summary="a\x1b[31mb\u202ec\x07\x9bd\ud800\r\n\te" + "x" * (TEXT_LIMIT + 9))
    assert outcome.summary.startswith("a[31mbcd\n\tex")
    assert len(outcome.summary) == TEXT_LIMIT
    outcome.summary.encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(GOOD)), JSON))
def test_any_json_is_an_outcome_or_refused(changes: dict[str, Any]) -> None:
    try:
        outcome = parsed(**changes)
    except BadRecord:
        return
    again = parse_outcome(json.dumps(outcome.to_json()).encode())
    assert again == outcome


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_in_our_words(data: bytes) -> None:
    with pytest.raises(BadRecord):
        parse_outcome(data)


# publish


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory with the script in it, beside a repository with one commit."""
    base = tmp_path_factory.mktemp("publish")
    state, work = base / "state", base / "it's work"
    state.mkdir()
    work.mkdir()
    for name, content in scripts().items():
        (state / name).write_bytes(content)
        (state / name).chmod(0o700)
    git(work, "init", "-q")
    (work / "a").write_text("a\n")
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "first")
    return base


def environment(base: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(base),
        "MNGR_AGENT_STATE_DIR": str(base / "state"),
        "MNGR_AGENT_WORK_DIR": str(base / "it's work"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{role}_{what}": "t" for role in ("AUTHOR", "COMMITTER") for what in NAMES},
    }


NAMES = ("NAME", "EMAIL")


def git(work: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", *args], cwd=work, env=environment(work.parent), capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def publish(
    base: Path, *args: str | bytes, shell: tuple[str, ...] = (), stdin: bytes = b"", **env: str
) -> subprocess.CompletedProcess[bytes]:
    (base / "state" / "outcome.json").unlink(missing_ok=True)
    return subprocess.run(
        [*shell, str(base / "state" / "publish"), *args],
        cwd=base,
        env=environment(base) | env,
        input=stdin,
        capture_output=True,
        timeout=60,
    )


def said(base: Path) -> Published:
    return parse_outcome((base / "state" / "outcome.json").read_bytes())


@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: Path(words[0]).name)
def test_publish_says_all_it_was_told(place: Path, shell: list[str]) -> None:
    words = ["--attempted", "none", "--summary", "sum\n\\up\t\"of\" 'it'\n", "--task", "t é"]
    words += ["--blocked", "no $HOME `id` %s", "--needs=pandoc", "--no-fix", "--try", "3"]
    words += ["--test-added", "a.py::b[\\x]", "--test-added", "a.py::c"]
    words += ["--confusing", "jot", "-", "", "--confusing", "x", "y", "z"]
    done = publish(place, *words, shell=tuple(shell))
    assert done.returncode == 0, done.stderr
    outcome = said(place)
    assert outcome.summary == "sum\n\\up\t\"of\" 'it'\n"
    assert outcome.head == git(place / "it's work", "rev-parse", "HEAD")
    assert (outcome.task, outcome.try_number) == ("t é", 3)
    assert outcome.blocked is not None
    assert outcome.blocked == Blocked("no $HOME `id` %s", "pandoc", Obstacle.NO_FIX)
    assert outcome.tests_added == ("a.py::b[\\x]", "a.py::c")
    assert [entry.tried for entry in outcome.confusing] == ["-", "y"]
    assert (place / "state" / "outcome.json").stat().st_mode & 0o777 == 0o600


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@settings(examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, TEXTS)
def test_any_text_arrives(place: Path, text: str, other: str) -> None:
    done = publish(
        place, "--attempted", "fix", f"--summary={text}", "--confusing", other, text, other
    )
    kept = cleaned(text)
    if not "".join(character for character in text if ord(character) >= 32 or character in "\n\t"):
        assert done.returncode == 2
        return
    assert done.returncode == 0 or kept in ("", "\x7f"), done.stderr
    if done.returncode == 0:
        outcome = said(place)
        assert outcome.summary == (text if text == "-" else kept)
        assert outcome.confusing[0].command == cleaned(other)
        assert outcome.confusing[0].tried == kept


def test_text_comes_from_stdin_and_files(place: Path) -> None:
    long = "".join(f'line {at} "\\\n' for at in range(900))
    (place / "why.txt").write_bytes(b"no\xffpandoc\0\n")
    words = ["--attempted", "fix", "--summary", "-", "--blocked-file", "why.txt"]
    done = publish(place, *words, stdin=long.encode())
    assert done.returncode == 0, done.stderr
    assert said(place).summary == long.removesuffix("\n")
    blocked = said(place).blocked
    assert blocked is not None
    assert blocked.reason == "no�pandoc"
    (place / "sum.txt").write_text(long)
    publish(place, "--attempted", "fix", "--summary-file", "sum.txt")
    assert said(place).summary == long.removesuffix("\n")


def test_task_and_try_come_from_the_environment(place: Path) -> None:
    words = ["--attempted", "none", "--summary", "fine"]
    publish(place, *words, MNGR_TMR_TASK="tests/a.py::b", MNGR_TMR_TRY="4")
    assert (said(place).task, said(place).try_number) == ("tests/a.py::b", 4)
    publish(place, *words)
    assert (said(place).task, said(place).try_number) == ("", 0)


def test_a_dirty_tree_is_refused_and_its_files_are_named(place: Path) -> None:
    work = place / "it's work"
    (work / "new one").write_text("x")
    (work / "a").write_text("changed\n")
    try:
        done = publish(place, "--attempted", "fix", "--summary", "s")
    finally:
        (work / "new one").unlink()
        (work / "a").write_text("a\n")
    assert done.returncode == 1
    assert b"new one" in done.stderr
    assert b"  a\n" in done.stderr
    assert not (place / "state" / "outcome.json").exists()


def test_too_much_text_is_refused_and_nothing_is_left(place: Path) -> None:
    (place / "long.txt").write_text("x" * BYTES_LIMIT)
    done = publish(place, "--attempted", "fix", "--summary-file", "long.txt")
    assert done.returncode == 1
    assert str(BYTES_LIMIT).encode() in done.stderr
    assert [path.name for path in (place / "state").iterdir()] == ["publish"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "--attempted"),
        (["--attempted", "repair", "--summary", "x"], "repair"),
        (["--attempted", "fix"], "--summary"),
        (["--attempted", "fix", "--summary", ""], "--summary"),
        (["--attempted", "fix", "--summary"], "--summary"),
        (["--attempted", "fix", "--summary", "x", "--needs", "y"], "--blocked"),
        (["--attempted", "fix", "--summary", "x", "--try", "07"], "--try"),
        (["--attempted", "fix", "--summary", "x", "--try", "1e3"], "--try"),
        (["--attempted", "fix", "--summary", "x", "--confusing", "a", "b"], "HAPPENED"),
        (["fix"], "fix"),
        (["--colour", "red"], "--colour"),
    ],
)
def test_wrong_words_are_named(place: Path, words: list[str], named: str) -> None:
    done = publish(place, *words)
    assert done.returncode == 2
    assert named in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert not (place / "state" / "outcome.json").exists()


def test_publish_outside_a_repository_says_so(place: Path) -> None:
    done = publish(
        place, "--attempted", "fix", "--summary", "x", MNGR_AGENT_WORK_DIR=str(place / "state")
    )
    assert done.returncode == 1
    assert b"there is no commit in" in done.stderr


def test_publish_explains_itself(place: Path) -> None:
    done = publish(place, "--help")
    assert done.returncode == 0
    assert b"--attempted fix|improve|none" in done.stdout
