"""The recording in the README shows the current output of mngr, in 80 columns."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from scripts.terminal_svg import Frame, Style, runs, svg, text_of
from tests.support.programs import program

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "day.svg"
SVG = "{http://www.w3.org/2000/svg}"


def test_the_recording_shows_what_mngr_prints() -> None:
    program("claude")  # skipped if it cannot be installed
    words = [sys.executable, "scripts/record_day.py", "--check", str(PICTURE)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_picture_tells_the_day_and_no_line_is_wider_than_its_terminal() -> None:
    root = ElementTree.parse(PICTURE).getroot()
    told = root.findtext(f"{SVG}desc") or ""
    for verb in ("create", "list", "answer", "merge", "destroy", "restore"):
        assert f"\n$ mngr {verb} " in f"{told} ".replace("\n", " \n"), verb
    assert max(map(len, told.splitlines())) <= 80
    width = float(root.attrib["width"])
    pieces = root.findall(f".//{SVG}text")
    assert len(pieces) > 50
    for piece in pieces:
        assert float(piece.attrib["x"]) + float(piece.attrib["textLength"]) < width


SGR = st.lists(st.integers(0, 108), max_size=3).map(lambda codes: ";".join(map(str, codes)))
PIECES = st.lists(
    st.one_of(st.text(" <&$#ab…", max_size=6), SGR.map(lambda codes: f"\x1b[{codes}m")), max_size=8
)


@given(PIECES)
def test_every_character_is_drawn_where_it_was(pieces: list[str]) -> None:
    line = "".join(pieces)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
    drawn = [" "] * len(plain)
    for column, text, _ in runs(line, Style())[0]:
        drawn[column : column + len(text)] = text
    assert "".join(drawn) == plain
    assert text_of(Frame(line)) == plain.rstrip()
    ElementTree.fromstring(svg([Frame(line)], 80, 24, "t", plain))


def test_colours_are_those_of_the_terminal() -> None:
    line = "\x1b[31mred\x1b[39;1m bold\x1b[0m\x1b[38;5;196m 196\x1b[38;2;1;2;3mrgb"
    styles = [style for _, _, style in runs(line, Style())[0]]
    assert [style.colour for style in styles] == ["#e06c75", "", "#ff0000", "#010203"]
    assert [style.bold for style in styles] == [False, True, False, False]
