"""Every repair that could be tried is Python and is small."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr_mechanic.program import candidates
from mngr_mechanic.program.hints import Hints, changes, gather
from mngr_mechanic.program.ops_text import parts, specs
from mngr_mechanic.program.reports import Failure
from mngr_mechanic.program.scope import Scope, Vocabulary
from mngr_mechanic.program.source import Edit, SourceFile
from tests.support.cli import ROOT

FILES = [
    *sorted((ROOT / "examples" / "jot" / "src" / "jot").glob("*.py")),
    *sorted((Path(__file__).parent / "second" / "sheet").glob("*.py")),
]
HINTS = Hints(
    changes=[("there is no", "there was no"), ("not a", "a")],
    words={"--tag", "number", "home"},
    numbers={"7", "12"},
    asked={"other"},
    message="NameError: name 'args' is not defined\nKeyError: 'day'\nTypeError: NoneType",
)


def all_edits(text: str, hints: Hints = HINTS) -> tuple[SourceFile, list[Edit]]:
    source = SourceFile("a.py", text)
    scores = {("a.py", line): 1.0 for line in range(1, len(source.lines) + 1)}
    return source, [edit for _, edit in candidates.ranked([source], scores, hints)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_nearly_every_candidate_parses_and_all_touch_one_statement(path: Path) -> None:
    source, edits = all_edits(path.read_text())
    sample = edits[:: max(1, len(edits) // 40)]
    good = [edit for edit in sample if candidates.valid(source, edit)]
    assert len(good) >= 0.9 * len(sample)
    for edit in good:
        old = source.text[edit.start : edit.end]
        new = edit.applied(source.text)
        assert edit.new != old
        assert len(new) - len(source.text) == len(edit.new) - len(old)
        assert changed_statements(source.tree, ast.parse(new)) <= 2, edit


def changed_statements(old: ast.Module, new: ast.Module) -> int:
    """Simple statements and heads that one tree has and the other has not."""
    before, after = (
        [ast.dump(_headless(node)) for node in ast.walk(tree) if isinstance(node, ast.stmt)]
        for tree in (old, new)
    )
    gone, come = list(before), list(after)
    for each in before:
        if each in come:
            come.remove(each)
            gone.remove(each)
    return max(len(gone), len(come))


def _headless(node: ast.stmt) -> ast.AST:
    """Without the statements inside it."""
    import copy

    node = copy.copy(node)
    for name in ("body", "orelse", "finalbody", "handlers"):
        if isinstance(getattr(node, name, None), list):
            setattr(node, name, [])
    return node


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("if a < b: pass", "if a <= b: pass"),
        ("if a > b: pass", "if a < b: pass"),
        ("x = a and b", "x = a or b"),
        ("if a: pass", "if not a: pass"),
        ("if not a: pass", "if a: pass"),
        ("x = a + 1", "x = a"),
        ("x = a + b", "x = a - b"),
        ("x = a[1:]", "x = a[0:]"),
        ("x = a[:n]", "x = a[:n + 1]"),
        ("x = a[n]", "x = a[n - 1]"),
        ("x = a[args.n]", "x = a[args.n - 1]"),
        ("x = min(a)", "x = max(a)"),
        ("x = any(a)", "x = all(a)"),
        ("x = sorted(a)", "x = sorted(a, reverse=True)"),
        ("x = f(a, b)", "x = f(b, a)"),
        ("x = a.lower()", "x = a.upper()"),
        ("x = a.startswith(b)", "x = a.endswith(b)"),
        ("x = a.lstrip()", "x = a.rstrip()"),
        ("x.append(a)", "x.extend(a)"),
        ("x += 1", "x -= 1"),
        ("x = True", "x = False"),
        ("x = a in b", "x = a not in b"),
        ("x = a is b", "x = a is not b"),
        ("x = 'é' + a * 2", "x = 'é' + a * 3"),
        ("def f(a):\n    a.b()", "def f(a):\n    return a.b()"),
        ("def f(a) -> int:\n    c = a", "def f(a) -> int:\n    c = a\n    return c"),
        ("def f(a, b):\n    return a + a", "def f(a, b):\n    return b + a"),
        ("def f(a=1):\n    return a", "def f(a=2):\n    return a"),
        ("for a in b:\n    continue", "for a in b:\n    break"),
        ("x = f'{a:>3}'", "x = f'{a:<3}'"),
        ("x = f'there is no {a}'", "x = f'there was no {a}'"),
        ("x = 'a' f'{a:>3}' f'there is no'", "x = 'a' f'{a:>3}' f'there was no'"),
        ("x = 'a' f'{a:>3}' f'there is no'", "x = 'a' f'{a:<3}' f'there is no'"),
        ("x = 'oTher'", "x = 'other'"),
        ("x = '--tags'", "x = '--tag'"),
        ("x = ', '.join(a)", "x = ' '.join(a)"),
    ],
)
def test_what_is_usually_meant_is_among_the_candidates(wrong: str, right: str) -> None:
    source, edits = all_edits(wrong)
    wanted = ast.dump(ast.parse(right))
    made = [edit.applied(source.text) for edit in edits if candidates.valid(source, edit)]
    assert any(ast.dump(ast.parse(text)) == wanted for text in made), made


@pytest.mark.parametrize(
    ("said", "wrong", "right"),
    [
        ("name 'LIMIT' is not defined", "f = {}\ndef f(): pass", "LIMIT = {}\ndef f(): pass"),
        ("name 'num' is not defined", "NOW = 1\ndef f(): g(num)", "NOW = 1\ndef f(): g(NOW)"),
        (
            "type object 'ValueError' has no attribute 'floor'",
            "import math\ndef f(x): return ValueError.floor(x)",
            "import math\ndef f(x): return math.floor(x)",
        ),
        (
            "int() takes at most 2 arguments (3 given)",
            "def a(x): pass\ndef b(x, y, z=1): pass\ndef f(x): int(x, x, x)",
            "def a(x): pass\ndef b(x, y, z=1): pass\ndef f(x): b(x, x, x)",
        ),
        ('can only concatenate str (not "int") to str', "x = f(a) + b", "x = f(a) % b"),
        ("list index out of range", "x = f(a[int(n)], b)", "x = f(a[int(n) - 1], b)"),
    ],
)
def test_what_the_error_says_comes_first(said: str, wrong: str, right: str) -> None:
    source, edits = all_edits(wrong, Hints(message=said))
    first = [edit for edit in edits if candidates.valid(source, edit)][:3]
    made = [ast.dump(ast.parse(edit.applied(source.text))) for edit in first]
    assert ast.dump(ast.parse(right)) in made, first


def test_of_a_table_of_cases_the_expected_value_is_a_hint() -> None:
    test = "def test_it(given, expected):\n    assert told(given) == expected\n"
    values: dict[str, str | int | float | bool] = {"given": "3600", "expected": "an hour"}
    failure = Failure("AssertionError", "assert 'an hourr' == 'an hour'", (), 2, values)
    source, edits = all_edits("x = 'an hourr'", gather(test, 2, failure, []))
    assert edits[0].applied(source.text) == "x = 'an hour'"


SEEDED = """
from mngr_mechanic.program import candidates
from mngr_mechanic.program.hints import Hints, changes
from mngr_mechanic.program.source import SourceFile

source = SourceFile("a.py", "wanted = 1\\nlimit = 5\\ndef f(x): return x > 3\\n")
said = "name 'one' is not defined; name 'two' is not defined; name 'six' is not defined"
pairs = changes(["abcd efgh", "xbcd efgy"], ["abxd exgh"])
hints = Hints(numbers={str(number) for number in range(10, 60)}, message=said, changes=pairs)
scores = {("a.py", line): 1.0 for line in (1, 2, 3)}
print(pairs, [edit for _, edit in candidates.ranked([source], scores, hints)])
"""


def test_candidates_are_in_the_same_order_for_every_hash_seed() -> None:
    orders = set()
    for seed in range(6):
        env = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run([sys.executable, "-c", SEEDED], env=env, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        orders.add(done.stdout)
    assert len(orders) == 1


def test_types_and_docstrings_are_not_repaired() -> None:
    text = (
        'def f(a: "list[int]" = 3) -> "str":\n    """Not 3 or 4."""\n    x: int = 5\n    return x\n'
    )
    _, edits = all_edits(text, Hints())
    touched = {text[edit.start : edit.end] for edit in edits}
    assert not touched & {'"list[int]"', '"str"', '"""Not 3 or 4."""', "int"}
    assert {"3", "5"} <= touched


@given(st.text(max_size=40), st.text(max_size=40))
def test_changes_lead_from_what_came_to_what_was_wanted(got: str, wanted: str) -> None:
    for old, new in changes([wanted], [got]):
        assert old
        assert old in got
        assert old != new


@given(st.text(alphabet="ab{}:!r'>0 ", max_size=12))
def test_parts_of_an_f_string_lie_in_it_and_in_order(body: str) -> None:
    raw = f'f"{body}"'
    last = 2
    for _, start, end in parts(raw):
        assert last <= start <= end <= len(raw) - 1
        last = end


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ('f"a{b!r:>{w}}c{{x}}{d}"', ["text a", "conversion !r", "spec >{w}", "text c{{x}}"]),
        ('f"{a[1:2]:>3}{f(x[0])!s}"', ["spec >3", "conversion !s"]),
        ('f"{a != b}{x=}{day:%H:%M}"', ["spec %H:%M"]),
        ("""f"{a['}']:3}\"""", ["spec 3"]),
        ("rf'''a\n{b}'''", ["text a\n"]),
    ],
)
def test_an_f_string_is_split_into_texts_and_formats(raw: str, found: list[str]) -> None:
    assert [f"{kind} {raw[start:end]}" for kind, start, end in parts(raw)] == found


@given(st.from_regex(r"[<>^]?0?[0-9]{0,2}(\.[0-9])?[df]?", fullmatch=True))
def test_other_format_specifications_differ(spec: str) -> None:
    assert spec not in specs(spec)


def test_a_vocabulary_knows_names_texts_and_numbers() -> None:
    source = SourceFile("a.py", '"""Doc."""\nx = "word" if y else 12\n')
    words = Vocabulary()
    words.learn(source)
    assert words.texts == {"word": 1}
    assert words.numbers == {"12": 1}
    assert {"x", "y"} <= set(words.names)
    assert Scope(source, Hints(), words).words is words


def test_what_an_assertion_showed_is_compared_with_what_it_wanted() -> None:
    """Scope: `assert told(1) == …` leaves no variable behind, only pytest's own message."""
    test = 'def test_told():\n    assert told([1]) == "the largest is 1"\n'
    message = "assert 'the largst is 1' == 'the largest is 1'\n  - the largest is 1"
    failure = Failure("AssertionError", message, (), 2, {})
    clues = gather(test, 2, failure, [])
    assert any("largst".replace(*pair) == "largest" for pair in clues.changes), clues.changes
