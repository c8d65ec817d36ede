#!/bin/sh
# jot keeps short notes. This tour takes ten minutes; paste the commands as you go.
# Your notes live in ~/.jot, or in $JOT_HOME if you set it.

# GETTING STARTED

# see what jot can do
jot --help

# write your first note
jot add 'buy oat milk'

# quotes are optional as long as your shell leaves the words alone
jot add call the plumber about the tap

# a longer note can come from a pipe
printf 'packing list\ntent\nstove\n' | jot add -

# give a note tags and another day than today
jot add --tag home --tag garden --date 2026-03-14 'prune the apple tree'

# LOOKING AT NOTES

# list everything, oldest entry first
jot list

# only the two newest
jot list --last 2

# only what belongs to March; both days are included
jot list --since 2026-03-01 --until 2026-03-31

# only one tag
jot list --tag home

# the same for scripts, with the whole text of each note
jot list --json

# FINDING NOTES

# all words must occur, in any order; case does not matter
jot search TREE apple

# one of the words is enough, and only the count is wanted
jot search --any --count tree milk

# like grep, search exits with 1 when it finds nothing
jot search unicorn || echo 'no unicorns here'

# CHANGING NOTES

# add tags to a note that exists, and take one away again
jot tag 1 shop weekly
jot tag 1 --remove weekly

# see which tags you use, most used first
jot tag

# replace the text of a note
jot edit 1 'buy oat milk and bread'

# or open it in your editor; any program that changes a file will do
EDITOR='sed -i.bak s/oat/soy/' jot edit 1

# drop a note you no longer need
jot remove 2

# MOVING NOTES

# make a backup, one note per line
jot export --output backup.jsonl

# open your notes in a spreadsheet
jot export --format csv --output notes.csv

# read them as a page
jot export --format markdown | head -n 5

# bring a backup back; notes that are already here stay as they are
jot import backup.jsonl

# look before you import
jot import --dry-run backup.jsonl

# keep work and private notes apart
JOT_HOME=~/work-notes jot add 'prepare the review'
