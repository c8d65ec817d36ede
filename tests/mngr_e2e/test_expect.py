"""The claims that `expect` accepts and refuses, and its failure messages."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr_e2e.commands.results import CommandResult
from mngr_e2e.expect import ExpectationFailed, expect, soft
from mngr_e2e.expect.matchers import Json

pytest_plugins = ["pytester"]

TEXT = st.text(st.sampled_from("ab\n é\udc80"), max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=6,
)


def result(
    exit_code: int = 0, stdout: str = "", stderr: str = "", timed_out: bool = False
) -> CommandResult:
    return CommandResult(
        command="jot list",
        comment="",
        exit_code=exit_code,
        stdout=stdout,
        stderr=stderr,
        stdout_bytes=stdout.encode("utf-8", "surrogateescape"),
        stderr_bytes=stderr.encode(),
        seconds=0.5,
        timed_out=timed_out,
        transcript="# earlier\n$ jot add milk\n$ jot list\n",
    )


def holds(claim: Callable[[], object]) -> bool:
    try:
        claim()
    except ExpectationFailed:
        return False
    return True


def message(claim: Callable[[], object]) -> str:
    with pytest.raises(ExpectationFailed) as caught:
        claim()
    return str(caught.value)


# each matcher and its negation


@given(TEXT, TEXT)
def test_claims_about_text_are_true_or_their_negation_is(text: str, other: str) -> None:
    said = expect(text)
    truths = [
        (said.to_contain, said.not_to_contain, other in text),
        (said.to_equal, said.not_to_equal, text == other),
        (said.to_start_with, said.not_to_start_with, text.startswith(other)),
        (said.to_end_with, said.not_to_end_with, text.endswith(other)),
    ]
    for claim, negation, truth in truths:
        assert holds(partial(claim, other)) == truth
        assert holds(partial(negation, other)) != truth


@given(TEXT, TEXT)
def test_patterns_match_anywhere_or_not(text: str, other: str) -> None:
    pattern = re.escape(other) + "$"
    truth = re.search(pattern, text, re.MULTILINE) is not None
    assert holds(lambda: expect(text).to_match(pattern)) == truth
    assert holds(lambda: expect(text).not_to_match(pattern)) != truth


def test_patterns_see_lines() -> None:
    expect("milk\ntea\n").to_match("^tea$").not_to_match("^ea").to_match(re.compile(r"k\nt"))


@given(TEXT, st.integers(0, 4))
def test_emptiness_and_lines_are_counted_or_not(text: str, count: int) -> None:
    lines = text.removesuffix("\n").split("\n") if text else []
    assert holds(lambda: expect(text).to_have_line_count(count)) == (len(lines) == count)
    assert holds(lambda: expect(text).not_to_have_line_count(count)) != (len(lines) == count)
    assert holds(expect(text).to_be_empty) == (text == "")
    assert holds(expect(text).not_to_be_empty) != (text == "")


@given(st.integers(0, 255), st.integers(0, 255))
def test_a_command_succeeds_or_fails(code: int, other: int) -> None:
    said = expect(result(code))
    assert holds(said.to_succeed) == holds(said.not_to_fail) == (code == 0)
    assert holds(said.to_fail) == holds(said.not_to_succeed) == (code != 0)
    assert holds(lambda: said.to_have_exit_code(other)) == (code == other)
    assert holds(lambda: said.not_to_have_exit_code(other)) != (code == other)
    assert not holds(said.to_time_out)
    assert holds(said.not_to_time_out)


def test_a_command_that_timed_out_neither_succeeded_nor_failed() -> None:
    said = expect(result(124, timed_out=True))
    for claim in (said.to_succeed, said.not_to_succeed, said.to_fail, said.not_to_fail):
        assert not holds(claim)
    assert "it timed out after 0.50 s" in message(said.to_fail)
    said.to_time_out()


@given(JSON, JSON)
def test_json_equals_and_includes_or_not(value: Json, other: Json) -> None:
    text, same = json.dumps(value), json.dumps(value, sort_keys=True)
    truth = same == json.dumps(other, sort_keys=True)
    said = expect(text).to_be_json()
    assert holds(lambda: said.to_equal(other)) == truth
    assert holds(lambda: said.not_to_equal(other)) != truth
    included = holds(lambda: said.to_include_json(other))
    assert holds(lambda: said.not_to_include_json(other)) != included
    assert included or not truth
    said.to_include_json(value)


@given(TEXT)
def test_text_is_json_or_not(text: str) -> None:
    assert not holds(expect(text).to_be_json)
    expect(text).not_to_be_json()
    assert not holds(lambda: expect(text).to_include_json({}))
    assert not holds(lambda: expect(text).not_to_include_json({}))  # it is not JSON


@given(JSON, st.sampled_from(["null", "boolean", "integer", "string", "array", "object"]))
def test_json_is_of_a_type_or_not(value: Json, name: str) -> None:
    types = {"null": type(None), "boolean": bool, "string": str, "array": list, "object": dict}
    truth = type(value) is types.get(name, int)
    said = expect(json.dumps(value))
    assert holds(lambda: said.to_match_schema({"type": name})) == truth
    assert holds(lambda: said.not_to_match_schema({"type": name})) != truth


@given(st.binary(max_size=4), st.binary(max_size=4), st.sampled_from([0o600, 0o644]))
def test_files_are_as_said_or_not(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, other: bytes, mode: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "file"
    path.write_bytes(content)
    path.chmod(0o600)
    said = expect(path)
    assert holds(lambda: said.to_have_content(other)) == (content == other)
    assert holds(lambda: said.not_to_have_content(other)) == (content != other)
    assert holds(lambda: said.to_have_mode(mode)) == (mode == 0o600)
    assert holds(lambda: said.not_to_have_mode(mode)) == (mode != 0o600)


def test_a_missing_file_has_neither_content_nor_mode(tmp_path: Path) -> None:
    (tmp_path / "note.txt").touch()
    said = expect(tmp_path / "notes.txt")
    said.not_to_exist()
    assert "its directory contains: note.txt" in message(said.to_exist)
    claims = (said.to_have_content, said.not_to_have_content, said.to_contain, said.not_to_contain)
    for claim in claims:
        assert "No such file" in message(partial(claim, "x"))
    assert not holds(lambda: said.not_to_have_mode(0o600))
    expect(tmp_path / "note.txt").to_exist()


# JSON


def test_paths_lead_into_json_and_say_how_far_they_got() -> None:
    said = expect('{"notes": [{"text": "milk", "a.b": 1}]}').to_be_json()
    said.at("notes[0].text").to_equal("milk").not_to_equal("tea")
    said.at('notes[-1]["a.b"]').to_equal(1)
    said.at("notes").at("[0]").to_include_json({"text": "milk"})
    assert "there is no $.notes[1]: $.notes has 1 item" in message(lambda: said.at("notes[1]"))
    assert "there is no $.nots" in message(lambda: said.at("nots"))
    with pytest.raises(ValueError, match="not a path"):
        said.at("notes[")


def test_a_part_is_included_with_lists_in_order() -> None:
    said = expect({"a": [1, {"b": 2, "c": 3}, 4], "d": True})
    said.to_include_json({"a": [1, {"c": 3}]}).to_include_json({"a": [4]})
    said.not_to_include_json({"a": [4, 1]}).not_to_include_json({"d": 1})
    assert "there is no $.e" in message(lambda: said.to_include_json({"e": 1}))


def test_a_schema_names_every_place_that_is_wrong() -> None:
    schema: dict[str, Json] = {
        "type": "object",
        "required": ["id", "tags"],
        "properties": {
            "id": {"type": "integer"},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        },
    }
    expect('{"id": 1, "tags": ["a"]}').to_match_schema(schema)
    said = message(lambda: expect('{"id": true, "tags": ["a", "c"]}').to_match_schema(schema))
    assert "$.id is true, not of type integer" in said
    assert '$.tags[1] is "c", not one of ["a", "b"]' in said
    assert "there is no $.tags" in message(lambda: expect('{"id": 1}').to_match_schema(schema))
    with pytest.raises(ValueError, match="unknown schema keyword 'propertys'"):
        expect("1").to_match_schema({"propertys": {}})
    with pytest.raises(ValueError, match="unknown schema type 'int'"):
        expect("1").to_match_schema({"type": "int"})


# waiting


def test_eventually_waits_for_the_claim_to_hold(tmp_path: Path) -> None:
    log, looks = tmp_path / "log", iter(["", "start", "ready"])

    def read() -> str:
        log.write_text(next(looks))
        return log.read_text()

    expect(read).eventually(timeout=60).to_contain("ready")
    expect(log).eventually().to_contain("ready")
    counts = iter(range(9))
    expect(lambda: next(counts)).eventually().to_equal(5)


def test_eventually_gives_up_and_says_how_long_it_waited(tmp_path: Path) -> None:
    began = time.monotonic()
    said = message(lambda: expect(tmp_path / "x").eventually(timeout=0.1).to_exist())
    assert "to exist within 0.1 s" in said
    said = message(lambda: expect(lambda: "no").eventually(timeout=0.1).to_equal("yes"))
    assert said.startswith("expected 'no' to equal 'yes' within 0.1 s")
    assert time.monotonic() - began < 30
    with pytest.raises(FileNotFoundError):
        expect((tmp_path / "x").read_text).eventually(timeout=0.05)


# failures


def test_a_failure_shows_the_command_both_streams_and_the_transcript() -> None:
    done = result(3, "one\n", "jot: no notes\n")
    said = message(lambda: expect(done).to_succeed())
    assert said.startswith(
        "expected `jot list` to succeed\n\nit exited with 3\n\n$ jot list\n(exit 3"
    )
    assert "--- stdout\none\n--- stderr\njot: no notes\n--- transcript so far\n# earlier" in said


def test_a_failure_about_a_stream_finds_its_command_and_shows_a_diff() -> None:
    done = result(0, "buy milk\nbuy tea\n", "warning\n")
    said = message(lambda: expect(done.stdout).to_equal("buy milk\nbuy coffee\n"))
    assert said.startswith("expected stdout to equal 'buy milk")
    assert "-buy coffee\n+buy tea" in said
    assert "$ jot list" in said and "# earlier" in said
    assert message(lambda: expect(done.stderr).to_be_empty()).startswith("expected stderr to be")
    near = message(lambda: expect(done.stdout).to_contain("buy milc"))
    assert "the nearest line is 'buy milk'" in near
    derived = message(lambda: expect(done.stdout.upper()).to_contain("x"))
    assert "$ jot list" in derived


def test_a_failure_can_be_printed_and_is_not_endless() -> None:
    done = result(1, "\udc80" + "x" * 1_000_000)
    said = message(lambda: expect(done).to_succeed())
    said.encode()
    assert len(said) < 20_000 and "characters left out" in said
    assert len(message(lambda: expect("a\n" * 100_000).to_equal("b\n" * 100_000))) < 20_000


def test_the_output_of_a_command_that_was_not_kept_is_shown_by_the_transcript(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        from mngr_e2e import expect

        def test_unnamed(e2e):
            expect(e2e.run("echo milk; echo sour >&2", comment="look").stdout).to_equal("tea")
        """
    )
    done = pytester.runpytest_subprocess("-p", "mngr_e2e.plugin", "-p", "no:cacheprovider")
    done.assert_outcomes(failed=1)
    lines = ["*expected 'milk?n' to equal 'tea'", "*--- transcript so far", "*# look", "*! sour"]
    done.stdout.fnmatch_lines(lines)


def test_soft_groups_collect_every_failure_with_its_place() -> None:
    def check() -> None:
        with soft():
            expect("a").to_equal("b")
            expect("a").to_equal("a")
            expect("no").to_be_json().at("x").to_equal(1)  # one failure, not three
            expect("c").to_be_empty()

    said = message(check)
    assert said.startswith("3 expectations did not hold")
    assert re.search(r"1\. test_expect\.py:\d+: expected 'a' to equal 'b'", said)
    assert "2. test_expect.py" in said and "expected 'c' to be empty" in said


def test_soft_groups_nest_and_do_not_hide_other_errors() -> None:
    def check() -> None:
        with soft():
            with soft():
                expect("a").to_equal("b")
            expect("c").to_equal("d")

    assert message(check).startswith("2 expectations did not hold")

    def stumble() -> None:
        with soft():
            expect("a").to_equal("b")
            raise KeyError("x")

    with pytest.raises(KeyError) as caught:
        stumble()
    assert "expected 'a' to equal 'b'" in caught.value.__notes__[0]
    expect("a").to_equal("a")  # outside, claims raise at once again


def test_pytest_shows_the_line_of_the_test_and_none_of_ours(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from mngr_e2e.expect import expect, soft

        def test_hard():
            expect("milk").to_be_json().at("x").to_equal("tea")

        def test_soft():
            with soft():
                expect("milk").to_equal("tea")
        """
    )
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    done.assert_outcomes(failed=2)
    text = done.stdout.str()
    assert 'expect("milk").to_be_json()' in text and "expected 'milk' to be JSON" in text
    assert "src/mngr_e2e" not in text and "_holds" not in text
