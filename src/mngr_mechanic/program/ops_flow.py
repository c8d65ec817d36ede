"""Where control goes: returns, branches, loops, slices."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mngr_mechanic.program.bench import Bench
from mngr_mechanic.program.source import Edit


def slices(bench: Bench, node: ast.AST) -> Iterator[Edit]:
    if not isinstance(node, ast.Slice):
        return
    for bound in (node.lower, node.upper):
        if bound is None:
            continue
        yield from bench.replace(bound, "", "slice", 0.2)
        text = bench.source.segment(bound)
        if not isinstance(bound, (ast.Constant, ast.UnaryOp)):
            for step in ("+ 1", "- 1"):
                yield from bench.replace(bound, f"{text} {step}", "off by one", 0.3)
    parent = bench.source.parents[node]
    if isinstance(parent, ast.Subscript) and node.lower is None and node.upper is None:
        start = bench.source.span(parent.value)[1]
        colon = bench.source.text.find(":", start, bench.source.span(parent)[1])
        if colon >= 0:
            for new in ("1:", ":-1"):
                yield from bench.edit(node, (colon, colon + 1), new, "slice", 0.2)


def jumps(bench: Bench, node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Continue):
        yield from bench.replace(node, "break", "jump", 0.4)
        yield from bench.replace(node, "pass", "jump", 0.15)
    elif isinstance(node, ast.Break):
        yield from bench.replace(node, "continue", "jump", 0.4)
        yield from bench.replace(node, "pass", "jump", 0.15)
    elif isinstance(node, ast.Pass):
        for at, new in enumerate(("continue", "return", "break")):
            yield from bench.replace(node, new, "jump", 0.2 - at * 0.05)


def branches(bench: Bench, node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.IfExp):
        for side in (node.body, node.orelse):
            yield from bench.replace(node, bench.source.segment(side), "one branch", 0.08)
    elif isinstance(node, ast.If):
        word = bench.source.tokens_between(*bench.source.span(node))
        if word and word[0].text == "elif":
            yield from bench.edit(node, (word[0].start, word[0].end), "if", "branch", 0.15)
        later = _following_if(bench, node)
        if later is not None:
            first = bench.source.tokens_between(*bench.source.span(later))[0]
            if first.text == "if":
                yield from bench.edit(later, (first.start, first.end), "elif", "branch", 0.12)


def _following_if(bench: Bench, node: ast.If) -> "ast.If | None":
    body = getattr(bench.source.parents.get(node), "body", [])
    if isinstance(body, list) and node in body:
        after = body[body.index(node) + 1 : body.index(node) + 2]
        if after and isinstance(after[0], ast.If) and not node.orelse:
            return after[0]
    return None


def returns(bench: Bench, node: ast.AST) -> Iterator[Edit]:
    """A `return` that is missing, or one that has lost its value."""
    boost = 1.6 if bench.hints.says_none else 1.0
    if isinstance(node, ast.Expr) and not isinstance(node.value, (ast.Constant, ast.Yield)):
        if bench.source.function(node) is not None:
            text = bench.source.segment(node)
            last = _is_last(bench, node)
            prior = (0.45 if last else 0.12) * boost
            yield from bench.replace(node, f"return {text}", "return", min(prior, 0.9))
    elif isinstance(node, ast.Return) and node.value is None:
        for at, name in enumerate(_values(bench, node)):
            yield from bench.replace(node, f"return {name}", "return", 0.4 * 0.9**at * boost)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from _missing(bench, node, boost)


def _is_last(bench: Bench, node: ast.stmt) -> bool:
    parent = bench.source.parents.get(node)
    bodies = [getattr(parent, name, None) for name in ("body", "orelse")]
    return any(isinstance(body, list) and body and body[-1] is node for body in bodies)


def _missing(
    bench: Bench, node: "ast.FunctionDef | ast.AsyncFunctionDef", boost: float
) -> Iterator[Edit]:
    """At the end of a function that promises a value and may end without one."""
    last = node.body[-1]
    promised = node.returns is not None and ast.unparse(node.returns) != "None"
    elsewhere = any(isinstance(each, ast.Return) and each.value for each in ast.walk(node))
    if isinstance(last, (ast.Return, ast.Raise)) or not (promised or elsewhere):
        return
    if any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(node)):
        return
    if isinstance(last, ast.With) and isinstance(last.body[-1], (ast.Return, ast.Raise)):
        return
    indent = " " * last.col_offset
    end = bench.source.span(last)[1]
    for at, value in enumerate(_values(bench, last)):
        prior = 0.5 * 0.93**at * boost
        new = f"\n{indent}return {value}"
        yield from bench.edit(last, (end, end), new, "missing return", min(prior, 0.9))


def _values(bench: Bench, node: ast.AST) -> list[str]:
    """What a function could give back: what it made, most recent first."""
    function = bench.source.function(node) or bench.source.parents.get(node)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return []
    kind = ast.unparse(function.returns) if function.returns is not None else ""
    made: list[str] = []
    for each in ast.walk(function):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            made.insert(0, each.id)
    made += [arg.arg for arg in function.args.args if arg.arg not in ("self", "cls")]
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
    """By name: the call that made it."""
    found = {}
    for each in ast.walk(function):
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call):
            for target in each.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = ast.unparse(each.value.func)
    return found
