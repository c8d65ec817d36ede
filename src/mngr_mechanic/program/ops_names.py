"""Operators on names, attributes, calls and their arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mngr_mechanic.program.scope import BUILT_IN, Scope, near, pairs
from mngr_mechanic.program.source import Edit

# Names that are easily mistaken for each other.
FAMILIES = """
min max sum | any all | sorted reversed list set tuple | len sum max | int float str round abs
floor ceil trunc | lower upper casefold title capitalize swapcase | startswith endswith
strip lstrip rstrip | removeprefix removesuffix | ljust rjust center zfill
split rsplit splitlines partition rpartition | find rfind index rindex count
append extend add insert update | remove discard pop clear | keys values items
match fullmatch search findall finditer | isdigit isdecimal isnumeric isalpha isalnum
islower isupper | read readline readlines | write writelines | load loads | dump dumps
union intersection difference symmetric_difference | issubset issuperset
exists isfile isdir is_file is_dir | name stem suffix parent | year month day hour minute second
days seconds total_seconds | stdout stderr | start end span | enumerate zip | get pop setdefault
ValueError TypeError KeyError IndexError AttributeError LookupError OSError FileNotFoundError \
Exception
"""
RELATIVES: dict[str, list[str]] = {}
for family in map(str.split, re.split(r"[|\n]", FAMILIES)):
    for member in family:
        RELATIVES.setdefault(member, []).extend(each for each in family if each != member)
RAISED = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception|Exit|Interrupt))\b", re.MULTILINE)
UNDEFINED = re.compile(r"name '(\w+)' is not defined")
COMMON = "int str len list float sorted set abs round sum isinstance".split()
KEYWORDS = frozenset(("default", "key", "reverse", "start", "indent", "sep"))


def may_define(scope: Scope, node: ast.AST) -> bool:
    """Return whether an undefined name may have been meant to be assigned here."""
    stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    return stored and "is not defined" in scope.hints.message


def names(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield from _undefined(scope, node)
        yield from _owners(scope, node)
        yield from scope.edits(node, RELATIVES.get(node.id, ()), "relative", 0.6, 0.75)
        if scope.words.names[node.id] <= 1 and node.id not in BUILT_IN:
            yield from scope.edits(node, near(node.id, scope.words.names), "misspelt", 0.7)
        yield from _other_names(scope, node)
    elif isinstance(node, ast.Name) and may_define(scope, node):
        for missing in dict.fromkeys(UNDEFINED.findall(scope.hints.message)):
            likely = node.id in scope.unread(node) or node.id in BUILT_IN
            if likely or scope.source.function(node) is None:
                likely = likely or scope.bound_by_module.count(node.id) > 1
                prior = 0.98 if likely else 0.6
                yield from scope.edits(node, [missing], "target", prior, hinted=True)


def _undefined(scope: Scope, node: ast.Name) -> Iterator[Edit]:
    if f"name '{node.id}' is not defined" in scope.hints.message:
        here = scope.around(node)
        others = dict.fromkeys([*near(node.id, here, 0.4), *here[:8], *scope.of_module(node)])
        yield from scope.edits(node, others, "name", 0.9, 0.99, True)


def _owners(scope: Scope, node: ast.Name) -> Iterator[Edit]:
    """Replace x of `x.floor`, which has no such attribute, by what has it elsewhere, or could."""
    parent = scope.source.parents.get(node)
    if isinstance(parent, ast.Attribute) and _has_no(scope, parent):
        known = scope.source.attributes.items()
        owners = [name for name, attrs in known if parent.attr in attrs and name.isidentifier()]
        others = dict.fromkeys([*owners, *scope.imported, *scope.around(node)[:8]])
        yield from scope.edits(node, others, "owner", 0.93, 0.97, True)


def _has_no(scope: Scope, node: ast.Attribute) -> bool:
    return f"no attribute '{node.attr}'" in scope.hints.message


def _other_names(scope: Scope, node: ast.Name) -> Iterator[Edit]:
    others = [each for each in scope.around(node) if each != node.id]
    unread = scope.unread(node)
    called = _is_called(scope, node)
    # `int.name` and `zip[0]` are hardly ever meant; `int(x)` nearly always is.
    usual = 0.22
    if node.id in BUILT_IN:
        usual = 0.06 if called else 0.5
    elif not called and node.id in scope.functions:
        usual = 0.5
    elif node.id in scope.imported:
        has_attribute = isinstance(scope.source.parents.get(node), ast.Attribute)
        usual = usual if has_attribute else 0.6
    said = scope.hints.message
    wrong = called and ("object is not callable" in said or f"{node.id}()" in said)
    if wrong or _is_misplaced_error(scope, node):
        usual = 0.8
    for at, new in enumerate(others):
        prior = 0.8 if new in unread else usual * (0.96 if wrong else 0.88) ** at
        yield from scope.edits(node, [new], "other name", prior, hinted=wrong)
    if called and node.id not in BUILT_IN:
        yield from scope.edits(node, COMMON, "other name", 0.2, 0.9)


def _is_misplaced_error(scope: Scope, node: ast.Name) -> bool:
    """Return whether this is a built-in exception that is neither raised nor caught here."""
    usual = isinstance(scope.source.statement(node), (ast.Raise, ast.ExceptHandler))
    return node.id.endswith("Error") and node.id in BUILT_IN and not usual


def _is_called(scope: Scope, node: ast.Name) -> bool:
    """Return whether the name is called, or passed to one of three built-ins that call it."""
    parent = scope.source.parents.get(node)
    taking = ("isinstance", "issubclass", "map")
    return isinstance(parent, ast.Call) and (
        parent.func is node or (isinstance(parent.func, ast.Name) and parent.func.id in taking)
    )


def attributes(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    if not isinstance(node, ast.Attribute):
        return
    end = scope.source.span(node)[1]
    span = (end - len(node.attr), end)
    if scope.source.text[span[0] : span[1]] != node.attr:
        return
    siblings = _siblings(scope, node)
    if _has_no(scope, node):
        alike = near(node.attr, set(scope.words.names) | set(RELATIVES), 0.5)
        known = [name for name, _ in scope.words.attributes.most_common(40)]
        others = dict.fromkeys([*alike, *siblings, *known])
        yield from scope.edits(node, others, "attribute", 0.95, 0.97, hinted=True, span=span)
    relatives = RELATIVES.get(node.attr, ())
    yield from scope.edits(node, relatives, "relative", 0.65, 0.75, span=span)
    if scope.words.names[node.attr] <= 1:
        alike = near(node.attr, scope.words.names)
        yield from scope.edits(node, alike, "misspelt", 0.7, span=span)
    yield from scope.edits(node, siblings, "other attribute", 0.25, 0.88, span=span)


def _siblings(scope: Scope, node: ast.Attribute) -> list[str]:
    """Return other attributes of the same thing in this file, and fields of its classes."""
    same = scope.source.attributes.get(ast.unparse(node.value), [])
    fields = scope.source.fields if node.attr in scope.source.fields else []
    return [name for name in dict.fromkeys([*same, *fields]) if name != node.attr][:10]


def calls(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    if not isinstance(node, ast.Call):
        return
    source = scope.source
    for one, two in pairs(node.args):
        (start, comma), (after, end) = source.span(one), source.span(two)
        new = source.segment(two) + source.text[comma:after] + source.segment(one)
        yield from scope.edits(node, [new], "swapped arguments", 0.3, span=(start, end))
    if len(node.args) == 1 and not node.keywords:
        yield from scope.edits(node, [source.segment(node.args[0])], "without the call", 0.08)
    if isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
        yield from scope.edits(node, [source.segment(node.func.value)], "without the call", 0.1)
    yield from _keywords(scope, node)
    yield from _missing_argument(scope, node)


def _missing_argument(scope: Scope, node: ast.Call) -> Iterator[Edit]:
    """Add `reverse` to sorted(), and a default to min(), max() and next() of nothing."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    last = scope.source.span(node)[1] - 1
    end = (last, last)
    given, said = {word.arg for word in node.keywords}, scope.hints.message
    if isinstance(node.func, ast.Name) and name == "sorted" and "reverse" not in given:
        yield from scope.edits(node, [", reverse=True"], "reverse", 0.3, span=end)
    if name in ("min", "max") and len(node.args) == 1 and "empty" in said:
        yield from scope.edits(node, [", default=0"], "default", 0.6, hinted=True, span=end)
    if name == "next" and len(node.args) == 1 and "StopIteration" in said:
        yield from scope.edits(node, [", None"], "default", 0.6, hinted=True, span=end)


def _keywords(scope: Scope, node: ast.Call) -> Iterator[Edit]:
    """Replace a keyword that the function does not take, or remove one."""
    source = scope.source
    for at, word in enumerate(node.keywords):
        if word.arg is None:
            continue
        start, end = source.span(word.value)
        begin = source.text.rfind(word.arg, 0, start)
        unexpected = f"unexpected keyword argument '{word.arg}'" in scope.hints.message
        if unexpected or scope.words.names[word.arg] <= 1:
            cutoff, prior = (0.3, 0.8) if unexpected else (0.75, 0.4)
            others = near(word.arg, set(scope.words.names) | KEYWORDS, cutoff)
            span = (begin, begin + len(word.arg))
            yield from scope.edits(node, others, "keyword", prior, hinted=unexpected, span=span)
        if node.args or at:
            comma = source.text.rfind(",", 0, begin)
            yield from scope.edits(node, [""], "without a keyword", 0.12, span=(comma, end))


def handlers(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    """Let a handler catch the exception that it did not."""
    if isinstance(node, ast.ExceptHandler) and node.type is not None:
        raised = dict.fromkeys(RAISED.findall(scope.hints.message))
        known = [name for name in raised if name in scope.words.names or name in BUILT_IN]
        yield from scope.edits(node.type, known, "handler", 0.6, hinted=True)
