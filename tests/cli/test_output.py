from __future__ import annotations

import argparse
import json
import os
import pty
import time
import unicodedata
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.cli.app.output import cell, clean, confirm, one, rows, say, warn
from mngr.cli.app.templates import parse_template
from mngr.errors import Refused, UsageError
from mngr.model.struct import Json
from mngr.query import select

AGENTS: list[dict[str, Json]] = [
    {
        "name": "a",
        "state": "RUNNING",
        "labels": {"run": "5"},
        "host": {"name": "box", "state": "UP"},
    },
    {
        "name": "long-name",
        "state": "DONE",
        "labels": {},
        "host": {"name": "localhost", "state": "UP"},
    },
]
COLUMNS: list[str | tuple[str, str]] = ["name", "state", "host.name", ("host.state", "HOST STATE")]


def options(format: str = "human", quiet: bool = False) -> argparse.Namespace:
    return argparse.Namespace(format=format, quiet=quiet, headless=False)


def printed(capsys: pytest.CaptureFixture[str], format: str, **how: object) -> str:
    rows(options(format), AGENTS, COLUMNS, **how)  # type: ignore[arg-type]
    return capsys.readouterr().out


def test_a_table_is_aligned_without_trailing_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "human").split("\n") == [
        "NAME       STATE    HOST NAME  HOST STATE",
        "a          RUNNING  box        UP",
        "long-name  DONE     localhost  UP",
        "",
    ]


def test_json_is_the_list_or_an_envelope_with_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(capsys, "json")) == AGENTS
    told = printed(capsys, "json", envelope="agents", errors=[{"message": "box is silent"}])
    assert json.loads(told) == {"agents": AGENTS, "errors": [{"message": "box is silent"}]}


def test_jsonl_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert [json.loads(line) for line in printed(capsys, "jsonl").splitlines()] == AGENTS


def test_errors_are_footnotes_where_the_format_has_no_place_for_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows(options(), AGENTS, COLUMNS, "agents", [{"message": "box\x1b[2J is silent"}])
    assert capsys.readouterr().err == "mngr: box is silent\n"


def test_a_template_is_one_line_per_row(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, r"{name}\t{host.name}:{labels.run}{{x}}")
    assert out == "a\tbox:5{x}\nlong-name\tlocalhost:{x}\n"


def test_an_unknown_field_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"unknown field 'host\.nme'; did you mean 'host\.name'"):
        rows(options("{host.nme}"), AGENTS, COLUMNS)
    with pytest.raises(UsageError, match="unknown field 'sate'; did you mean 'state'"):
        rows(options(), AGENTS, ["sate"])
    with pytest.raises(UsageError, match="unknown field 'sate'; did you mean 'state'"):
        rows(options("{sate}"), [], COLUMNS, fields=["name", "state"])


def test_a_label_that_nobody_has_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "{labels.nobody}") == "\n\n"


def test_nothing_to_show_is_said_in_words_only_to_people(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows(options(), [], COLUMNS, "agents", empty="No agents found")
    assert capsys.readouterr().out == "No agents found\n"
    rows(options("json"), [], COLUMNS, "agents", empty="No agents found")
    assert json.loads(capsys.readouterr().out) == {"agents": [], "errors": []}
    rows(options("jsonl"), [], COLUMNS, "agents", empty="No agents found")
    assert capsys.readouterr().out == ""


def test_one_result_in_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    row: dict[str, Json] = {"name": "a", "n": 1}
    for format, expected in [
        ("human", "made a\n"),
        ("json", '{"name": "a", "n": 1}\n'),
        ("jsonl", '{"name": "a", "n": 1}\n'),
        ("{n}", "1\n"),
    ]:
        one(options(format), row, "made a")
        assert capsys.readouterr().out == expected


def test_notes_go_to_stderr_and_keep_quiet_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    say(options(), "hello")
    say(options(quiet=True), "unheard")
    warn("careful")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "hello\nmngr: careful\n"


@pytest.mark.parametrize(
    ("dirty", "safe"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\rb\x08\x7f\x9bc", "abc"),
        ("two\nlines\tand tab", "two\nlines\tand tab"),
        ("\u202eevil", "evil"),
        ("grün 雪 🙂", "grün 雪 🙂"),
    ],
)
def test_text_from_elsewhere_cannot_drive_the_terminal(dirty: str, safe: str) -> None:
    assert clean(dirty) == safe


@given(st.text() | st.text(st.sampled_from("\x1b[]\\\x07;mP^_ 0a\n\x9b\x9d")))
def test_no_control_character_survives_cleaning(text: str) -> None:
    left = {c for c in clean(text) if unicodedata.category(c) == "Cc"}
    assert left <= {"\n", "\t"}
    assert clean(clean(text)) == clean(text)


@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.text(st.sampled_from("a\r\n\t\x1b")),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    )
)
def test_a_cell_is_one_line(value: object) -> None:
    text = cell(value)  # type: ignore[arg-type]
    assert not any(unicodedata.category(c) == "Cc" for c in text)


@given(st.text(st.characters(exclude_characters="{}\\")), st.sampled_from(["a", "a.b", "x_y"]))
def test_what_is_not_a_field_is_kept(text: str, field: str) -> None:
    assert parse_template(f"{text}{{{field}}}{text}") == [(text, field), (text, "")]
    doubled = "{{" + text + "}}"
    assert parse_template(doubled) == [("{" + text + "}", "")]


@given(st.text(st.sampled_from("{}\\tnab. ")))
def test_no_template_raises_anything_but_a_usage_error(text: str) -> None:
    with suppress(UsageError):
        parse_template(text)


def test_escapes_in_templates() -> None:
    assert parse_template(r"\t\n\\\x") == [("\t\n\\\\x", "")]


def test_a_dotted_name_looks_inside() -> None:
    assert select({"a": {"b": {"c": 1}}}, "a.b.c") == 1
    assert select({"a": {"b": 1}}, "a.b.c") is None
    assert select({"a.b": 2}, "a.b") == 2


def test_a_question_without_a_terminal_is_refused() -> None:
    with pytest.raises(Refused, match="Use --force"):
        confirm(options(), "Remove a?")


@pytest.mark.parametrize(
    ("typed", "default", "expected"),
    [("y\n", False, True), ("\n", False, False), ("\n", True, True), ("no\n", True, False)],
)
def test_a_question_on_a_terminal_is_answered(
    monkeypatch: pytest.MonkeyPatch, typed: str, default: bool, expected: bool
) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", closefd=False) as err, os.fdopen(theirs) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr("sys.stderr", err)
        os.write(ours, typed.encode())
        assert confirm(options(), "Remove a?", default=default) is expected
    os.close(ours)


def test_a_table_shows_times_in_the_readers_zone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "XYZ-02:00")
    time.tzset()
    row: dict[str, Json] = {"name": "TtoZ", "at": "2026-11-18T02:31:36Z", "odd": "0123456789TZ"}
    try:
        rows(options(), [row], ["name", "at", "odd"], "things")
    finally:
        monkeypatch.undo()
        time.tzset()
    line = capsys.readouterr().out.splitlines()[1]
    assert line == "TtoZ  2026-11-18 04:31:36 +0200  0123456789TZ"
