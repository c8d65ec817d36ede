"""mngr.api, the one door: every name it lists can be imported, and is typed."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from mngr import api


@pytest.mark.parametrize("name", api.__all__)
def test_every_name_it_lists_is_there(name: str) -> None:
    found = getattr(api, name)
    assert not isinstance(found, ModuleType), "a verb or a noun, not a room with all that is in it"
    if name in api.HOLDERS:
        assert found is getattr(import_module(api.HOLDERS[name]), name)


def test_what_is_imported_on_use_is_what_type_checkers_see() -> None:
    tree = ast.parse(Path(api.__file__).read_text())
    block = next(each for each in tree.body if isinstance(each, ast.If))
    typed = {
        alias.asname: f"{each.module}.{alias.name}"
        for each in block.body
        if isinstance(each, ast.ImportFrom)
        for alias in each.names
    }
    typed_ours = {name: where for name, where in typed.items() if name}
    assert typed_ours == {name: f"{holder}.{name}" for name, holder in api.HOLDERS.items()}


SOURCES = Path(api.__file__).parents[2]
OUTSIDE = [
    path
    for package in ("mngr/cli", "mngr_mechanic", "mngr_tmr", "mngr_tutorial", "mngr_view")
    for path in sorted((SOURCES / package).rglob("*.py"))
]


def reached_past(source: str) -> list[str]:
    """The lines that use the world of the operations, or a host, instead of a method of Mngr."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            of_host = isinstance(node.value, ast.Attribute) and node.value.attr == "host"
            acts = of_host and node.attr in ("argv", "run", "read", "put", "swap")
            found += [ast.unparse(node)] if acts or node.attr in ("world", "_world") else []
    return found


def test_the_command_line_and_the_sister_packages_reach_past_it_nowhere() -> None:
    assert reached_past("agent.host.run(api.world.home)") == ["agent.host.run", "api.world"]
    found = {str(path): reached_past(path.read_text()) for path in OUTSIDE}
    assert len(found) > 100 and not any(found.values()), {k: v for k, v in found.items() if v}


def test_another_name_is_an_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="nosuch"):
        _ = api.nosuch
