"""docs/architecture.md leads to places that exist, and knows every folder."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()


def test_every_place_it_names_exists() -> None:
    named = re.findall(r"`((?:src|tests|docs|man|scripts|benchmarks)/[\w./-]*)`", PAGE + GUIDE)
    assert len(named) > 40
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_every_package_and_every_room_is_named() -> None:
    packages = {each.parent.relative_to(ROOT / "src") for each in ROOT.glob("src/*/__init__.py")}
    missing = [str(each) for each in packages if f"`src/{each}/" not in PAGE]
    rooms = [each.parent.name for each in ROOT.glob("src/mngr/*/__init__.py")]
    rooms += [each.parent.name for each in ROOT.glob("src/mngr/ops/*/__init__.py")]
    rooms += [each.parent.name for each in ROOT.glob("src/mngr_tmr/*/__init__.py")]
    missing += [each for each in rooms if not re.search(rf"\b{each}\b", PAGE)]
    assert missing == []


def test_every_package_and_every_room_has_its_folder_of_tests() -> None:
    rooms = [*ROOT.glob("src/mngr/*/__init__.py"), *ROOT.glob("src/mngr_*/__init__.py")]
    names = [each.parent.name for each in rooms]
    assert [each for each in names if not list((ROOT / "tests" / each).glob("test_*.py"))] == []


def test_every_class_has_a_name_of_its_own() -> None:
    defined = defaultdict(list)
    for path in sorted((ROOT / "src").rglob("*.py")):
        for name in _classes(ast.parse(path.read_bytes())):
            defined[name.lstrip("_")].append(str(path.relative_to(ROOT)))
    assert len(defined) > 300
    assert {name: paths for name, paths in defined.items() if len(paths) > 1} == {}


def _classes(block: ast.Module | ast.If) -> Iterator[str]:
    """Yield the names of a module's classes, also of those under `if TYPE_CHECKING:`."""
    for node in block.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.If):
            yield from _classes(node)


def test_every_event_of_the_manual_is_known_and_emitted() -> None:
    from mngr.plugins.registry import EVENTS

    table = (ROOT / "docs/plugins.md").read_text().partition("| event | when |")[2]
    rows = re.match(r"(?:\n?\|.*)+", table)
    assert rows is not None
    first_cells = " ".join(row.split("|")[1] for row in rows[0].splitlines() if row)
    assert sorted(re.findall(r"`(\w+)`", first_cells)) == sorted(EVENTS)
    code = "".join(path.read_text() for path in (ROOT / "src/mngr/ops").rglob("*.py"))
    emitted = re.findall(r'emit\((?:world, )?"(\w+)"', code)
    assert sorted(set(emitted)) == sorted(EVENTS)
