from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.errors import BadRecord
from mngr.hosts.ledger import HostNote
from mngr.model.records import AgentRecord, Exit, Window, Worker, decode, encode
from mngr.model.state import Judgement
from mngr.model.struct import Json, Struct
from tests.support.cli import ROOT

text = st.text(max_size=20)
worker = st.builds(
    lambda machine, pid, start: Worker(machine=machine, pid=pid, start=start),
    text,
    st.integers(),
    text,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def records(draw: st.DrawFn) -> AgentRecord:
    return AgentRecord(
        id=draw(text),
        name=draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", fullmatch=True)),
        type="command",
        argv=tuple(draw(st.lists(text, max_size=3))),
        work_dir=draw(text),
        transfer="none",
        made_work_dir=draw(st.booleans()),
        labels=draw(st.dictionaries(text, text, max_size=3)),
        create_time=draw(st.floats(allow_nan=False)),
        launch=draw(text),
        launch_time=draw(st.floats(allow_nan=False)),
        worker=draw(worker),
        archived=draw(st.none() | st.floats(allow_nan=False)),
        windows=tuple(Window(name=n, command=n) for n in draw(st.lists(text, max_size=2))),
        plugin=draw(st.dictionaries(text, json_values, max_size=2)),
    )


@given(records())
def test_a_record_survives_the_round_trip_through_its_file(record: AgentRecord) -> None:
    assert AgentRecord.from_json(decode(encode(record))) == record


@given(json_values)
def test_any_json_is_a_record_or_a_bad_record(value: Json) -> None:
    try:
        AgentRecord.from_json(value)
    except BadRecord:
        return
    raise AssertionError("no random value is a whole record")


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_a_bad_record(data: bytes) -> None:
    try:
        decode(data)
    except BadRecord as error:
        assert "JSON" in error.message


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"launch": "a", "code": "0", "time": 1}, "Exit.code: expected int, found str"),
        ({"launch": "a", "code": True, "time": 1}, "Exit.code: expected int, found bool"),
        ({"launch": "a", "time": 1}, "Exit.code is missing"),
        ([], "expected an object, found list"),
    ],
)
def test_a_wrong_field_is_named(value: object, words: str) -> None:
    with pytest.raises(BadRecord, match=words):
        Exit.from_json(value)


def test_a_text_is_no_list() -> None:
    with pytest.raises(BadRecord, match=r"HostNote.agents: expected a list, found str"):
        HostNote.from_json({"name": "box", "provider": "ssh", "agents": "agent-1"})


def test_unknown_fields_are_ignored_so_that_newer_records_can_be_read() -> None:
    assert Exit.from_json({"launch": "a", "code": 1, "time": 2, "new": 3}).code == 1


def test_a_struct_cannot_be_changed_only_replaced() -> None:
    exit = Exit(launch="a", code=1, time=2.0)
    with pytest.raises(AttributeError):
        exit.code = 2  # type: ignore[misc]
    assert exit.replace(code=2).code == 2 and exit.code == 1


def test_a_struct_refuses_missing_and_unknown_fields() -> None:
    with pytest.raises(TypeError, match="missing \\['time'\\], unknown \\['x'\\]"):
        Exit(launch="a", code=1, x=2)  # type: ignore[call-arg]


def test_structs_inherit_fields_and_only_their_own_are_shared() -> None:
    class Base(Struct):
        a: int = 1

    class Derived(Base):
        b: int = 2

    assert Derived(b=3).to_json() == {"a": 1, "b": 3}
    assert Base().to_json() == {"a": 1}
    assert "state" in Judgement._fields


def test_a_default_that_can_change_is_never_shared() -> None:
    class Basket(Struct):
        prices: dict[str, int] = {}
        owner: str = ""

    for one in (Basket(), Basket.from_json({}), Basket(owner="a").replace(owner="b")):
        one.prices["a"] = 1
        assert Basket().prices == Basket.from_json({}).prices == {}


def test_the_types_of_replaced_fields_are_checked(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from mngr.model.records import Exit\n"
        "def later(exit: Exit) -> Exit:\n"
        "    exit.replace(code='x')\n"
        "    exit.replace(cod=1)\n"
        "    return exit.replace(code=1, time=2.0)\n"
    )
    words = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(wrong)]
    told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert re.findall(r"wrong.py:(\d+): error", told) == ["3", "4"], told
