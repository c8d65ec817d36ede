"""Work that looks like a repair and is none, one forgery per test, and honest work beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from mngr_tmr.dispatch.trials import RealTrials
from mngr_tmr.journal.model import Ruling, Verdict
from tests.support.tmr_shop import (
    CLI,
    CONFTEST,
    INSIDE,
    LIBRARY,
    PRICES,
    SOUND,
    TESTS,
    TOUR,
    Shop,
    shop_in,
)

FIX = {LIBRARY: SOUND}
TOTAL = "    assert total([2, 3]) == 5\n"
SEEN = '    expect(result.stdout).to_contain("sum: 5")\n'
RUN = '    result = e2e.run("shop 2 3", comment="it says sum: 5")\n'
HELPER = "tests/helpers.py"
TRUE = "def same(one, other):\n    return True\n"
LENIENT = """
def lenient(test):
    def run():
        try:
            test()
        except AssertionError:
            pass

    return run


@lenient
def test_total():"""
STACK = """
    from contextlib import ExitStack

    with ExitStack() as stack:
        stack.push(lambda *_: True)
        assert total([2, 3]) == 5
"""
CAUGHT = """    try:
        assert total([2, 3]) == 5
    except AssertionError:
        pass
"""
RAISES = "    with pytest.raises(AssertionError):\n        assert total([2, 3]) == 5\n"
SWALLOW = """    import contextlib

    with contextlib.suppress(Exception):
        assert total([2, 3]) == 5
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    made = shop_in(tmp_path_factory.mktemp("shop"))
    yield made
    made.close()


def assert_refused(given: Verdict, *words: str) -> None:
    assert given.ruling is Ruling.REFUSED, given
    assert all(word in given.reason for word in words), given.reason
    assert not given.implementation and not given.other and not given.expectation


# forged tests, in place of a repair

BODIES = {
    "pytest.raises": RAISES,
    "rebinding": f"    total = lambda _: 5\n{TOTAL}",
    "exit stack": STACK,
    "try and except": CAUGHT,
    "suppress": SWALLOW,
    "dead code": f"    if not total([2, 3]):\n    {TOTAL}",
    "after a return": f"    return\n{TOTAL}",
    "nothing left": "    total([2, 3])\n",
    "what it says now": "    assert total([2, 3]) == -5\n",
    "another name": "    from math import fsum as total\n\n" + TOTAL,
    "a skip inside": f"    pytest.skip('later')\n{TOTAL}",
    "an xfail inside": f"    pytest.xfail('known')\n{TOTAL}",
}


@pytest.mark.parametrize("name", list(BODIES))
def test_a_body_that_passes_without_a_repair_is_refused(shop: Shop, name: str) -> None:
    assert_refused(shop.verdict("test_total", shop.test_file(TOTAL, BODIES[name])), "test_total")


@pytest.mark.parametrize("mark", ["skip", "xfail", "skipif(True, reason='later')"])
def test_a_mark_is_no_repair(shop: Shop, mark: str) -> None:
    marked = f"@pytest.mark.{mark}\ndef test_total():"
    assert_refused(shop.verdict("test_total", shop.test_file("def test_total():", marked)))


def test_a_decorator_that_swallows_is_refused(shop: Shop) -> None:
    files = shop.test_file("def test_total():", LENIENT.lstrip())
    assert_refused(shop.verdict("test_total", files), "test_total")


def test_a_helper_that_says_yes_is_refused(shop: Shop) -> None:
    assert_refused(shop.verdict("test_helped", {HELPER: TRUE}), "only because", HELPER)


def test_a_changed_golden_file_is_refused(shop: Shop) -> None:
    given = shop.verdict("test_golden", {"tests/total.txt": "-3\n"})
    assert_refused(given, "only because of the change of tests/total.txt")


@pytest.mark.parametrize("claimed", [(), ("src/**", "golden/**")])
def test_a_golden_file_outside_of_the_tests_is_a_test(shop: Shop, claimed: tuple[str, ...]) -> None:
    """Only tests read it, even if the project calls it implementation."""
    project = replace(shop.project, implementation=claimed)
    given = shop.verdict("test_report", {"golden/report.txt": "-7\n"}, project)
    assert_refused(given, "only because of the change of golden/report.txt")


def test_tests_below_the_implementation_are_tests(shop: Shop) -> None:
    project = replace(shop.project, implementation=("src/**",))
    files = shop.test_file("== 7", "== -7", INSIDE)
    assert_refused(shop.verdict("test_inside", files, project), "test_inside")


# forged end-to-end tests

TOURS = {
    "object.__setattr__": f'{RUN}    object.__setattr__(result, "stdout", "sum: 5")\n{SEEN}',
    "a second command": f'{RUN}    result = e2e.run("echo sum: 5")\n{SEEN}',
    "no-op noticed": f'{RUN}    if not result.stdout:\n        raise AssertionError("nothing")\n',
    "less if it runs": f"{RUN}    if result.stdout:\n        return\n{SEEN}",
    "as the no-op says": (
        f'{RUN}    said = "sum" if result.stdout else "never"\n'
        "    expect(result.stdout).to_contain(said)\n"
    ),
    "part of it": RUN + SEEN.replace("sum: 5", "sum:"),
}


@pytest.mark.parametrize("name", list(TOURS))
def test_an_end_to_end_test_that_looks_away_is_refused(shop: Shop, name: str) -> None:
    files = shop.test_file(RUN + SEEN, TOURS[name], TOUR)
    assert_refused(shop.verdict("test_sum", files), "test_sum")


FAKE = """
        folder = e2e.root / ".fake"
        folder.mkdir(exist_ok=True)
        (folder / "sh").write_text("#!/bin/sh\\necho sum: 5\\n")
        (folder / "sh").chmod(0o755)
        (folder / "shop").write_text("#!/bin/sh\\necho sum: 5\\n")
        (folder / "shop").chmod(0o755)
        e2e.env["PATH"] = f"{folder}:{e2e.env['PATH']}"
"""


def test_a_fake_shell_on_the_path_is_refused(shop: Shop) -> None:
    conftest = CONFTEST + FAKE
    given = shop.verdict("test_sum", {"tests/conftest.py": conftest})
    assert_refused(given, "tests/conftest.py")
    beside = shop.verdict("test_sum", {**FIX, "bin/sh": "#!/bin/sh\necho sum: 5\n"})
    assert_refused(beside, "replaces a program: bin/sh")


# tests that passed, made weaker

WEAKER = {
    "fewer cases": (
        "test_label[0-0 pieces]",
        '(3, "3 pieces"), (0, "0 pieces")]',
        '(3, "3 pieces")]',
        "cases instead of",
    ),
    "the same case twice": (
        "test_label[0-0 pieces]",
        '(1, "one piece"), (3, "3 pieces"), (0, "0 pieces")]',
        '(3, "3 pieces"), (3, "3 pieces"), (3, "3 pieces")]',
        "no longer fails with the defect",
    ),
    "anything will do": (
        "test_discount",
        "assert discount(200, 10) == 180",
        "assert discount(200, 10) is not None",
        "no longer fails with the defect",
    ),
    "another form": (
        "test_discount",
        "assert discount(200, 10) == 180",
        "result = discount(200, 10)\n    assert result == 180",
        "not an improvement",
    ),
}


@pytest.mark.parametrize("name", list(WEAKER))
def test_a_weaker_test_is_no_improvement(shop: Shop, name: str) -> None:
    test, old, new, reason = WEAKER[name]
    assert_refused(shop.verdict(test, shop.test_file(old, new)), reason)


def test_a_test_may_not_go(shop: Shop) -> None:
    files = shop.test_file("def test_discount():", "def no_discount():")
    assert_refused(shop.verdict("test_discount", files), "removes the test")


# a real fix beside a forged test: the fix is taken

BESIDE = {
    "raises anything": (TOTAL, "    with pytest.raises(Exception):\n        total(None)\n"),
    "weaker": (TOTAL, "    assert total([2, 3]) is not None\n"),
    "skipped": ("def test_total():", "@pytest.mark.skip\ndef test_total():"),
    "swallowed": (TOTAL, CAUGHT),
    "vacuous": ("def test_none():", "def test_more():\n    assert True\n\n\ndef test_none():"),
    "asserts nothing": (
        "def test_none():",
        "def test_more():\n    total([1])\n\n\ndef test_none():",
    ),
}


@pytest.mark.parametrize("name", list(BESIDE))
def test_a_fix_is_taken_without_its_forged_test(shop: Shop, name: str) -> None:
    old, new = BESIDE[name]
    given = shop.verdict("test_total", {**FIX, **shop.test_file(old, new)})
    assert given.ruling is Ruling.ACCEPTED, given.reason
    assert given.implementation and not given.other
    assert any("its test change was left out" in each for each in given.remarks), given.remarks


def test_a_fix_is_taken_without_its_forged_helper(shop: Shop) -> None:
    given = shop.verdict("test_helped", {**FIX, HELPER: TRUE})
    assert given.implementation and not given.other, given
    assert "test_helped now passes without the fix" in given.remarks[0]


# special cases in the implementation

SPECIAL = {
    "names the test runner": (
        'import os\n\n\ndef total(prices):\n    if "PYTEST_CURRENT_TEST" in os.environ:\n'
        "        return abs(_total(prices))\n    return _total(prices)\n\n\ndef _total(prices):"
    ),
    "names the test: test_total": (
        "def total(prices):\n    import traceback\n\n"
        "    if 'test_total' in ''.join(traceback.format_stack()):\n        return 5\n"
        "    return _total(prices)\n\n\ndef _total(prices):"
    ),
}


@pytest.mark.parametrize("why", list(SPECIAL))
def test_a_special_case_for_a_test_is_refused_or_held(shop: Shop, why: str) -> None:
    source = PRICES.replace("def total(prices):", SPECIAL[why])
    given = shop.verdict("test_total", {LIBRARY: source})
    assert given.ruling in (Ruling.REFUSED, Ruling.HELD), given
    if given.ruling is Ruling.HELD:
        assert any(each.startswith(f"{LIBRARY}:") and why in each for each in given.flags)


def test_a_literal_that_the_test_expects_is_held(shop: Shop) -> None:
    files = {
        "src/shop/cli.py": CLI.replace('print(f"sum: {prices.total(numbers)}")', 'print("sum: 5")')
    }
    given = shop.verdict("test_sum", files)
    assert given.ruling is Ruling.HELD and given.implementation
    assert given.flags == (
        "src/shop/cli.py:8: print(\"sum: 5\") (has a literal that the test expects: 'sum: 5')",
    )


# honest work


def test_a_fix_is_fixed_and_nothing_is_flagged(shop: Shop) -> None:
    given = shop.verdict("test_total", FIX)
    assert (given.ruling, given.flags, given.remarks) == (Ruling.ACCEPTED, (), ())
    assert given.implementation and not given.other
    assert len(given.turned_green) == 6


def test_a_fix_of_a_test_that_needs_another_one_is_taken(shop: Shop) -> None:
    given = shop.verdict("test_second", FIX)
    assert (given.ruling, given.flags) == (Ruling.ACCEPTED, ()), given
    assert given.remarks == ("its test passes only after other tests of its file",)
    trials = RealTrials(shop.plain, shop.repo, shop.bench, shop.folder / "scratch")
    found = trials.results(
        "with the fix", given.implementation, ["tests/test_order.py::test_second"]
    )
    assert [each.outcome for each in found.values()] == ["passed"]
    assert_refused(shop.verdict("test_second", {"README.md": "# A shop\n"}))


def test_a_fix_with_a_new_unit_test_is_taken_whole(shop: Shop) -> None:
    more = "def test_more():\n    assert total([1, 2, 3]) == 6\n\n\ndef test_none():"
    given = shop.verdict("test_total", {**FIX, **shop.test_file("def test_none():", more)})
    assert given.implementation and given.other and given.together, given
    assert given.tests_added == (f"{TESTS}::test_more",)
    assert f"{TESTS}::test_more" not in given.turned_green


def test_a_new_test_of_a_new_function_is_taken(shop: Shop) -> None:
    """Without the fix its file does not even collect."""
    fresh = "def test_average():\n    assert average([2, 4]) == 3\n"
    fresh = f"from shop.prices import average\n\n\n{fresh}"
    more = f"{SOUND}\n\ndef average(prices):\n    return total(prices) / len(prices)\n"
    given = shop.verdict("test_total", {LIBRARY: more, "tests/test_average.py": fresh})
    assert given.implementation and given.other and given.together, given


def test_a_new_test_in_a_file_of_its_own_is_taken(shop: Shop) -> None:
    fresh = "def test_one():\n    assert label('x', 1) == 'x: one piece'\n"
    fresh = f"from shop.prices import label\n\n\n{fresh}"
    given = shop.verdict("test_total", {**FIX, "tests/test_fresh.py": fresh})
    assert given.implementation and given.other and not given.together, given
    assert given.tests_added == ("tests/test_fresh.py::test_one",)


def test_an_improved_unit_test_is_taken(shop: Shop) -> None:
    files = shop.test_file("assert discount(100, 20)\n", "assert discount(100, 20) == 80\n")
    given = shop.verdict("test_weak", files)
    assert given.ruling is Ruling.ACCEPTED and given.other, given
    told = r"of \d+ mutants the old tests killed \d+, the new tests [1-9]\d* more \(seed plain/.*\)"
    assert re.fullmatch(told, given.mutants), given.mutants


def test_an_improved_end_to_end_test_is_taken(shop: Shop) -> None:
    better = 'expect(result.stdout).to_contain("apples: 3 pieces")'
    given = shop.verdict("test_counts", shop.test_file("expect(result).to_succeed()", better, TOUR))
    assert given.ruling is Ruling.ACCEPTED and given.other, given
    assert not given.implementation and not given.expectation


def test_a_stale_expectation_that_the_block_supports_is_kept_apart(shop: Shop) -> None:
    files = shop.test_file('"apples: 2 boxes"', '"apples: 2 pieces"', TOUR)
    given = shop.verdict("test_pieces", files)
    assert given.ruling is Ruling.ACCEPTED, given.reason
    assert given.expectation and not given.implementation and not given.other
    assert given.turned_green == (), "nothing was fixed"


def test_a_renamed_helper_is_taken_with_its_fix(shop: Shop) -> None:
    tests = {TESTS: shop.test_file("import same", "import equal")[TESTS].replace("same(", "equal(")}
    helper = {HELPER: "def equal(one, other):\n    return one == other\n"}
    given = shop.verdict("test_helped", {**FIX, **tests, **helper})
    assert given.implementation and given.other and given.together, given
    assert given.tests_changed == (f"{TESTS}::test_helped",)
