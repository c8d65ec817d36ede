"""Operators on comparisons, arithmetic, booleans and plain constants."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from mngr_mechanic.program.ops_flow import STEPS
from mngr_mechanic.program.scope import Scope, pairs
from mngr_mechanic.program.source import Edit

# The likeliest replacement is first.
COMPARISONS = {
    "<": ("<=", ">", ">=", "==", "!="),
    "<=": ("<", ">=", ">", "==", "!="),
    ">": (">=", "<", "<=", "==", "!="),
    ">=": (">", "<=", "<", "==", "!="),
    "==": ("!=", ">=", "<=", ">", "<", "in"),
    "!=": ("==", "<", ">", "<=", ">="),
    "is": ("is not", "=="),
    "is not": ("is", "!="),
    "in": ("not in", "=="),
    "not in": ("in", "!="),
}
ARITHMETIC = {
    "+": ("-", "*", "%", "/"),
    "-": ("+", "*"),
    "*": ("/", "+", "//", "-", "**"),
    "/": ("//", "*", "-", "%"),
    "//": ("/", "%", "*", "-"),
    "%": ("//", "/", "*", "+"),
    "**": ("*", "+"),
    "|": ("&", "^", "+"),
    "&": ("|", "^"),
    "^": ("|", "&"),
    "<<": (">>",),
    ">>": ("<<",),
}
AUGMENTED = {
    f"{op}=": [f"{other}=" for other in others] + ["="] for op, others in ARITHMETIC.items()
}
BOOLEAN = {"and": ("or",), "or": ("and",)}
OPERATORS: "dict[type[ast.AST], tuple[str, float, float, Mapping[str, Sequence[str]]]]" = {
    ast.Compare: ("comparison", 0.8, 0.35, COMPARISONS),
    ast.BoolOp: ("and/or", 0.7, 0.7, BOOLEAN),
    ast.BinOp: ("arithmetic", 0.5, 0.25, ARITHMETIC),
    ast.AugAssign: ("assignment", 0.5, 0.3, AUGMENTED),
}
"""The kind of edit, the priors of the first replacement and of others, and the replacements."""


def operators(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    if type(node) not in OPERATORS:
        return
    kind, first, other, table = OPERATORS[type(node)]
    sides = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
    text = isinstance(sides[0], (ast.Constant, ast.JoinedStr))
    formats = text and isinstance(getattr(node, "op", None), ast.Mod)
    for left, right in pairs(sides):
        span, operator = _operator(scope, left, right)
        for at, new in enumerate(table.get(operator, ())):
            asked = new == "%" and "can only concatenate str" in scope.hints.message
            prior = 0.9 if asked else (other if at else first) * (0.1 if formats else 1)
            yield from scope.edits(node, [new], kind, prior, hinted=asked, span=span)


def limits(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    """Shift the right side of `a < b` by one."""
    if not isinstance(node, ast.Compare) or len(node.ops) > 1:
        return
    limit = node.comparators[0]
    ordering = isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
    if ordering and not isinstance(limit, ast.Constant):
        options = [f"{scope.source.segment(limit)} {step}" for step in STEPS]
        yield from scope.edits(limit, options, "off by one", 0.1)


def _operator(scope: Scope, left: ast.AST, right: ast.AST) -> "tuple[tuple[int, int], str]":
    """Return the place and text of the operator between two operands, without parentheses."""
    source = scope.source
    between = source.tokens_between(source.span(left)[1], source.span(right)[0])
    words = [token for token in between if token.text.strip() and token.text not in "()"]
    span = (words[0].start, words[-1].end) if words else (0, 0)
    return span, " ".join(token.text for token in words)


def operands(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    """Remove one of two operands."""
    source = scope.source
    if isinstance(node, ast.BoolOp) and len(node.values) == 2:
        sides = [source.segment(value) for value in node.values]
        yield from scope.edits(node, sides, "operand removed", 0.1)
    elif isinstance(node, ast.BinOp) and _operator(scope, node.left, node.right)[1] in ARITHMETIC:
        # `x + 1` where x was meant.
        small = isinstance(node.right, ast.Constant) and node.right.value in (1, 2)
        for side, prior in ((node.left, 0.75 if small else 0.1), (node.right, 0.08)):
            yield from scope.edits(node, [source.segment(side)], "operand removed", prior)


def booleans(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    source = scope.source
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        kind, prior = ("not", 0.7) if isinstance(node.op, ast.Not) else ("sign", 0.4)
        yield from scope.edits(node, [source.segment(node.operand)], kind, prior)
    for condition in _conditions(node):
        if not (isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not)):
            text = source.segment(condition)
            simple = isinstance(condition, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
            new = f"not {text}" if simple else f"not ({text})"
            # A comparison has its own opposite among its operators.
            prior = 0.1 if isinstance(condition, ast.Compare) else 0.55
            yield from scope.edits(condition, [new], "not", prior)


def _conditions(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        return [node.test]
    if isinstance(node, ast.comprehension):
        return list(node.ifs)
    if isinstance(node, ast.BoolOp):
        return list(node.values)
    if isinstance(node, ast.Return) and isinstance(node.value, (ast.Name, ast.Call, ast.BoolOp)):
        return [node.value]
    return []


def constants(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    value = node.value if isinstance(node, ast.Constant) else ...
    if isinstance(value, bool):
        yield from scope.edits(node, [str(not value)], "true/false", 0.7)
    elif value is None:
        for at, new in enumerate(("0", '""', "False", "[]", "1", "True")):
            yield from scope.edits(node, [new], "none", 0.2 - at * 0.02)
    elif isinstance(value, (int, float)):
        if isinstance(value, int):
            yield from _whole_number(scope, node, value)
        else:
            others = (value * 10, value / 10, value + 1, value - 1, -value, value * 2, value / 2)
            yield from scope.edits(node, map(repr, others), "number", 0.25)
        known = [each for each, _ in scope.words.numbers.most_common(12)]
        shortest = sorted(scope.hints.numbers, key=lambda number: (len(number), number))
        options = dict.fromkeys([*shortest[:8], *known])
        yield from scope.edits(node, options, "number", 0.2, 0.93)


def _whole_number(scope: Scope, node: ast.AST, value: int) -> Iterator[Edit]:
    parent = scope.source.parents.get(node)
    added = isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Add, ast.Sub))
    for new in (value + 1, value - 1):
        # `x + 0` is x, which is among the candidates by itself.
        if not (new == 0 and added) and (new >= 0 or not isinstance(parent, ast.UnaryOp)):
            prior = 0.75 if abs(value) <= 2 else 0.6
            yield from scope.edits(node, [str(new)], "off by one", prior)
    others = (0, 1, 2, -value, value * 10, value // 10)
    yield from scope.edits(node, map(str, others), "number", 0.22)
