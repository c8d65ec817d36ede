"""The packaged prompts of `fill` and `sync`, each with a version."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from string import Template
from textwrap import indent

from mngr.errors import MngrError
from mngr_e2e.blocks import Block
from mngr_tutorial.project import Project

FOLDER = Path(__file__).parent / "prompts"
SYNC = "sync-tutorial-to-e2e-tests"
_VERSION = re.compile(r"<!-- version (\d+) -->\n")


@dataclass(frozen=True)
class Prompt:
    name: str
    version: int
    text: str

    @property
    def fields(self) -> set[str]:
        """Return the fields of the template."""
        return set(Template(self.text).get_identifiers())

    def render(self, **values: str) -> str:
        """Return the prompt with all fields filled in; raise if the names differ."""
        if set(values) != self.fields:
            odd = ", ".join(sorted(set(values) ^ self.fields))
            raise MngrError(f"the prompt {self.name!r} and its values differ in: {odd}")
        return Template(self.text).substitute(values)


def load(name: str) -> Prompt:
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    version = _VERSION.match(text)
    assert version is not None, f"{name}.md does not start with its version"
    return Prompt(name, int(version[1]), text[version.end() :])


def quoted(blocks: list[Block]) -> str:
    """Return the blocks as Markdown, each with its line in the tutorial."""
    heads = [f"Line {block.line}{_section(block)}:" for block in blocks]
    texts = [indent(block.text, "    ") for block in blocks]
    return "\n\n".join(f"{head}\n\n{text}" for head, text in zip(heads, texts, strict=True))


def _section(block: Block) -> str:
    return f", in the section “{block.section}”" if block.section else ""


def test_places(project: Project) -> str:
    return " and ".join(f"`{project.named(place)}`" for place in project.tests)


def sync_instructions(tutorial: str, tests: str, blocks: str) -> str:
    """Return the instructions for an agent of `sync` or for the slash command."""
    return load(SYNC).render(tutorial=tutorial, tests=tests, blocks=blocks).rstrip("\n")
