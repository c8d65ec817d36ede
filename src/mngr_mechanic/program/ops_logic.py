"""Operators and plain constants."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mngr_mechanic.program.bench import Bench, pairs
from mngr_mechanic.program.source import Edit

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
LIKELY = {
    ("<", "<="),
    ("<=", "<"),
    (">", ">="),
    (">=", ">"),
    ("==", "!="),
    ("!=", "=="),
    ("in", "not in"),
    ("not in", "in"),
    ("is", "is not"),
    ("is not", "is"),
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
    "@": (),
}
AUGMENTED = {
    f"{op}=": [f"{other}=" for other in others] + ["="] for op, others in ARITHMETIC.items()
}


def comparisons(bench: Bench, node: ast.AST) -> Iterator[Edit]:
    if not isinstance(node, ast.Compare):
        return
    sides = [node.left, *node.comparators]
    for left, right in pairs(sides):
        found = _operator(bench, left, right, COMPARISONS)
        if found is None:
            continue
        start, end, text = found
        for new in COMPARISONS[text]:
            prior = 0.8 if (text, new) in LIKELY else 0.35
            yield from bench.edit(node, (start, end), new, "comparison", prior)
    if len(sides) == 2:
        yield from _turned(bench, node)


def _turned(bench: Bench, node: ast.Compare) -> Iterator[Edit]:
    """Off by one on the other side of a comparison."""
    right = node.comparators[0]
    ordering = isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
    if ordering and not isinstance(right, ast.Constant):
        text = bench.source.segment(right)
        for step in ("+ 1", "- 1"):
            yield from bench.replace(right, f"{text} {step}", "off by one", 0.1)


def _operator(
    bench: Bench, left: ast.AST, right: ast.AST, known: "dict[str, tuple[str, ...]]"
) -> "tuple[int, int, str] | None":
    """The operator between two operands; parentheses may stand there too."""
    between = bench.source.tokens_between(bench.source.span(left)[1], bench.source.span(right)[0])
    words = [token for token in between if token.text.strip() and token.text not in "()"]
    text = " ".join(token.text for token in words)
    return (words[0].start, words[-1].end, text) if text in known else None


def arithmetic(bench: Bench, node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.BinOp):
        found = _operator(bench, node.left, node.right, ARITHMETIC)
        if found is not None:
            start, end, text = found
            textual = isinstance(node.op, ast.Mod) and isinstance(
                node.left, (ast.Constant, ast.JoinedStr)
            )
            for at, new in enumerate(ARITHMETIC[text]):
                prior = (0.5 if at == 0 else 0.25) * (0.1 if textual else 1)
                asked = new == "%" and "can only concatenate str" in bench.hints.message
                prior = 0.9 if asked else prior
                yield from bench.edit(node, (start, end), new, "arithmetic", prior, asked)
            yield from _without_a_side(bench, node)
    elif isinstance(node, ast.AugAssign):
        between = bench.source.tokens_between(
            bench.source.span(node.target)[1], bench.source.span(node.value)[0]
        )
        for token in between:
            for at, new in enumerate(AUGMENTED.get(token.text, ())):
                prior = 0.5 if at == 0 else 0.3
                yield from bench.edit(node, (token.start, token.end), new, "assignment", prior)


def _without_a_side(bench: Bench, node: ast.BinOp) -> Iterator[Edit]:
    """`x + 1` where x was meant."""
    small = isinstance(node.right, ast.Constant) and node.right.value in (1, 2)
    for side, prior in ((node.left, 0.75 if small else 0.1), (node.right, 0.08)):
        yield from bench.replace(node, bench.source.segment(side), "one side only", prior)


def booleans(bench: Bench, node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.BoolOp):
        for left, right in pairs(node.values):
            words: dict[str, tuple[str, ...]] = {"and": ("or",), "or": ("and",)}
            found = _operator(bench, left, right, words)
            if found is not None:
                yield from bench.edit(node, found[:2], words[found[2]][0], "and/or", 0.7)
        if len(node.values) == 2:
            for value in node.values:
                yield from bench.replace(node, bench.source.segment(value), "one side only", 0.1)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from bench.replace(node, bench.source.segment(node.operand), "not", 0.7)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from bench.replace(node, bench.source.segment(node.operand), "sign", 0.4)
    for condition in _conditions(node):
        if not (isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not)):
            text = bench.source.segment(condition)
            simple = isinstance(condition, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
            new = f"not {text}" if simple else f"not ({text})"
            # A comparison has its own opposite among its operators.
            prior = 0.1 if isinstance(condition, ast.Compare) else 0.55
            yield from bench.replace(condition, new, "not", prior)


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


def constants(bench: Bench, node: ast.AST) -> Iterator[Edit]:
    if not isinstance(node, ast.Constant):
        return
    value = node.value
    if isinstance(value, bool):
        yield from bench.replace(node, str(not value), "true/false", 0.7)
    elif value is None:
        for at, new in enumerate(("0", '""', "False", "[]", "1", "True")):
            yield from bench.replace(node, new, "none", 0.2 - at * 0.02)
    elif isinstance(value, int):
        yield from _whole_number(bench, node, value)
    elif isinstance(value, float):
        for other in (value * 10, value / 10, value + 1, value - 1, -value, value * 2, value / 2):
            yield from bench.replace(node, repr(other), "number", 0.25)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        others = [each for each, _ in bench.words.numbers.most_common(12)]
        for at, new in enumerate(
            dict.fromkeys([*sorted(bench.hints.numbers, key=len)[:8], *others])
        ):
            yield from bench.replace(node, new, "number", 0.2 * 0.93**at)


def _whole_number(bench: Bench, node: ast.Constant, value: int) -> Iterator[Edit]:
    small = abs(value) <= 2
    for new in (value + 1, value - 1):
        parent = bench.source.parents.get(node)
        # `x + 0` is x, which is among the candidates by itself.
        idle = (
            new == 0 and isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Add, ast.Sub))
        )
        if not idle and (new >= 0 or not isinstance(parent, ast.UnaryOp)):
            yield from bench.replace(node, str(new), "off by one", 0.75 if small else 0.6)
    for new in (0, 1, 2, -value, value * 10, value // 10):
        yield from bench.replace(node, str(new), "number", 0.22)
