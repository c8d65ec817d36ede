# mypy: ignore-errors
from __future__ import annotations

from mngr_e2e import E2eSession, expect


def test_a_table_is_drawn(e2e: E2eSession) -> None:
    result = e2e.run("sheet show food.csv")
    expect(result).to_succeed()
    expect(result.stdout).to_equal(
        "name   kind    price  stock\n"
        "milk   drink    1.20     30\n"
        "Bread  bakery   2.50     12\n"
        "tea    drink    3.00      7\n"
        "apple  fruit    0.40    120\n"
        "pear   fruit    0.55     80\n"
    )


def test_columns_are_picked_in_the_order_asked_for(e2e: E2eSession) -> None:
    result = e2e.run("sheet --as csv pick food.csv stock name")
    expect(result.stdout).to_start_with("stock,name\n30,milk\n12,Bread\n")


def test_columns_are_dropped(e2e: E2eSession) -> None:
    result = e2e.run("sheet --as csv pick food.csv kind stock --drop")
    expect(result.stdout).to_start_with("name,price\nmilk,1.20\n")


def test_a_column_that_is_not_there(e2e: E2eSession) -> None:
    result = e2e.run("sheet pick food.csv colour")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_equal(
        "sheet: there is no column colour; try name, kind, price, stock\n"
    )


def test_a_table_as_json(e2e: E2eSession) -> None:
    result = e2e.run("sheet --as csv pick food.csv name price | sheet --as json part - 1")
    expect(result.stdout).to_equal('[\n {\n  "name": "milk",\n  "price": "1.20"\n }\n]\n')


def test_another_separator(e2e: E2eSession) -> None:
    (e2e.work / "odd.csv").write_text("a;b\n1;2\n")
    result = e2e.run("sheet -s ';' --as csv show odd.csv")
    expect(result.stdout).to_equal("a,b\n1,2\n")


def test_two_tables_are_joined(e2e: E2eSession) -> None:
    (e2e.work / "tax.csv").write_text("kind,rate\nfruit,7\ndrink,19\n")
    result = e2e.run("sheet --as csv join food.csv tax.csv --on kind | sheet --as csv part - 2")
    expect(result.stdout).to_equal(
        "name,kind,price,stock,rate\nmilk,drink,1.20,30,19\ntea,drink,3.00,7,19\n"
    )


def test_a_row_that_is_too_short(e2e: E2eSession) -> None:
    (e2e.work / "short.csv").write_text("a,b\n1,2\n3\n")
    result = e2e.run("sheet show short.csv")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_equal("sheet: line 3 has 1 cells, not 2\n")


def test_an_empty_table(e2e: E2eSession) -> None:
    (e2e.work / "empty.csv").write_text("\n\n")
    result = e2e.run("sheet show empty.csv")
    expect(result).to_have_exit_code(1)
    expect(result.stderr).to_equal("sheet: the table is empty\n")


def test_a_file_that_is_not_there(e2e: E2eSession) -> None:
    result = e2e.run("sheet show nothing.csv")
    expect(result).to_have_exit_code(2)
    expect(result.stderr).to_equal("sheet: nothing.csv: No such file or directory\n")


def test_the_version(e2e: E2eSession) -> None:
    expect(e2e.run("sheet --version").stdout).to_equal("sheet 1.2\n")
