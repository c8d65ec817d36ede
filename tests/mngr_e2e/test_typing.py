"""What users may write under `mypy --strict`: mypy must accept this file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, assert_type

from mngr_e2e import Background, CommandResult, E2eSession, expect, soft
from mngr_e2e.expect.expectations import (
    FileExpectation,
    JsonExpectation,
    ResultExpectation,
    TextExpectation,
)


class Note(TypedDict):
    text: str
    tags: list[str]


def words() -> list[str]:
    return ["a", "b"]


def table() -> dict[str, list[int]]:
    return {"a": [1, 2]}


def test_sequences_and_mappings_of_anything_json_can_be_judged() -> None:
    assert_type(expect(words()), JsonExpectation).to_equal(["a", "b"])
    expect(words()).to_equal(words())
    expect(words()).to_equal(("a", "b"))
    expect(("a", 1, None)).to_equal(["a", 1, None])
    expect([Path("x").name]).not_to_equal([])
    expect([[1, 2], [3]]).at("[0][1]").to_equal(2)
    expect(table()).to_equal(table())
    expect(table()).to_include_json({"a": [2]})
    expect({"a": words(), "b": {"c": 1.5}}).at("b.c").to_equal(1.5)
    expect([{"name": "fix", "tags": words()}]).to_include_json([{"name": "fix"}])
    read_only: Sequence[str] = words()
    expect(read_only).to_equal(read_only)
    shape: Mapping[str, object] = {"type": "array", "items": {"type": "string"}}
    expect(words()).to_match_schema(shape)


def test_typed_dictionaries_can_be_judged() -> None:
    note: Note = {"text": "milk", "tags": ["shop"]}
    expect(note).to_equal(note)
    expect(note).at("tags[0]").to_equal("shop")
    expect([note]).to_include_json([{"text": "milk"}])


def test_what_json_loads_gives_can_be_judged() -> None:
    anything: Any = json.loads('{"a": [1]}')
    expect(anything).to_equal({"a": [1]})
    expect(anything["a"]).to_equal([1])


def test_each_kind_of_thing_has_its_own_claims(e2e: E2eSession) -> None:
    result: CommandResult = e2e.run("echo hi > file; cat file")
    assert_type(expect(result), ResultExpectation).to_succeed().not_to_time_out()
    assert_type(expect(result.stdout), TextExpectation).to_equal("hi\n")
    assert_type(expect(result.stdout_bytes), TextExpectation).to_equal("hi\n")
    assert_type(expect(e2e.work / "file"), FileExpectation).to_contain("hi")
    assert_type(expect(e2e.work / "file"), FileExpectation).to_exist()
    with soft():
        expect(len(result.chunks)).to_equal(1)


def test_what_comes_in_time_has_the_claims_of_what_it_is(e2e: E2eSession) -> None:
    (e2e.work / "file").write_text("hi")
    server: Background = e2e.start("echo up; exec sleep 1000")
    assert_type(expect(lambda: server.stdout).eventually(), TextExpectation).to_contain("up")
    expect((e2e.work / "file").read_text).eventually().to_equal("hi")
    expect((e2e.work / "file").read_bytes).eventually().to_equal("hi")
    assert_type(expect(words).eventually(), JsonExpectation).to_equal(["a", "b"])
    expect(table).eventually().to_equal({"a": [1, 2]})
    expect(lambda: len(words())).eventually().to_equal(2)
    expect(lambda: e2e.run("true")).eventually().to_succeed()
    expect(lambda: e2e.work / "file").eventually().to_exist()
    expect(lambda: server.running).eventually().to_equal(True)
    server.stop()
