"""Which names could stand in a place."""

from __future__ import annotations

import ast
import builtins

from mngr_mechanic.program.bench import Bench

BUILT_IN = frozenset(dir(builtins))


def functions(bench: Bench) -> set[str]:
    """And modules: what is hardly ever a value."""
    body = bench.source.tree.body
    found = {each.name for each in body if isinstance(each, ast.FunctionDef)}
    named = [name for each in body if isinstance(each, ast.ImportFrom) for name in each.names]
    return found | {each.asname or each.name for each in named if each.name.islower()}


def imported(bench: Bench) -> list[str]:
    body = bench.source.tree.body
    named = [name for each in body if isinstance(each, ast.Import) for name in each.names]
    return [(each.asname or each.name).partition(".")[0] for each in named]


def around(bench: Bench, node: ast.AST) -> list[str]:
    """Names that could stand here: nearest lines first, then arguments, then the module's."""
    function = bench.source.function(node)
    line = getattr(node, "lineno", 1)
    if function is None:
        return of_module(bench, node)
    found = [
        (abs(each.lineno - line), each.id)
        for each in bench.source.inside(function)
        if isinstance(each, ast.Name) and each.id not in BUILT_IN
    ]
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    found += [(9, name) for name in _caught(bench, function)]
    ordered = [name for _, name in sorted(found)] + [arg.arg for arg in every]
    called = isinstance(bench.source.parents.get(node), ast.Call) and (
        getattr(bench.source.parents[node], "func", None) is node
    )
    functions = of_module(bench, node)
    return list(dict.fromkeys([*functions, *ordered] if called else ordered))[:20]


def _caught(bench: Bench, function: ast.AST) -> list[str]:
    """Names of exceptions: `except OSError as error`."""
    inside = bench.source.inside(function)
    return [each.name for each in inside if isinstance(each, ast.ExceptHandler) and each.name]


def unread(bench: Bench, node: ast.AST) -> set[str]:
    """Arguments and variables of the function that nothing looks at: one of them was meant."""
    function = bench.source.function(node)
    if function is None:
        return set()
    names = [each for each in bench.source.inside(function) if isinstance(each, ast.Name)]
    read = {each.id for each in names if isinstance(each.ctx, ast.Load)}
    made = {each.id for each in names if isinstance(each.ctx, ast.Store)}
    made |= set(_caught(bench, function))
    made |= {each.arg for each in bench.source.inside(function) if isinstance(each, ast.arg)}
    return made - read - {"self", "cls", "_"}


def bound_by_module(bench: Bench) -> list[str]:
    found: list[str] = []
    for statement in bench.source.tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            found.append(statement.name)
        elif isinstance(statement, ast.ImportFrom):
            found += [each.asname or each.name for each in statement.names]
        elif isinstance(statement, ast.Assign):
            found += [each.id for each in statement.targets if isinstance(each, ast.Name)]
    return found


def of_module(bench: Bench, node: ast.AST) -> list[str]:
    """What could be called as this is; then what begins like it."""
    wanted = getattr(node, "id", "")
    plain = [name for name in bound_by_module(bench) if name not in ("annotations", "*")]
    fitting = _fitting(bench, node)
    plain.sort(key=lambda name: (name not in fitting, name[:2] != wanted[:2], name))
    return plain[:16]


def _fitting(bench: Bench, node: ast.AST) -> set[str]:
    """Functions of the module that take as many arguments as are given here."""
    call = bench.source.parents.get(node)
    if not isinstance(call, ast.Call) or call.func is not node:
        return set()
    given = len(call.args) + len(call.keywords)
    found = set()
    for each in bench.source.tree.body:
        if isinstance(each, ast.FunctionDef):
            arguments = each.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            optional = len(arguments.defaults) + sum(x is not None for x in arguments.kw_defaults)
            if len(every) - optional <= given <= len(every):
                found.add(each.name)
    return found
