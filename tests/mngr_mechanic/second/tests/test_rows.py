# mypy: ignore-errors
from __future__ import annotations

from mngr_e2e import E2eSession, expect


def test_where_compares_numbers(e2e: E2eSession) -> None:
    result = e2e.run("sheet --as csv where food.csv 'price>1.2'")
    expect(result.stdout).to_equal(
        "name,kind,price,stock\nBread,bakery,2.50,12\ntea,drink,3.00,7\n"
    )


def test_where_can_include_the_limit(e2e: E2eSession) -> None:
    at_least = e2e.run("sheet --as csv where food.csv 'price >= 2.5' | sheet pick - name")
    expect(at_least.stdout).to_equal("name\nBread\ntea\n")
    at_most = e2e.run("sheet --as csv where food.csv 'stock<=12' | sheet pick - name")
    expect(at_most.stdout).to_equal("name\nBread\ntea\n")


def test_where_leaves_the_limit_out(e2e: E2eSession) -> None:
    result = e2e.run("sheet --as csv where food.csv 'stock<12' | sheet pick - name")
    expect(result.stdout).to_equal("name\ntea\n")


def test_where_is_and_is_not(e2e: E2eSession) -> None:
    result = e2e.run("sheet --as csv where food.csv kind=drink 'name!=tea'")
    expect(result.stdout).to_equal("name,kind,price,stock\nmilk,drink,1.20,30\n")


def test_where_looks_into_words_in_any_case(e2e: E2eSession) -> None:
    result = e2e.run("sheet --as csv where food.csv name~EA | sheet --as csv pick - name")
    expect(result.stdout).to_equal("name\nBread\ntea\npear\n")


def test_where_one_is_enough(e2e: E2eSession) -> None:
    result = e2e.run(
        "sheet --as csv where food.csv kind=bakery 'price<0.5' --any | sheet --as csv pick - name"
    )
    expect(result.stdout).to_equal("name\nBread\napple\n")


def test_a_condition_that_cannot_be_read(e2e: E2eSession) -> None:
    result = e2e.run("sheet where food.csv cheap")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_equal("sheet: cannot read 'cheap'; write it like price>3\n")


def test_sorted_by_number(e2e: E2eSession) -> None:
    result = e2e.run("sheet --as csv sort food.csv stock | sheet --as csv pick - stock")
    expect(result.stdout).to_equal("stock\n7\n12\n30\n80\n120\n")


def test_sorted_by_word_whatever_the_case(e2e: E2eSession) -> None:
    result = e2e.run("sheet --as csv sort food.csv name | sheet --as csv pick - name")
    expect(result.stdout).to_equal("name\napple\nBread\nmilk\npear\ntea\n")


def test_sorted_the_other_way(e2e: E2eSession) -> None:
    result = e2e.run("sheet --as csv sort food.csv price --reverse | sheet pick - price")
    expect(result.stdout).to_start_with("price\n 3.00\n 2.50\n")


def test_the_first_rows(e2e: E2eSession) -> None:
    result = e2e.run("sheet --as csv part food.csv 2 | sheet --as csv pick - name")
    expect(result.stdout).to_equal("name\nmilk\nBread\n")


def test_the_last_rows(e2e: E2eSession) -> None:
    result = e2e.run("sheet --as csv part food.csv 2 --last | sheet --as csv pick - name")
    expect(result.stdout).to_equal("name\napple\npear\n")


def test_none_of_the_last_rows(e2e: E2eSession) -> None:
    expect(e2e.run("sheet --as csv part food.csv 0 --last").stdout).to_have_line_count(1)
