"""The assertions and commands in the source of a test. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mngr_e2e.blocks import cited

STRENGTH = {
    "to_equal": 3,
    "to_have_content": 3,
    "to_match_schema": 2,
    "to_contain": 2,
    "to_match": 2,
    "to_start_with": 2,
    "to_end_with": 2,
    "to_have_exit_code": 2,
    "to_have_line_count": 2,
    "to_be_empty": 2,
    "to_succeed": 1,
    "to_fail": 1,
}


@dataclass(frozen=True)
class Assertion:
    """A statement that can fail a test."""

    text: str
    subject: str
    """The variable that it checks."""
    looks_at: str
    """The expression that it checks, for example `result.stdout`."""
    matcher: str
    literals: tuple[str, ...]
    sure: bool = True
    """Whether it is always reached, regardless of the code around and before it."""

    @property
    def strength(self) -> int:
        return STRENGTH.get(self.matcher.removeprefix("not_"), 2)

    @property
    def negative(self) -> bool:
        return self.matcher.startswith("not_")


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: str) -> dict[str, Function]:
    """Return the functions by the part of a node id after the file: `Class::name` or `name`."""
    tree = parsed(source)
    return dict(_functions(tree.body, "")) if tree else {}


def parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _functions(body: list[ast.stmt], above: str) -> Iterator[tuple[str, Function]]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield above + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{above}{node.name}::")


def changed_tests(old: str, new: str) -> tuple[list[str], list[str]]:
    """Return the names of tests that differ, and of new tests."""
    before, after = functions(old), functions(new)
    tests = [name for name in after if name.rpartition("::")[2].startswith("test")]
    changed = [n for n in tests if n in before and not same(before[n], after[n])]
    return changed, [name for name in tests if name not in before]


def removed_tests(old: str, new: str) -> list[str]:
    after = functions(new)
    gone = [name for name in functions(old) if name not in after]
    return [name for name in gone if name.rpartition("::")[2].startswith("test")]


def changed_hooks(old: str, new: str) -> list[str]:
    """Return the changed hooks, which decide how pytest runs and judges tests."""
    before, after = functions(old), functions(new)
    hooks = [name for name in after if name.startswith("pytest_")]
    defined = [n for n in hooks if n not in before or not same(before[n], after[n])]
    given = _given_hooks(old)
    return [*defined, *(name for name, how in _given_hooks(new).items() if given.get(name) != how)]


def _given_hooks(source: str) -> dict[str, str]:
    """Return hooks that are imported, assigned or conditional, and `pytest_plugins`."""
    tree = parsed(source)
    plain = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found: dict[str, str] = {}
    for statement in tree.body if tree else ():
        nodes = [] if isinstance(statement, plain) else ast.walk(statement)
        names = [name for node in nodes for name in _bound(node)]
        found |= {name: ast.dump(statement) for name in names if name.startswith("pytest_")}
    return found


def _bound(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [each.asname or each.name for each in node.names]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return [node.name]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []


def changes_around(old: str, new: str) -> bool:
    """Return whether anything but tests differs, for example a helper or a fixture."""
    return _around(old) != _around(new)


def _around(source: str) -> str:
    tree = parsed(source)
    return ast.dump(WithoutTests().visit(tree)) if tree else source


class WithoutTests(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        return None if node.name.startswith("test") else node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST | None:
        return None if node.name.startswith("test") else node


def same(one: ast.AST, other: ast.AST) -> bool:
    return ast.dump(one) == ast.dump(other)


def assertions(function: ast.AST) -> list[Assertion]:
    """Return each `assert …`, `expect(…).to_…(…)` and `pytest.raises(…)`."""
    return list(_in_body(getattr(function, "body", []), sure=True))


def _in_body(body: Sequence[ast.stmt], *, sure: bool) -> Iterator[Assertion]:
    for statement in body:
        yield from _in_node(statement, sure=sure)
        sure = sure and not _may_leave(statement)


def _in_node(node: ast.AST, *, sure: bool) -> Iterator[Assertion]:
    """Yield the assertions of a node in order; none is sure inside what may not run."""
    found = _assertion(node, sure)
    if found is not None:
        yield found
    inner = sure and not _may_pass_over(node)
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield from _in_body(value, sure=inner)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST) and not isinstance(each, ast.stmt):
                yield from _in_node(each, sure=inner)


def _assertion(node: ast.AST, sure: bool) -> Assertion | None:
    if isinstance(node, ast.Assert):
        literals = tuple(literals_of(node.test))
        looks_at = ast.unparse(node.test)
        return Assertion(ast.unparse(node), _root(node.test), looks_at, "assert", literals, sure)
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr.startswith(("to_", "not_to_")):
        literals = tuple(text for argument in node.args for text in literals_of(argument))
        subject, looks_at = _root(node.func.value), ast.unparse(node.func.value)
        return Assertion(ast.unparse(node), subject, looks_at, node.func.attr, literals, sure)
    if ast.unparse(node.func).endswith("raises"):
        text = ast.unparse(node)
        return Assertion(text, "raises", text, "raises", tuple(literals_of(node)), sure)
    return None


CONDITIONAL = (
    *(ast.If, ast.IfExp, ast.BoolOp, ast.While, ast.Try, ast.TryStar, ast.Match, ast.Lambda),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
LEAVING = ("skip", "xfail", "exit", "_exit", "importorskip")


def _may_pass_over(node: ast.AST) -> bool:
    """Return whether the code inside may not run, or may fail unnoticed."""
    if isinstance(node, ast.For):
        values = node.iter
        return not (isinstance(values, (ast.Tuple, ast.List)) and values.elts)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return any("suppress" in ast.unparse(item.context_expr) for item in node.items)
    return isinstance(node, CONDITIONAL)


def _may_leave(statement: ast.stmt) -> bool:
    """Return whether the code after it may not run."""
    return any(
        isinstance(each, (ast.Return, ast.Break, ast.Continue))
        or (isinstance(each, ast.Call) and ast.unparse(each.func).split(".")[-1] in LEAVING)
        for each in ast.walk(statement)
    )


def _root(node: ast.AST) -> str:
    """Return the first variable, except `expect` and some built-ins."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id not in ("expect", "len", "str", "sorted", "json"):
            return each.id
    return ""


def literals_of(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and each.value is not None:
            yield str(each.value)


def commands(function: ast.AST) -> dict[str, list[str]]:
    """Return the commands whose result each variable holds; "" for other values."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        texts = [_command(call) for call in _runs(node.value)]
        for target in node.targets:
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).extend(texts or [""])
    return found


def _command(call: ast.Call) -> str:
    """Return the text of a command; its source if it is not a literal."""
    given = [*call.args, *(each.value for each in call.keywords if each.arg == "command")]
    if not given:
        return ""
    first = given[0]
    plain = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return first.value if plain else ast.unparse(first)  # type: ignore[attr-defined]


def _runs(node: ast.AST) -> Iterator[ast.Call]:
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and _method(each) in ("run", "start"):
            yield each


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def runs_commands(function: ast.AST) -> bool:
    """Return whether the test runs any command."""
    return any(True for _ in _runs(function))


def blocks(function: ast.AST) -> str:
    """Return the tutorial blocks that a test cites, with an empty line between them."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return ""
    return "\n\n".join(text for _, text in cited(function) if text)
