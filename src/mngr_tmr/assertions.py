"""What a test asserts, read from its source: whether a change made it weaker. Pure."""

from __future__ import annotations

import ast
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

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
    """One statement that can fail a test."""

    text: str
    subject: str
    """The variable that it looks at."""
    matcher: str
    literals: tuple[str, ...]

    @property
    def strength(self) -> int:
        return STRENGTH.get(self.matcher.removeprefix("not_"), 2)


def functions(source: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """By the part of a node id after the file: `Class::name` or `name`."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    return dict(_functions(tree.body, ""))


def _functions(
    body: list[ast.stmt], above: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield above + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{above}{node.name}::")


def changed_tests(old: str, new: str) -> tuple[list[str], list[str]]:
    """Names of tests that differ, and of those that are new."""
    before, after = functions(old), functions(new)
    tests = [name for name in after if name.rpartition("::")[2].startswith("test")]
    changed = [n for n in tests if n in before and not same(before[n], after[n])]
    return changed, [name for name in tests if name not in before]


def removed_tests(old: str, new: str) -> list[str]:
    after = functions(new)
    gone = [name for name in functions(old) if name not in after]
    return [name for name in gone if name.rpartition("::")[2].startswith("test")]


def same(one: ast.AST, other: ast.AST) -> bool:
    return ast.dump(one) == ast.dump(other)


def assertions(function: ast.AST) -> list[Assertion]:
    """`assert …`, `expect(…).to_…(…)` and `pytest.raises(…)`."""
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            found.append(_plain(node))
        elif isinstance(node, ast.Call) and _is_matcher(node):
            found.append(_expectation(node))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("raises"):
            text = ast.unparse(node)
            found.append(Assertion(text, "raises", "raises", tuple(_literals(node))))
    return found


def _plain(node: ast.Assert) -> Assertion:
    subject = _root(node.test)
    return Assertion(ast.unparse(node), subject, "assert", tuple(_literals(node.test)))


def _is_matcher(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr.startswith(("to_", "not_to_"))


def _expectation(node: ast.Call) -> Assertion:
    assert isinstance(node.func, ast.Attribute)
    literals = [each for argument in node.args for each in _literals(argument)]
    return Assertion(ast.unparse(node), _root(node.func.value), node.func.attr, tuple(literals))


def _root(node: ast.AST) -> str:
    """The first variable, leaving `expect` itself out."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id not in ("expect", "len", "str", "sorted", "json"):
            return each.id
    return ""


def _literals(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and each.value is not None:
            yield str(each.value)


def commands(function: ast.AST) -> dict[str, list[str]]:
    """Variable -> the texts of the commands whose result it holds."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        texts = [text for call in _runs(node.value) for text in _literals(call)]
        for target in node.targets:
            if texts and isinstance(target, ast.Name):
                found.setdefault(target.id, []).extend(texts)
    return found


def _runs(node: ast.AST) -> Iterator[ast.Call]:
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and _method(each) in ("run", "start"):
            yield each


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def runs_commands(function: ast.AST) -> bool:
    """Whether a no-op could be noticed at all."""
    return any(True for _ in _runs(function))


def blocks(function: ast.AST) -> str:
    """The text of the tutorial blocks a test cites, in its calls and in its docstring."""
    told = []
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _method(node) == "write_tutorial_block":
            told += [textwrap.dedent(text) for text in _literals(node)]
    if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        told.append(ast.get_docstring(function) or "")
    return "\n".join(told)


def weaker(old: ast.AST, new: ast.AST) -> str:
    """Why the new test asserts less than the old within the cited block; nothing if it does not."""
    before, after = Counter(assertions(old)), Counter(assertions(new))
    gone, come = list((before - after).elements()), list((after - before).elements())
    block, held = blocks(old), commands(old)
    for each in gone:
        instead = [new for new in come if new.subject == each.subject]
        if _beyond(each, block, held) or any(implies(new, each) for new in instead):
            continue
        if not instead:
            return f"removed `{each.text}`, which its cited block covers"
        if max(new.strength for new in instead) < each.strength:
            return f"replaced `{each.text}` by something weaker"
        if not _backed(each, instead, blocks(new) + block):
            return f"changed what `{each.text}` expects, without support from its cited block"
    return ""


def implies(new: Assertion, old: Assertion) -> bool:
    """Whether whatever satisfies the new one satisfies the old one too."""
    if ".exit_code" in old.text and old.matcher == "assert":
        codes = {"to_succeed": ("0",), "to_fail": ("1",)}.get(new.matcher, new.literals)
        wide = " in " in old.text and new.matcher in ("to_succeed", "to_have_exit_code")
        return wide and bool(codes) and codes[0] in old.literals
    if new.matcher != "to_equal" or not new.literals or not old.literals:
        return False
    whole, part = new.literals[0], old.literals[0]
    return {
        "to_contain": part in whole,
        "to_start_with": whole.startswith(part),
        "to_end_with": whole.endswith(part),
        "to_have_line_count": part == str(len(whole.splitlines())),
        "not_to_contain": part not in whole,
    }.get(old.matcher, False)


def _beyond(assertion: Assertion, block: str, held: dict[str, list[str]]) -> bool:
    """It looks at the result of a command that the block does not have."""
    texts = held.get(assertion.subject)
    if not texts or not block:
        return False
    return not any(_first_words(text) in block for text in texts if text.strip())


def _first_words(command: str) -> str:
    return " ".join(command.split()[:2])


def _backed(old: Assertion, instead: list[Assertion], block: str) -> bool:
    """Another literal in the same place must be one that the block shows."""
    kept = {literal for new in instead for literal in new.literals}
    fresh = [literal for literal in kept if literal not in old.literals]
    return bool(fresh) and all(_shown(literal, block) for literal in fresh)


def _shown(literal: str, block: str) -> bool:
    words = literal.split()
    return bool(words) and all(word in block for word in words)
