"""Secrets are removed from artifacts and from failures."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mngr_e2e import E2eSession
from mngr_e2e.commands import recording
from mngr_e2e.redaction import Redactor
from tests.mngr_e2e.project import Project

SECRET = 'tok-"12 45&x'


@given(st.lists(st.text('abtok-"12 45&x\n')), st.integers(0, 6), st.integers(0, 9))
def test_of_pieces_of_any_size_none_and_no_two_hold_a_secret(
    around: list[str], place: int, cut: int
) -> None:
    text = "".join([*around[:place], SECRET, *around[place:]])
    at = text.index(SECRET) + cut
    pieces = Redactor({"A_TOKEN": SECRET}).pieces([text[:3], text[3:at], text[at:]])
    pieces = pieces if at >= 3 else Redactor({"A_TOKEN": SECRET}).pieces([text[:at], text[at:]])
    assert SECRET not in "".join(pieces)
    assert "".join(pieces) == text.replace(SECRET, "[A_TOKEN]")


def test_pieces_without_secrets_stay_as_they_are() -> None:
    pieces = ["a", "", "bc\x1b[1m", "d"]
    assert Redactor({"A_TOKEN": "hunter22"}, ["x+"]).pieces(pieces) == pieces
    assert Redactor({}, ["x*"]).pieces(pieces) == pieces


def test_a_pattern_that_matches_over_several_pieces_is_replaced_once() -> None:
    redact = Redactor({}, ["id-[0-9]+"])
    assert redact.pieces(["an i", "d-1", "", "23 and id-4 ", "id", "-5"]) == [
        "an [redacted]",
        "",
        "",
        " and [redacted] ",
        "[redacted]",
        "",
    ]


@pytest.mark.parametrize("broken", ["\x1b[1;31m", " \r", "\r\n", "\x1b[K\r\n\x1b[0m"])
def test_a_terminal_cannot_hide_a_secret_between_its_own_signs(broken: str) -> None:
    shown = [f"key hun{broken}te", "r", f"2{broken}2 end"]
    assert Redactor({"A_TOKEN": "hunter22"}).pieces(shown) == ["key [A_TOKEN]", "", " end"]


def test_a_secret_is_known_as_json_and_as_a_part_of_a_url() -> None:
    redact = Redactor({"A_TOKEN": SECRET})
    assert redact(json.dumps({"key": SECRET})) == '{"key": "[A_TOKEN]"}'
    assert redact("http://x/?key=tok-%2212%2045%26x") == "http://x/?key=[A_TOKEN]"


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("API_TOKEN=abcdef12 tool go", "API_TOKEN=[API_TOKEN] tool go"),
        ("export my_password='abcdef12'", "export my_password='[my_password]'"),
        ("A_TOKEN=$OTHER tool", "A_TOKEN=$OTHER tool"),
        ("tool login --password hunter2 --yes", "tool login --password [redacted] --yes"),
        ("tool --api-key=hunter2", "tool --api-key=[redacted]"),
        ("tool --password --token-file x", "tool --password --token-file x"),
        ('tool --token "$TOKEN"', 'tool --token "$TOKEN"'),
        ("export my_password='ab cd ef12'; go", "export my_password='[my_password]'; go"),
        ("A_SECRET='a$b' tool", "A_SECRET='[A_SECRET]' tool"),
        ('A_SECRET="a b$c" tool', 'A_SECRET="[A_SECRET]" tool'),
        ("A_SECRET=a\\ b' c'\"d\" tool", "A_SECRET=[A_SECRET] tool"),
        ("A_TOKEN=$(pass show x) tool", "A_TOKEN=$(pass show x) tool"),
        ('A_TOKEN="${OTHER}" tool', 'A_TOKEN="${OTHER}" tool'),
        ('tool --password "a b" --yes', 'tool --password "[redacted]" --yes'),
        ("tool --password='a b' --yes", "tool --password='[redacted]' --yes"),
        ("tool --password -x --yes", "tool --password [redacted] --yes"),
        ("tool --password=--x --yes", "tool --password=[redacted] --yes"),
        ("tool --password '--x' --yes", "tool --password '[redacted]' --yes"),
        ("tool --password; true", "tool --password; true"),
        ("DB_PASSWORD=x tool x", "DB_PASSWORD=[DB_PASSWORD] tool x"),
        (
            "DB_PASSWORD=pw tool --pw pw",
            "DB_PASSWORD=[DB_PASSWORD] tool --[DB_PASSWORD] [DB_PASSWORD]",
        ),
        ("DB_PWD=pw tool", "DB_PWD=[DB_PWD] tool"),
        ("PWD=/tmp OLDPWD=/home/me tool", "PWD=/tmp OLDPWD=/home/me tool"),
        ("USE_TOKEN=true MAX_TOKENS=4096 tool", "USE_TOKEN=true MAX_TOKENS=4096 tool"),
        ("sh -c 'A_SECRET=ab' && echo 'done'", "sh -c 'A_SECRET=[A_SECRET]' && echo 'done'"),
        ('sh -c "tool --password \\"a b\\" x"', 'sh -c "tool --password \\"[redacted]\\" x"'),
        ("sh -c 'tool --password \"a b\" x'", "sh -c 'tool --password \"[redacted]\" x'"),
        ("echo $'it' A_SECRET=$'a\\'b' x", "echo $'it' A_SECRET=[A_SECRET] x"),
    ],
)
def test_a_command_is_written_down_without_the_secrets_in_it(command: str, written: str) -> None:
    redact = Redactor({})
    assert redact.command(command) == written
    if "abcdef12" in command:
        assert "abcdef12" not in redact("it says abcdef12")


GIVEN = ["DB_PASSWORD={} tool", "export A_TOKEN={}; tool", "tool --password {} --yes"]
GIVEN += ["tool --api-key={} --yes", "A=1 B_SECRET={} tool >out"]
QUOTED: dict[str, Callable[[str], str]] = {
    "single": shlex.quote,
    "double": lambda text: '"' + re.sub(r'([$`"\\])', r"\\\1", text) + '"',
    "escaped": lambda text: re.sub(r"([^\w-])", r"\\\1", text),
}


@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=255), min_size=2).map(str.strip),
    st.sampled_from(GIVEN),
    st.sampled_from(sorted(QUOTED)),
    st.booleans(),
)
def test_a_value_is_taken_out_however_it_is_quoted(
    value: str, shape: str, style: str, nested: bool
) -> None:
    assume(len(value) >= 2 and not value.startswith("--"))
    value = f"Q{value}Z"  # so that the command itself does not contain the text
    words = shape.format(QUOTED[style](value))
    redact = Redactor({})
    written = redact.command(f"sh -c {shlex.quote(words)} 'and more'" if nested else words)
    assert value not in written and QUOTED[style](value) not in written
    assert "Q" not in written and "Z" not in written
    assert "tool" in written and written.endswith("'and more'" if nested else words[-4:])
    if "--" not in shape or len(value) >= 6:
        assert value not in redact(f"it says {value}.")


@given(st.text("ab'\"$`\\ ;&|()=-_PASWORD\n", max_size=40))
def test_any_text_can_be_a_command(text: str) -> None:
    Redactor({}).command(text)


def test_short_passwords_are_taken_out_where_they_are_whole_words() -> None:
    redact = Redactor(
        {"DB_PASSWORD": "ab1", "A_TOKEN": "t0", "USE_TOKEN": "yes", "B_PASSWORD": "x"}
    )
    assert (
        redact("ab1 cab12 'ab1' t0: yes x")
        == "[DB_PASSWORD] cab12 '[DB_PASSWORD]' [A_TOKEN]: yes x"
    )
    assert redact("\x1b[31mab1\x1b[0m") == "\x1b[31m[DB_PASSWORD]\x1b[0m"
    shown = ["pass a", "b\x1b[1m", "1, \x1b[31m", "ab1", " xab1"]
    assert redact.pieces(shown) == [
        "pass [DB_PASSWORD]",
        "",
        ", \x1b[31m",
        "[DB_PASSWORD]",
        " xab1",
    ]


def test_a_secret_in_several_events_of_a_recording_is_taken_out(tmp_path: Path) -> None:
    cast = tmp_path / "x.cast"
    events = [[0.1, "o", "key hun"], [0.2, "i", "x"], [0.3, "o", "ter2"], [0.4, "o", "2!"]]
    lines = [{"version": 2, "command": "echo hunter22"}, *events]
    cast.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert recording.tidy(cast, Redactor({"A_TOKEN": "hunter22"}))
    header, *kept = [json.loads(line) for line in cast.read_text().splitlines()]
    assert header["command"] == "echo [A_TOKEN]"
    texts = ["key [A_TOKEN]", "x", "", "!"]
    assert kept == [[*event[:2], text] for event, text in zip(events, texts, strict=True)]


def test_a_secret_that_is_named_late_is_taken_out_of_what_was_written(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("echo told-later")
    e2e.run("echo told-later; echo and more", comment="told-later")
    e2e.redact("told-later")
    e2e.run("echo told-later again")
    files = [path.read_text() for path in e2e.artifacts.iterdir()]
    assert "told-later" not in "".join(files)
    assert e2e.transcript.text == (e2e.artifacts / "transcript.txt").read_text()
    assert "[secret]\nand more\n$ echo [secret] again\n[secret] again\n" in e2e.transcript.text


def test_secrets_do_not_reach_what_pytest_shows(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.settings("pass_env = ['SERVICE_TOKEN']")
    project.test("""
        def test_by_expect(e2e: E2eSession) -> None:
            print(e2e.run("echo printed $SERVICE_TOKEN").stdout)
            expect(e2e.run("echo $SERVICE_TOKEN; echo $SERVICE_TOKEN >&2").stdout).to_equal("a")
        def test_by_assert(e2e: E2eSession) -> None:
            result = e2e.run("echo $SERVICE_TOKEN")
            assert result.stdout == "b" and result
        def test_by_waiting(e2e: E2eSession) -> None:
            e2e.start("echo $SERVICE_TOKEN").wait_for_output("c")
        def test_by_cause(e2e: E2eSession) -> None:
            try:
                raise OSError(e2e.run("echo $SERVICE_TOKEN").stdout)
            except OSError as error:
                raise ValueError from error
    """)
    done = project.pytest("-l", "--junitxml=report.xml", SERVICE_TOKEN="tok-12345")
    assert "4 failed" in done.stdout
    assert "printed [SERVICE_TOKEN]" in done.stdout
    for shown in (done.stdout, (project.root / "report.xml").read_text()):
        assert "tok-12345" not in shown
        assert shown.count("[SERVICE_TOKEN]") >= 4
