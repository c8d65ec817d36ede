"""The table of what each agent type can do is made from the code."""

from __future__ import annotations

import pytest

from mngr.agents.base import AgentType
from scripts.agent_types import BEGIN, END, builtin_types, filled, table
from tests.support.cli import ROOT

DOCUMENT = ROOT / "docs" / "agents.md"


def test_the_document_says_what_the_code_can_do() -> None:
    text = DOCUMENT.read_text()
    made = filled(text, table(builtin_types()))
    assert text == made, f"run `python scripts/agent_types.py {DOCUMENT.relative_to(ROOT)}`"


def test_a_type_can_do_what_it_overrides() -> None:
    class Scholar(AgentType):
        program = "scholar"
        forks = True

        def meter(self) -> str:
            return "cat tokens"

    text = table({"plain": AgentType(), "scholar": Scholar()})
    rows = {cells[1].strip(): cells[2:4] for cells in (x.split("|") for x in text.splitlines())}
    assert rows["`clone` continues with a copy of the conversation"] == ["  ", " yes "]
    assert rows["`--max-cost`, `--max-tokens`"] == ["  ", " yes "]
    assert rows["`transcript`"] == ["  ", "  "]
    assert rows["required program"] == ["  ", " `scholar` "]


def test_a_document_without_the_marks_is_left_alone() -> None:
    with pytest.raises(ValueError, match="marks"):
        filled("nothing", "table")
    assert filled(f"a\n{BEGIN}old\n{END}b\n", "new\n") == f"a\n{BEGIN}\nnew\n\n{END}b\n"
