"""Operators on control flow: returns, branches, loops, slices, indexes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mngr_mechanic.program.scope import BUILT_IN, Scope
from mngr_mechanic.program.source import Edit

STEPS = ("+ 1", "- 1")


def slices(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    if not isinstance(node, ast.Slice):
        return
    source = scope.source
    for bound in (node.lower, node.upper):
        if bound is None:
            continue
        yield from scope.edits(bound, [""], "slice", 0.2)
        if not isinstance(bound, (ast.Constant, ast.UnaryOp)):
            text = source.segment(bound)
            yield from scope.edits(bound, [f"{text} {s}" for s in STEPS], "off by one", 0.3)
    parent = source.parents[node]
    if isinstance(parent, ast.Subscript) and node.lower is None and node.upper is None:
        colon = source.text.find(":", source.span(parent.value)[1], source.span(parent)[1])
        if colon >= 0:
            span = (colon, colon + 1)
            yield from scope.edits(node, ["1:", ":-1"], "slice", 0.2, span=span)


def indexes(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    """Shift an index by one: people count from 1, lists from 0."""
    index = node.slice if isinstance(node, ast.Subscript) else None
    if not isinstance(index, (ast.Name, ast.Call)) or getattr(index, "id", "") in BUILT_IN:
        return
    outside = "index out of range" in scope.hints.message
    text = scope.source.segment(index)
    options = [f"{text} {step}" for step in reversed(STEPS)]
    yield from scope.edits(index, options, "off by one", 0.6 if outside else 0.15)


JUMPS: "dict[type[ast.AST], tuple[tuple[str, float], ...]]" = {
    ast.Continue: (("break", 0.4), ("pass", 0.15)),
    ast.Break: (("continue", 0.4), ("pass", 0.15)),
    ast.Pass: (("continue", 0.2), ("return", 0.15), ("break", 0.1)),
}


def jumps(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    for new, prior in JUMPS.get(type(node), ()):
        yield from scope.edits(node, [new], "jump", prior)


def branches(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.IfExp):
        sides = [scope.source.segment(side) for side in (node.body, node.orelse)]
        yield from scope.edits(node, sides, "one branch", 0.08)
    elif isinstance(node, ast.If):
        yield from _other_keyword(scope, node, "elif", "if", 0.15)
        later = _following_if(scope, node)
        if later is not None:
            yield from _other_keyword(scope, later, "if", "elif", 0.12)


def _other_keyword(scope: Scope, node: ast.If, old: str, new: str, prior: float) -> Iterator[Edit]:
    for token in scope.source.tokens_between(*scope.source.span(node))[:1]:
        if token.text == old:
            yield from scope.edits(node, [new], "branch", prior, span=(token.start, token.end))


def _following_if(scope: Scope, node: ast.If) -> "ast.If | None":
    body = getattr(scope.source.parents.get(node), "body", [])
    if isinstance(body, list) and node in body and not node.orelse:
        after = body[body.index(node) + 1 : body.index(node) + 2]
        if after and isinstance(after[0], ast.If):
            return after[0]
    return None


def returns(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    """Add a missing `return`, or the value that one lacks."""
    boost = 1.6 if scope.hints.says_none else 1.0
    if isinstance(node, ast.Expr) and not isinstance(node.value, (ast.Constant, ast.Yield)):
        if scope.source.function(node) is not None:
            prior = (0.45 if _is_last(scope, node) else 0.12) * boost
            text = scope.source.segment(node)
            yield from scope.edits(node, [f"return {text}"], "return", min(prior, 0.9))
    elif isinstance(node, ast.Return) and node.value is None:
        options = [f"return {name}" for name in _values(scope, node)]
        yield from scope.edits(node, options, "return", 0.4 * boost, 0.9)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from _missing(scope, node, boost)


def _is_last(scope: Scope, node: ast.stmt) -> bool:
    parent = scope.source.parents.get(node)
    bodies = [getattr(parent, name, None) for name in ("body", "orelse")]
    return any(isinstance(body, list) and body and body[-1] is node for body in bodies)


def _missing(
    scope: Scope, node: "ast.FunctionDef | ast.AsyncFunctionDef", boost: float
) -> Iterator[Edit]:
    """Add a return at the end of a function that promises a value and may end without one."""
    last, inside = node.body[-1], list(ast.walk(node))
    promised = node.returns is not None and ast.unparse(node.returns) != "None"
    elsewhere = any(isinstance(each, ast.Return) and each.value for each in inside)
    ends = last.body[-1] if isinstance(last, ast.With) else last
    if isinstance(ends, (ast.Return, ast.Raise)) or not (promised or elsewhere):
        return
    if any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in inside):
        return
    indent, end = " " * last.col_offset, scope.source.span(last)[1]
    for at, value in enumerate(_values(scope, last)):
        prior, new = min(0.5 * 0.93**at * boost, 0.9), f"\n{indent}return {value}"
        yield from scope.edits(last, [new], "missing return", prior, span=(end, end))


def _values(scope: Scope, node: ast.AST) -> list[str]:
    """Return what a function could return: what it made, most recent first."""
    function = scope.source.function(node) or scope.source.parents.get(node)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return []
    kind = ast.unparse(function.returns) if function.returns is not None else ""
    stored = [
        each.id
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    ]
    made = stored[::-1] + [arg.arg for arg in function.args.args if arg.arg not in ("self", "cls")]
    names = list(dict.fromkeys(made))[:6]
    built = _built(function)
    wrapped = [f"{name}.getvalue()" for name in names if "IO" in built.get(name, "")]
    if kind == "str":
        joins = [
            f"{sep}.join({name})" for name in names[:3] for sep in ('""', '"\\n"', '" "', '", "')
        ]
        return [*wrapped, *names, *joins, *(f"str({name})" for name in names[:2]), '""']
    if kind == "int":
        return ["0", *wrapped, *names, "1", *(f"len({name})" for name in names[:3])]
    if kind == "bool":
        return ["True", "False", *names]
    if kind.startswith("list"):
        return [*names, *(f"list({name})" for name in names[:3]), "[]"]
    if kind.startswith("tuple"):
        return [*names, *(f"tuple({name})" for name in names[:3]), ", ".join(reversed(names[:2]))]
    return [*wrapped, *names, "0", "True", "False"]


def _built(function: ast.AST) -> dict[str, str]:
    """Return the call that made each variable, by its name."""
    return {
        target.id: ast.unparse(each.value.func)
        for each in ast.walk(function)
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
