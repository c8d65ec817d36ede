"""Whether a changed test is weaker: examples and properties."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr_tmr.verify.assertions import (
    assertions,
    blocks,
    changed_hooks,
    changed_tests,
    changes_around,
    functions,
    removed_tests,
    runs_commands,
)
from mngr_tmr.verify.weakening import implies, weaker

BLOCK = '''\
e2e.write_tutorial_block("""
# three notes
jot list --last 3
""")
result = e2e.run("jot list --last 3", comment="the newest")
'''
DESCRIBED = """\
'''Notes that are older come first.'''
result = e2e.run("jot list --last 3")
"""
KEPT = "expect(result.stdout).to_have_line_count(3)"
SEEN = 'expect(result.stdout).to_contain("notes")'


def case(*lines: str, block: str = BLOCK, marks: str = "") -> ast.AST:
    body = textwrap.indent(block + "\n".join(lines), "    ")
    return functions(f"{marks}def test_it(e2e):\n{body}\n    ok = 1\n")["test_it"]


def indented(head: str, *lines: str) -> str:
    return head + "\n" + textwrap.indent("\n".join(lines), "    ")


WEAKER = {
    "removed": (case(KEPT, SEEN), case(SEEN), "removed `expect(result.stdout).to_have_line"),
    "by a weaker one": (case(SEEN), case("expect(result).to_succeed()"), "something weaker"),
    "other literal": (
        case(SEEN),
        case('expect(result.stdout).to_contain("whatever")'),
        "without support from its cited block",
    ),
    "the other stream": (
        case('expect(result.stderr).to_contain("ab")'),
        case('expect(result.stdout).to_equal("abc")'),
        "without support",
    ),
    "the opposite": (
        case(SEEN),
        case('expect(result.stdout).not_to_contain("three")'),
        "something weaker",
    ),
    "one for two": (
        case(SEEN, 'expect(result.stdout).to_contain("day")'),
        case('expect(result.stdout).to_contain("three")'),
        "removed",
    ),
    "if": (case(SEEN), case(indented("if result.stdout:", SEEN)), "removed"),
    "try": (case(SEEN), case(indented("try:", SEEN) + "\nexcept Exception: pass"), "removed"),
    "suppress": (case(SEEN), case(indented("with suppress(Exception):", SEEN)), "removed"),
    "empty loop": (case(SEEN), case(indented("for _ in range(0):", SEEN)), "removed"),
    "never called": (case(SEEN), case(indented("def later():", SEEN)), "removed"),
    "short circuit": (case(SEEN), case(f"False and {SEEN}"), "removed"),
    "lambda": (case(SEEN), case(f"lambda: {SEEN}"), "removed"),
    "return before": (case(KEPT, SEEN), case(KEPT, "return", SEEN), "removed"),
    "return perhaps": (case(SEEN), case("if result: return", SEEN), "removed"),
    "skip": (case(SEEN), case("pytest.skip('later')", SEEN), "removed"),
    "xfail": (case(SEEN), case(SEEN, marks="@pytest.mark.xfail\n"), "xfail"),
    "other command": (
        case(SEEN),
        case(SEEN, block=BLOCK.replace('run("jot list --last 3"', 'run("echo three notes"')),
        "`result` is no longer the result of `jot list --last 3`",
    ),
    "command replaced later": (
        case(SEEN),
        case('result = e2e.run("echo notes")', SEEN),
        "is no longer the result of",
    ),
    "result replaced": (case(SEEN), case("result = Fake()", SEEN), "is no longer the result of"),
    "command gone": (case(SEEN), case(SEEN, block="pass\n"), "no longer runs `jot list"),
    "block rewritten": (
        case(SEEN),
        case(
            'expect(result.stdout).to_contain("pears")', block=BLOCK.replace("# three", "# pears")
        ),
        "without support",
    ),
    "fewer parameters": (
        case(SEEN, marks='@pytest.mark.parametrize("n", [3, 4])\n'),
        case(SEEN, marks='@pytest.mark.parametrize("n", [3])\n'),
        "no longer runs with the value '4'",
    ),
    "no block, other literal": (
        case("assert add(1) == 2", block=""),
        case("assert add(1) == 3", block=""),
        "without support",
    ),
    "a docstring is no block": (
        case(SEEN, block=DESCRIBED),
        case(block=DESCRIBED),
        "removed `expect(result.stdout)",
    ),
    "not in": (
        case("assert result.exit_code not in (0, 1)"),
        case("expect(result).to_succeed()"),
        "weaker",
    ),
    "and more": (
        case('assert result.exit_code in (0, 1) and "x" in result.stdout'),
        case("expect(result).to_succeed()"),
        "weaker",
    ),
}


@pytest.mark.parametrize("name", list(WEAKER))
def test_a_weaker_test_is_noticed(name: str) -> None:
    old, new, reason = WEAKER[name]
    assert reason in weaker(old, new), weaker(old, new) or "not noticed"


NOT_WEAKER = {
    "more": (case(SEEN), case(SEEN, KEPT)),
    "order": (case(SEEN, KEPT), case(KEPT, SEEN)),
    "whole instead of part": (case(SEEN), case('expect(result.stdout).to_equal("3 notes\\n")')),
    "backed by its block": (
        case('expect(result.stdout).to_contain("four")'),
        case('expect(result.stdout).to_contain("three")'),
    ),
    "beyond its block": (
        case(SEEN, 'more = e2e.run("date")', "expect(more).to_succeed()"),
        case(SEEN),
    ),
    "one exit code of many": (
        case("assert result.exit_code in (0, 1)"),
        case("expect(result).to_have_exit_code(1)"),
    ),
    "success of many exit codes": (
        case("assert result.exit_code in (0, 1)"),
        case("expect(result).to_succeed()"),
    ),
    "the command of its block": (
        case(SEEN, block=BLOCK.replace('run("jot list --last 3"', 'run("jot list --lats 3"')),
        case(SEEN),
    ),
    "a loop over words": (
        case(SEEN),
        case(indented('for word in ("a", "b"):', SEEN)),
    ),
    "conditional as before": (
        case(indented("if fast:", SEEN)),
        case(indented("if fast:", SEEN), KEPT),
    ),
}


@pytest.mark.parametrize("name", list(NOT_WEAKER))
def test_a_test_as_strong_as_before_is_let_pass(name: str) -> None:
    old, new = NOT_WEAKER[name]
    assert weaker(old, new) == ""


words = st.sampled_from(["three", "notes", "pears", "x y", ""])
matchers = st.sampled_from(["to_equal", "to_contain", "not_to_contain", "to_start_with"])
lines = st.builds(
    lambda matcher, stream, word: f"expect(result.{stream}).{matcher}({word!r})",
    matchers,
    st.sampled_from(["stdout", "stderr"]),
    words,
)


@given(st.lists(lines, max_size=6), st.lists(lines, max_size=3))
def test_adding_assertions_never_makes_weaker(kept: list[str], more: list[str]) -> None:
    assert weaker(case(*kept), case(*kept, *more)) == ""


@given(st.lists(lines, min_size=1, max_size=6), st.data())
def test_removing_an_assertion_always_does(kept: list[str], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(range(len(kept))))
    assert weaker(case(*kept), case(*kept[:gone], *kept[gone + 1 :])) != ""


HOLDS: dict[str, Callable[[str, str], bool]] = {
    "to_equal": lambda seen, word: seen == word,
    "to_contain": lambda seen, word: word in seen,
    "not_to_contain": lambda seen, word: word not in seen,
    "to_start_with": lambda seen, word: seen.startswith(word),
    "to_end_with": lambda seen, word: seen.endswith(word),
}
short = st.text("ab\n", max_size=4)


@given(st.sampled_from(list(HOLDS)), st.sampled_from(list(HOLDS)), short, short, short)
def test_what_is_implied_is_true(one: str, other: str, word: str, part: str, seen: str) -> None:
    """This holds for any output of a command."""
    [new] = assertions(case(f"expect(result.stdout).{one}({word!r})"))
    [old] = assertions(case(f"expect(result.stdout).{other}({part!r})"))
    if implies(new, old) and HOLDS[one](seen, word):
        assert HOLDS[other](seen, part)


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_may_stand_in_a_file(old: str, new: str) -> None:
    changed_tests(old, new)
    removed_tests(old, new)
    changed_hooks(old, new)
    assert changes_around(old, old) is False


def test_what_is_not_python_has_lost_its_tests() -> None:
    source = "def test_a(): pass\nclass TestB:\n    def test_c(self): pass\n"
    assert removed_tests(source, "def (") == ["test_a", "TestB::test_c"]
    deep = "(" * 5000
    assert removed_tests(source, deep) == ["test_a", "TestB::test_c"]


def test_names_of_changed_added_and_removed_tests() -> None:
    old = "def test_a(): pass\ndef test_b(): pass\ndef helper(): pass\n"
    new = "def test_a(): return 1\ndef test_c(): pass\ndef helper(): return 1\n"
    assert changed_tests(old, new) == (["test_a"], ["test_c"])
    assert removed_tests(old, new) == ["test_b"]
    assert changes_around(old, new) and not changes_around(old, old + "def test_z(): pass\n")


def test_the_cited_blocks_are_those_of_calls_and_marked_paragraphs() -> None:
    docstring = """\
'''It lists the newest.

Tutorial block:
    # three notes
    jot list --last 3

Scope: only the number of notes.
'''
e2e.write_tutorial_block("# all\\njot list")
"""
    assert blocks(case(block=docstring)) == "# three notes\njot list --last 3\n\n# all\njot list"
    assert blocks(case(block=DESCRIBED)) == ""


def test_hooks_are_told_from_functions() -> None:
    hook = "def pytest_runtest_makereport(item): pass\n"
    assert changed_hooks("", hook) == ["pytest_runtest_makereport"]
    assert changed_hooks(hook, hook + "def helper(): pass\n") == []


def test_commands_are_seen() -> None:
    assert runs_commands(case(SEEN)) and not runs_commands(case("assert 1", block=""))
