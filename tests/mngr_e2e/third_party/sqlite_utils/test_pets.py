"""The tutorial of sqlite-utils."""

from __future__ import annotations

import sqlite3

import pytest

from mngr_e2e import E2eSession, expect


@pytest.fixture
def dogs(e2e: E2eSession) -> None:
    """As if the reader had come so far; without sqlite-utils, which is what we test."""
    with sqlite3.connect(e2e.work / "pets.db") as database:
        database.execute("create table dogs (id integer primary key, name text, age integer)")
        rows = [(1, "Cleo", 4), (2, "Pancakes", 2)]
        database.executemany("insert into dogs values (?, ?, ?)", rows)
    database.close()


def names(e2e: E2eSession, table: str) -> list[str]:
    database = sqlite3.connect(e2e.work / "pets.db")
    found = [str(name) for (name,) in database.execute(f"select name from {table} order by 1")]
    database.close()
    return found


def test_json_becomes_a_table(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # make a table of some JSON
    echo '[{"id": 1, "name": "Cleo", "age": 4}, {"id": 2, "name": "Pancakes", "age": 2}]' |
        sqlite-utils insert pets.db dogs - --pk id
    """)
    result = e2e.run(
        """echo '[{"id": 1, "name": "Cleo", "age": 4}, {"id": 2, "name": "Pancakes", "age": 2}]' |
        sqlite-utils insert pets.db dogs - --pk id""",
        comment="make a table of some JSON",
    )
    expect(result).to_succeed()
    expect(e2e.work / "pets.db").to_exist()
    expect(names(e2e, "dogs")).to_equal(["Cleo", "Pancakes"])


def test_a_csv_file_becomes_a_table(e2e: E2eSession, dogs: None) -> None:
    e2e.write_tutorial_block("""
    # and another one of a CSV file
    sqlite-utils insert pets.db cats cats.csv --csv
    """)
    expect(e2e.run("sqlite-utils insert pets.db cats cats.csv --csv")).to_succeed()
    expect(lambda: names(e2e, "cats")).eventually(0).to_equal(["Mittens", "Tom"])


def test_a_row_is_corrected(e2e: E2eSession, dogs: None) -> None:
    e2e.write_tutorial_block("""
    # correct a row that is there, or add it
    echo '{"id": 2, "age": 3}' | sqlite-utils upsert pets.db dogs - --pk id
    """)
    expect(
        e2e.run("""echo '{"id": 2, "age": 3}' | sqlite-utils upsert pets.db dogs - --pk id""")
    ).to_succeed()
    rows = e2e.run("sqlite-utils rows pets.db dogs")
    expect(rows.stdout).at("[1]").to_equal({"id": 2, "name": "Pancakes", "age": 3})


def test_tables_are_counted(e2e: E2eSession, dogs: None) -> None:
    e2e.write_tutorial_block("""
    # which tables are there, and how long are they?
    sqlite-utils tables pets.db --counts
    """)
    result = e2e.run("sqlite-utils tables pets.db --counts")
    expect(result).to_succeed()
    expect(result.stdout).to_be_json().to_equal([{"table": "dogs", "count": 2}])


def test_rows_are_shown_for_people(e2e: E2eSession, dogs: None) -> None:
    e2e.write_tutorial_block("""
    # all rows of one, for people
    sqlite-utils rows pets.db dogs --fmt simple
    """)
    result = e2e.run("sqlite-utils rows pets.db dogs --fmt simple")
    expect(result.stdout).to_have_line_count(4).to_match(r"^ +1 +Cleo +4$")


def test_questions_are_asked_in_sql(e2e: E2eSession, dogs: None) -> None:
    e2e.write_tutorial_block("""
    # ask in SQL, get JSON
    sqlite-utils pets.db 'select name from dogs where age > 3'
    """)
    result = e2e.run("sqlite-utils pets.db 'select name from dogs where age > 3'")
    expect(result.stdout).to_be_json().to_equal([{"name": "Cleo"}])


def test_a_file_is_asked_without_a_database(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # no database at all: ask a file
    sqlite-utils memory cats.csv 'select sum(lives) as lives from cats'
    """)
    result = e2e.run("sqlite-utils memory cats.csv 'select sum(lives) as lives from cats'")
    expect(result.stdout).at("[0].lives").to_equal(16)
    expect(e2e.work / "pets.db").not_to_exist()


def test_a_column_is_added(e2e: E2eSession, dogs: None) -> None:
    e2e.write_tutorial_block("""
    # a new column
    sqlite-utils add-column pets.db dogs weight float
    sqlite-utils schema pets.db
    """)
    expect(e2e.run("sqlite-utils add-column pets.db dogs weight float")).to_succeed()
    expect(e2e.run("sqlite-utils schema pets.db").stdout).to_match(r'"?weight"? (REAL|FLOAT)')


def test_words_are_searched_for(e2e: E2eSession, dogs: None) -> None:
    e2e.write_tutorial_block("""
    # search by words
    sqlite-utils enable-fts pets.db dogs name
    sqlite-utils search pets.db dogs cleo --nl
    """)
    expect(e2e.run("sqlite-utils enable-fts pets.db dogs name")).to_succeed()
    found = e2e.run("sqlite-utils search pets.db dogs cleo --nl")
    expect(found.stdout).to_have_line_count(1)
    expect(found.stdout).to_include_json({"id": 1, "name": "Cleo"})


def test_a_missing_table_is_said(e2e: E2eSession, dogs: None) -> None:
    e2e.write_tutorial_block("""
    # a table that is not there
    sqlite-utils rows pets.db birds || echo "exit code $?"
    """)
    result = e2e.run('sqlite-utils rows pets.db birds || echo "exit code $?"')
    expect(result.stdout).to_equal("exit code 1\n")
    expect(result.stderr).to_contain("no such table: birds")
