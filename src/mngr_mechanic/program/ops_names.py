"""Names, attributes, calls and their arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mngr_mechanic.program import scope
from mngr_mechanic.program.bench import Bench, near, pairs
from mngr_mechanic.program.scope import BUILT_IN
from mngr_mechanic.program.source import Edit

FAMILIES = [
    ("min", "max", "sum"),
    ("any", "all"),
    ("sorted", "reversed", "list", "set", "tuple"),
    ("len", "sum", "max"),
    ("int", "float", "str", "round", "abs"),
    ("floor", "ceil", "trunc"),
    ("lower", "upper", "casefold", "title", "capitalize", "swapcase"),
    ("startswith", "endswith"),
    ("strip", "lstrip", "rstrip"),
    ("removeprefix", "removesuffix"),
    ("ljust", "rjust", "center", "zfill"),
    ("split", "rsplit", "splitlines", "partition", "rpartition"),
    ("find", "rfind", "index", "rindex", "count"),
    ("append", "extend", "add", "insert", "update"),
    ("remove", "discard", "pop", "clear"),
    ("keys", "values", "items"),
    ("match", "fullmatch", "search", "findall", "finditer"),
    ("isdigit", "isdecimal", "isnumeric", "isalpha", "isalnum"),
    ("islower", "isupper"),
    ("read", "readline", "readlines"),
    ("write", "writelines"),
    ("load", "loads"),
    ("dump", "dumps"),
    ("union", "intersection", "difference", "symmetric_difference"),
    ("issubset", "issuperset"),
    ("exists", "isfile", "isdir", "is_file", "is_dir"),
    ("name", "stem", "suffix", "parent"),
    ("year", "month", "day", "hour", "minute", "second"),
    ("days", "seconds", "total_seconds"),
    ("stdout", "stderr"),
    ("start", "end", "span"),
    ("enumerate", "zip"),
    ("get", "pop", "setdefault"),
    (
        "ValueError",
        "TypeError",
        "KeyError",
        "IndexError",
        "AttributeError",
        "LookupError",
        "OSError",
        "FileNotFoundError",
        "Exception",
    ),
]
RELATIVES: dict[str, list[str]] = {}
for family in FAMILIES:
    for member in family:
        RELATIVES.setdefault(member, []).extend(each for each in family if each != member)
RAISED = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception|Exit|Interrupt))\b", re.MULTILINE)
UNDEFINED = re.compile(r"name '(\w+)' is not defined")
COMMON = (
    "int",
    "str",
    "len",
    "list",
    "float",
    "sorted",
    "set",
    "abs",
    "round",
    "sum",
    "isinstance",
)


def may_define(bench: Bench, node: ast.AST) -> bool:
    """What is not defined may have been meant to be defined here."""
    stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    return stored and "is not defined" in bench.hints.message


def names(bench: Bench, node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Name) and may_define(bench, node):
        for missing in set(UNDEFINED.findall(bench.hints.message)):
            if node.id in scope.unread(bench, node) or node.id in BUILT_IN:
                yield from bench.replace(node, missing, "target", 0.98, True)
            elif bench.source.function(node) is None:
                twice = scope.bound_by_module(bench).count(node.id) > 1
                yield from bench.replace(node, missing, "target", 0.98 if twice else 0.6, True)
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return
    hints = bench.hints
    if f"name '{node.id}' is not defined" in hints.message:
        here = scope.around(bench, node)
        others = [*near(node.id, here, 0.4), *here[:8], *scope.of_module(bench, node)]
        for at, new in enumerate(dict.fromkeys(others)):
            yield from bench.replace(node, new, "name", 0.9 * 0.99**at, True)
    yield from _owners(bench, node)
    for at, new in enumerate(RELATIVES.get(node.id, ())):
        yield from bench.replace(node, new, "relative", 0.6 * 0.75**at)
    if _rare(bench, node.id):
        for new in near(node.id, bench.words.names):
            yield from bench.replace(node, new, "misspelt", 0.7)
    yield from _other_names(bench, node)


def _owners(bench: Bench, node: ast.Name) -> Iterator[Edit]:
    """Of `x.floor` where x has no such thing: what has it elsewhere, or could."""
    parent = bench.source.parents.get(node)
    if not isinstance(parent, ast.Attribute):
        return
    if f"no attribute '{parent.attr}'" in bench.hints.message:
        known = bench.source.attributes.items()
        owners = [name for name, attrs in known if parent.attr in attrs and name.isidentifier()]
        others = [*owners, *scope.imported(bench), *scope.around(bench, node)[:8]]
        for at, new in enumerate(dict.fromkeys(others)):
            yield from bench.replace(node, new, "owner", 0.93 * 0.97**at, True)


def _other_names(bench: Bench, node: ast.Name) -> Iterator[Edit]:
    others = [each for each in scope.around(bench, node) if each != node.id]
    unread = scope.unread(bench, node)
    called = _is_called(bench, node)
    # `int.name` and `zip[0]` are hardly ever meant; `int(x)` nearly always is.
    usual = 0.22
    if node.id in BUILT_IN:
        usual = 0.06 if called else 0.5
    elif not called and node.id in scope.functions(bench):
        usual = 0.5
    elif node.id in scope.imported(bench) and not _has_attribute(bench, node):
        usual = 0.6
    said = bench.hints.message
    wrong = called and ("object is not callable" in said or f"{node.id}()" in said)
    if wrong or _an_error_out_of_place(bench, node):
        usual = 0.8
    for at, new in enumerate(others):
        prior = 0.8 if new in unread else usual * (0.96 if wrong else 0.88) ** at
        yield from bench.replace(node, new, "other name", prior, wrong)
    if called and node.id not in BUILT_IN:
        for at, new in enumerate(COMMON):
            yield from bench.replace(node, new, "other name", 0.2 * 0.9**at)


def _an_error_out_of_place(bench: Bench, node: ast.Name) -> bool:
    """An exception that is neither raised nor caught nor told from others."""
    statement = bench.source.statement(node)
    usual = isinstance(statement, (ast.Raise, ast.ExceptHandler))
    return node.id.endswith("Error") and node.id in BUILT_IN and not usual


def _has_attribute(bench: Bench, node: ast.Name) -> bool:
    return isinstance(bench.source.parents.get(node), ast.Attribute)


def _is_called(bench: Bench, node: ast.Name) -> bool:
    parent = bench.source.parents.get(node)
    return isinstance(parent, ast.Call) and (parent.func is node or _of_a_type_check(parent))


def _of_a_type_check(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in ("isinstance", "issubclass", "map")


def _rare(bench: Bench, name: str) -> bool:
    return bench.words.names[name] <= 1 and name not in BUILT_IN


def attributes(bench: Bench, node: ast.AST) -> Iterator[Edit]:
    if not isinstance(node, ast.Attribute):
        return
    end = bench.source.span(node)[1]
    span = (end - len(node.attr), end)
    if bench.source.text[span[0] : span[1]] != node.attr:
        return
    if f"no attribute '{node.attr}'" in bench.hints.message:
        alike = near(node.attr, set(bench.words.names) | set(RELATIVES), 0.5)
        known = [name for name, _ in bench.words.attributes.most_common(40)]
        for at, new in enumerate(dict.fromkeys([*alike, *_siblings(bench, node), *known])):
            yield from bench.edit(node, span, new, "attribute", 0.95 * 0.97**at, True)
    for at, new in enumerate(RELATIVES.get(node.attr, ())):
        yield from bench.edit(node, span, new, "relative", 0.65 * 0.75**at)
    if bench.words.names[node.attr] <= 1:
        for new in near(node.attr, bench.words.names):
            yield from bench.edit(node, span, new, "misspelt", 0.7)
    for at, new in enumerate(_siblings(bench, node)):
        yield from bench.edit(node, span, new, "other attribute", 0.25 * 0.88**at)


def _siblings(bench: Bench, node: ast.Attribute) -> list[str]:
    """Other attributes of the same thing in this file, and fields of its classes."""
    same = bench.source.attributes.get(ast.unparse(node.value), [])
    fields = bench.source.fields
    mine = fields if node.attr in fields else []
    return [name for name in dict.fromkeys([*same, *mine]) if name != node.attr][:10]


def calls(bench: Bench, node: ast.AST) -> Iterator[Edit]:
    if not isinstance(node, ast.Call):
        return
    source = bench.source
    texts = [source.segment(arg) for arg in node.args]
    for at, (one, two) in enumerate(pairs(node.args)):
        span = (source.span(one)[0], source.span(two)[1])
        between = source.text[source.span(one)[1] : source.span(two)[0]]
        new = texts[at + 1] + between + texts[at]
        yield from bench.edit(node, span, new, "swapped arguments", 0.3)
    if len(node.args) == 1 and not node.keywords:
        yield from bench.replace(node, texts[0], "without the call", 0.08)
    if isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
        yield from bench.replace(node, source.segment(node.func.value), "without the call", 0.1)
    yield from _keywords(bench, node)
    ordered = isinstance(node.func, ast.Name) and node.func.id == "sorted"
    if ordered and not any(word.arg == "reverse" for word in node.keywords):
        end = source.span(node)[1] - 1
        yield from bench.edit(node, (end, end), ", reverse=True", "reverse", 0.3)
    yield from _missing_default(bench, node)


def _missing_default(bench: Bench, node: ast.Call) -> Iterator[Edit]:
    """min() and max() of nothing, next() of nothing, pop and get without a second thought."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    end = bench.source.span(node)[1] - 1
    if name in ("min", "max") and len(node.args) == 1 and "empty" in bench.hints.message:
        yield from bench.edit(node, (end, end), ", default=0", "default", 0.6, True)
    if name == "next" and len(node.args) == 1 and "StopIteration" in bench.hints.message:
        yield from bench.edit(node, (end, end), ", None", "default", 0.6, True)


def _keywords(bench: Bench, node: ast.Call) -> Iterator[Edit]:
    """A keyword that nothing takes, or one too many."""
    source = bench.source
    for at, word in enumerate(node.keywords):
        if word.arg is None:
            continue
        start, end = source.span(word.value)
        begin = source.text.rfind(word.arg, 0, start)
        span = (begin, begin + len(word.arg))
        unexpected = f"unexpected keyword argument '{word.arg}'" in bench.hints.message
        known = set(bench.words.names) | {"default", "key", "reverse", "start", "indent", "sep"}
        cutoff = 0.3 if unexpected else 0.75
        if unexpected or bench.words.names[word.arg] <= 1:
            for new in near(word.arg, known, cutoff):
                prior = 0.8 if unexpected else 0.4
                yield from bench.edit(node, span, new, "keyword", prior, unexpected)
        before = node.args or node.keywords[:at]
        if before:
            comma = source.text.rfind(",", 0, begin)
            yield from bench.edit(node, (comma, end), "", "without a keyword", 0.12)


def handlers(bench: Bench, node: ast.AST) -> Iterator[Edit]:
    """An exception that went past the handler that was meant for it."""
    if isinstance(node, ast.ExceptHandler) and node.type is not None:
        raised = dict.fromkeys(RAISED.findall(bench.hints.message))
        for name in raised:
            if name in bench.words.names or name in BUILT_IN:
                yield from bench.replace(node.type, name, "handler", 0.6, True)
