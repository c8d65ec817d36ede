#!/bin/sh
# sqlite-utils: a database from whatever you have.

## Filling a database

# make a table of some JSON
echo '[{"id": 1, "name": "Cleo", "age": 4}, {"id": 2, "name": "Pancakes", "age": 2}]' |
    sqlite-utils insert pets.db dogs - --pk id

# and another one of a CSV file
sqlite-utils insert pets.db cats cats.csv --csv

# correct a row that is there, or add it
echo '{"id": 2, "age": 3}' | sqlite-utils upsert pets.db dogs - --pk id

## Looking into it

# which tables are there, and how long are they?
sqlite-utils tables pets.db --counts

# all rows of one, for people
sqlite-utils rows pets.db dogs --fmt simple

# ask in SQL, get JSON
sqlite-utils pets.db 'select name from dogs where age > 3'

# no database at all: ask a file
sqlite-utils memory cats.csv 'select sum(lives) as lives from cats'

## Changing it

# a new column
sqlite-utils add-column pets.db dogs weight float
sqlite-utils schema pets.db

# search by words
sqlite-utils enable-fts pets.db dogs name
sqlite-utils search pets.db dogs cleo --nl

# a table that is not there
sqlite-utils rows pets.db birds || echo "exit code $?"
