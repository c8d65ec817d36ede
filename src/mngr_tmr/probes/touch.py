"""A pytest plugin that reports which files of the project each test uses.

It is copied to the host like the probe. A test uses the modules that its module imports, directly
or indirectly, every conftest.py, pytest's settings, and all files that it opens. If it starts a
program, its files are unknown and `alone` is false, unless the lines that ran there were measured.
"""

from __future__ import annotations

import ast
import os
import sys

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from types import ModuleType

STARTS = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.exec", "os.system")


class Footprint:
    """What one test has touched so far."""

    def __init__(self) -> None:
        self.opened: set[str] = set()
        self.alone = True


current: Footprint | None = None
imports: dict[str, set[str]] = {}


def _heard(event: str, args: tuple[object, ...]) -> None:
    if current is None:
        return
    if event == "open" and isinstance(args[0], str):
        current.opened.add(args[0])
    elif event in STARTS:
        current.alone = False


sys.addaudithook(_heard)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, None, None]:
    global current
    current = touched = Footprint()
    try:
        yield
    finally:
        current = None
    root = str(item.config.rootpath) + os.sep
    loaded = {name: path for name, path in _loaded() if path.startswith(root)}
    found = {os.path.abspath(path) for path in touched.opened} | _needed(item, loaded)
    measured = _measured(item.nodeid)
    found |= measured
    found |= {str(item.config.inipath), str(item.path)}
    found |= {each for each in loaded.values() if os.path.basename(each) == "conftest.py"}
    inside = sorted(path[len(root) :] for path in found if path.startswith(root))
    inside = [path for path in inside if not path.startswith(".mngr-e2e")]
    entry = {"touched": item.nodeid, "files": inside, "alone": touched.alone or bool(measured)}
    probe = sys.modules.get("mngr_tmr_probe")
    if probe is not None:
        probe.tell(entry)


def _measured(test: str) -> set[str]:
    """Return the files that ran in a program that the test started."""
    lines = sys.modules.get("mngr_tmr_lines")
    return set(lines.started.get(test, ())) if lines is not None else set()


def _loaded() -> Iterator[tuple[str, str]]:
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str):
            yield name, os.path.abspath(path)


def _needed(item: pytest.Item, loaded: dict[str, str]) -> set[str]:
    module: ModuleType | None = getattr(item, "module", None)
    todo = [module.__name__] if module is not None else []
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name in loaded and name not in seen:
            seen.add(name)
            todo += [*_imports(name, loaded[name]), name.rpartition(".")[0]]
    return {loaded[name] for name in seen}


def _imports(name: str, path: str) -> set[str]:
    """Return the imports in the source, so that an unused or late import counts as well."""
    if path not in imports:
        try:
            with open(path, "rb") as file:
                tree = ast.parse(file.read())
        except (OSError, SyntaxError, ValueError):
            return set()
        is_package = os.path.basename(path) == "__init__.py"
        package = name if is_package else name.rpartition(".")[0]
        imports[path] = {each for node in ast.walk(tree) for each in _named(node, package)}
    return imports[path]


def _named(node: ast.AST, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        parts = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*(parts if node.level else []), *([node.module] if node.module else [])])
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names)
