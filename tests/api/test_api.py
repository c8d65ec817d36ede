"""mngr.api, the one door: every name it lists can be imported, and is typed."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

from mngr import api


@pytest.mark.parametrize("name", api.__all__)
def test_every_name_it_lists_is_there(name: str) -> None:
    found = getattr(api, name)
    if name in api.HOLDERS and name.islower():
        assert found is import_module(f"{api.HOLDERS[name]}.{name}")
    elif name in api.HOLDERS:
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


def test_another_name_is_an_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="nosuch"):
        _ = api.nosuch
