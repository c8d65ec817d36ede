from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.cli.app.main import make_parser
from mngr.cli.app.manual import command_page, overview_page
from mngr.cli.app.parser import Parser
from mngr.cli.app.rendering import Page, Paragraph, Section, as_roff, as_text, fill, text_width
from mngr.plugins.registry import load_registry, own_registry
from scripts.man import write
from tests.support import kite
from tests.support.cli import ROOT


def kite_page() -> Page:
    parser = Parser("kite", "fly a kite", ["k"])
    kite.configure(parser)
    return command_page(parser)


def test_a_page_has_the_sections_of_a_manual() -> None:
    lines = as_text(kite_page(), 80).splitlines()
    titles = [line for line in lines if line and not line.startswith(" ")]
    assert titles == [
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "ARGUMENTS",
        "OPTIONS",
        "EXAMPLES",
        "SEE ALSO",
    ]


def test_a_page_says_what_the_parser_knows() -> None:
    text = as_text(kite_page(), 80)
    for line in (
        "    mngr-kite - fly a kite",
        "      mngr kite [OPTIONS] TARGET... [-- TAIL...]",
        "    Alias: `mngr k`.",
        "    --[no-]string            hold it",
        "    --wind WIND              from where (north, north-east, south)",
        "    --height HEIGHT          in metres (default 10)",
        "    -l, --label K=V          what is written on it",
        "    --dry-run                show what would be done, without doing it",
    ):
        assert line in text.splitlines()
    assert "--fate" not in text


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_text_keeps_to_the_width(width: int) -> None:
    text = as_text(kite_page(), width)
    prose = [line for line in text.splitlines() if not line.startswith("      mngr")]
    # A column of 24 leaves little at 40; only single words may stick out.
    assert all(len(line) <= width or " " not in line.strip() for line in prose)


def test_the_width_is_the_terminals_within_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, width in [("300", 100), ("10", 40), ("72", 72)]:
        monkeypatch.setenv("COLUMNS", columns)
        assert text_width() == width


def test_exit_codes_are_in_the_manual_of_mngr() -> None:
    titles = [section.title for section in overview_page(load_registry(None)).sections]
    assert titles[-1] == "EXIT STATUS"


def test_the_overview_lists_every_command_though_its_module_may_fail() -> None:
    registry = load_registry(None)
    registry.command("ghost", "no.such.module", "boo")
    text = as_text(overview_page(registry), 80)
    assert all(f"    {command.name}" in text for command in registry.commands.values())


@given(st.text(), st.integers(10, 100))
def test_filling_keeps_every_word_in_order(text: str, width: int) -> None:
    lines = fill(text, width)
    assert " ".join(lines).split() == text.split()
    assert all(len(line) <= width or " " not in line for line in lines)


def rendered(page: Page) -> str:
    """What man(1) would show, and no complaint from it."""
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-P-cbou", "-rLL=300n"],
        input=as_roff(page),
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_roff_says_the_same_as_the_text() -> None:
    page = kite_page()
    assert (
        rendered(page).replace("`", "").split()[4:-2] == as_text(page, 80).replace("`", "").split()
    )


def test_roff_has_no_hyphens_that_a_typesetter_could_change() -> None:
    options = [line for line in as_roff(kite_page()).splitlines() if "wind" in line]
    assert options == ["\\fB\\-\\-wind WIND\\fR"]


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
@pytest.mark.parametrize("name", own_registry().names("command"))
def test_every_command_has_a_whole_manual(name: str) -> None:
    page = command_page(make_parser(own_registry(), name))
    sections = {section.title: section.blocks for section in page.sections}
    assert all(block.text for blocks in sections.values() for block in blocks)
    assert sections["EXAMPLES"]
    assert rendered(page)


hostile = st.text(st.sampled_from(" .'\\-\"ab`%\t\n"), min_size=1)


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_roff_keeps_text_that_looks_like_roff() -> None:
    texts = [
        ".TH no",
        "'br",
        "a\\nb",
        "\\fBbold",
        'a "quoted" word',
        "--flag",
        "back`tick",
        "100%",
        "~ ^ 'x'",
    ]
    blocks = [Paragraph(kind="text", text=text) for text in texts]
    blocks += [Paragraph(kind="code", text=text) for text in texts]
    blocks += [Paragraph(kind="entry", term=text, text=text) for text in texts]
    shown = rendered(
        Page(name="x", summary="y", sections=(Section(title="Z", blocks=tuple(blocks)),))
    )
    for text in texts:
        assert shown.count(text) == 4, text


@given(hostile)
def test_no_line_of_text_becomes_a_request(text: str) -> None:
    block = Paragraph(kind="text", text=text)
    page = Page(name="x", summary="y", sections=(Section(title="Z", blocks=(block,)),))
    after = as_roff(page).split('.SH "Z"\n.PP\n')[1]
    assert not after.startswith((".", "'"))
    assert after.count("\n") == 1


def test_pages_of_removed_commands_go_and_the_environment_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    monkeypatch.setenv("MNGR__PLUGINS__MODULES", '["support.kite"]')
    monkeypatch.setenv("MNGR__COMMANDS__HELP__QUIET", "true")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    for name in ("mngr.1", "mngr-gone.1"):
        (tmp_path / name).write_text("old")
    write(tmp_path)
    shipped = {page.name: page.read_text() for page in (ROOT / "man").iterdir()}
    written = {page.name: page.read_text() for page in tmp_path.iterdir()}
    assert written == shipped, "run `make docs`"
