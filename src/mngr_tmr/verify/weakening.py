"""Decide whether a changed test asserts less than before. Pure.

If that is not certain, the answer is yes: an agent can always leave a test unchanged.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence

from mngr_tmr.verify.assertions import Assertion, assertions, blocks, commands, literals_of


def weaker(old: ast.AST, new: ast.AST) -> str:
    """Return why the new test asserts less than the old about the cited block; "" if it does not.

    The block is the one that the old test cites: the agent cannot choose another.
    """
    block = blocks(old)
    return _excused(old, new, block) or _elsewhere(old, new, block) or _lost(old, new, block)


def expects_else(old: ast.AST, new: ast.AST) -> bool:
    """Return whether the new test expects something of its block that the old one did not."""
    block = blocks(old)
    known = {literal for each in assertions(old) for literal in each.literals} | {*_given(old)}
    fresh = {literal for each in assertions(new) for literal in each.literals} | {*_given(new)}
    return any(_shown(each, block) for each in fresh - known)


def beyond_only(old: ast.AST, new: ast.AST) -> bool:
    """Return whether the change only removes assertions about commands outside the block."""
    before, after = Counter(assertions(old)), Counter(assertions(new))
    gone, block, held = before - after, blocks(old), commands(old)
    return bool(gone) and not after - before and all(_beyond(each, block, held) for each in gone)


def _excused(old: ast.AST, new: ast.AST, block: str) -> str:
    """Return a reason if marks skip the test, or values of its parameters are lost."""
    before, after = _marks(old), _marks(new)
    for word in ("skip", "xfail"):
        if word in " ".join(after) and word not in " ".join(before):
            return f"marks the test with {word}"
    gone = Counter(_given(old)) - Counter(_given(new))
    come = Counter(_given(new)) - Counter(_given(old))
    if sum(gone.values()) > sum(come.values()):
        return f"no longer runs with the value {next(iter(gone))!r}"
    if gone and not all(_shown(each, block) for each in come):
        return f"replaces the value {next(iter(gone))!r} by one that its block does not have"
    return ""


def _marks(function: ast.AST) -> list[str]:
    return [ast.unparse(each) for each in getattr(function, "decorator_list", [])]


def _given(function: ast.AST) -> list[str]:
    return [text for each in getattr(function, "decorator_list", []) for text in literals_of(each)]


def _elsewhere(old: ast.AST, new: ast.AST, block: str) -> str:
    """Return a reason if the assertions check the result of another command."""
    before, after = commands(old), commands(new)
    looked_at = {each.subject for each in assertions(old)}
    for variable, texts in before.items():
        if variable not in looked_at or not any(texts) or _out_of(block, texts):
            continue
        fresh = list((Counter(after.get(variable, [])) - Counter(texts)).elements())
        strange = [each for each in fresh if not each or each not in block]
        if strange:
            return f"`{variable}` is no longer the result of `{texts[0]}`"
        if not fresh and set(texts) - set(after.get(variable, [])):
            return f"no longer runs `{texts[0]}`"
    return ""


def _lost(old: ast.AST, new: ast.AST, block: str) -> str:
    before, after = Counter(assertions(old)), Counter(assertions(new))
    gone, left = list((before - after).elements()), list((after - before).elements())
    held = commands(old)
    for each in sorted(gone, key=lambda one: -one.strength):
        if _beyond(each, block, held) or any(implies(one, each) for one in left if one.sure):
            continue
        instead = [one for one in left if one.subject == each.subject and one.sure >= each.sure]
        if not instead:
            return f"removed `{each.text}`, which its cited block covers"
        strong = [
            one
            for one in instead
            if one.strength >= each.strength and one.negative == each.negative
        ]
        if not strong:
            return f"replaced `{each.text}` by something weaker"
        backed = [one for one in strong if _backed(each, one, block)]
        if not backed:
            return f"changed what `{each.text}` expects, without support from its cited block"
        left.remove(backed[0])  # one assertion replaces one, not many
    return ""


def implies(new: Assertion, old: Assertion) -> bool:
    """Return whether the old assertion holds whenever the new one does."""
    if old.matcher == "assert":
        return _is_one_of(new, old)
    if new.matcher != "to_equal" or len(new.literals) != 1 or len(old.literals) != 1:
        return False
    whole, part = new.literals[0], old.literals[0]
    if old.matcher == "not_to_contain":
        # An exact expectation is stronger than the absence of one word, even in the other stream.
        return part not in whole and new.subject == old.subject
    if new.looks_at != old.looks_at:
        return False
    return {
        "to_contain": part in whole,
        "to_start_with": whole.startswith(part),
        "to_end_with": whole.endswith(part),
        "to_have_line_count": part == str(len(whole.splitlines())),
    }.get(old.matcher, False)


EXIT_CODES = re.compile(r"assert (\w+)\.exit_code in \(([\d, ]*)\)")


def _is_one_of(new: Assertion, old: Assertion) -> bool:
    """Return whether the new one is a case of `assert x.exit_code in (0, 1)`."""
    wide = EXIT_CODES.fullmatch(old.text)
    if wide is None or new.subject != wide[1]:
        return False
    if new.matcher == "to_succeed":
        return "0" in old.literals
    return new.matcher == "to_have_exit_code" and set(new.literals) <= set(old.literals)


def _beyond(assertion: Assertion, block: str, held: dict[str, list[str]]) -> bool:
    """Return whether it checks the result of a command that the block does not have."""
    return _out_of(block, held.get(assertion.subject, []))


def _out_of(block: str, texts: Sequence[str]) -> bool:
    known = [text for text in texts if text.strip()]
    return bool(known and block) and not any(_first_words(text) in block for text in known)


def _first_words(command: str) -> str:
    return " ".join(command.split()[:2])


def _backed(old: Assertion, new: Assertion, block: str) -> bool:
    """Return whether the block shows the literals that are new."""
    fresh = [literal for literal in new.literals if literal not in old.literals]
    less = any(literal in text for literal in fresh for text in old.literals)  # a part is enough
    return bool(fresh) and not less and all(_shown(literal, block) for literal in fresh)


def _shown(literal: str, block: str) -> bool:
    words = literal.split()
    return bool(words) and all(word in block for word in words)
