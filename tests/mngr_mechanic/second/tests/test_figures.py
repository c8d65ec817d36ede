# mypy: ignore-errors
from __future__ import annotations

from mngr_e2e import E2eSession, expect


def test_a_sum(e2e: E2eSession) -> None:
    result = e2e.run("sheet figure food.csv sum stock")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("249\n")


def test_a_mean_has_two_digits(e2e: E2eSession) -> None:
    expect(e2e.run("sheet figure food.csv mean price").stdout).to_equal("1.53\n")


def test_a_median_of_an_odd_number(e2e: E2eSession) -> None:
    expect(e2e.run("sheet figure food.csv median stock").stdout).to_equal("30\n")


def test_a_median_of_an_even_number(e2e: E2eSession) -> None:
    result = e2e.run("sheet --as csv part food.csv 4 | sheet figure - median price")
    expect(result.stdout).to_equal("1.85\n")


def test_a_span(e2e: E2eSession) -> None:
    expect(e2e.run("sheet figure food.csv span price").stdout).to_equal("2.6\n")


def test_a_count(e2e: E2eSession) -> None:
    expect(e2e.run("sheet figure food.csv count price").stdout).to_equal("5\n")


def test_sums_by_kind(e2e: E2eSession) -> None:
    result = e2e.run("sheet figure food.csv sum stock --by kind")
    expect(result.stdout).to_equal("kind    sum\ndrink    37\nbakery   12\nfruit   200\n")


def test_means_by_kind_as_csv(e2e: E2eSession) -> None:
    result = e2e.run("sheet --as csv figure food.csv mean price --by kind")
    expect(result.stdout).to_equal("kind,mean\ndrink,2.1\nbakery,2.5\nfruit,0.48\n")


def test_words_cannot_be_summed(e2e: E2eSession) -> None:
    result = e2e.run("sheet figure food.csv sum name")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_equal("sheet: 'milk' is not a number\n")


def test_the_mean_of_nothing(e2e: E2eSession) -> None:
    result = e2e.run("sheet --as csv part food.csv 0 | sheet figure - mean price")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_equal("sheet: the mean of nothing\n")
