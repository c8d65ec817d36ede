#!/bin/sh
# codespell: finds words that are often written wrongly.

# FINDING

# what is wrong here?
codespell notes.txt || echo "exit code $?"

# a word that just came to mind
echo "the end of teh day" | codespell -

# how many are there?
codespell --count notes.txt

# each with a line before and after it
codespell --context 1 notes.txt

# a whole folder, but for some files
codespell --skip '*.min.js' src

# MEANING IT

# a word that is right here
codespell --ignore-words-list teh notes.txt

# words of your own, beside those it knows
echo "colr->colour" > mine.txt
echo "teh colr" | codespell --dictionary mine.txt --dictionary - -

# the same for everybody: say it in a file
printf '[codespell]\nignore-words-list = teh\n' > setup.cfg
codespell notes.txt

# REPAIRING

# put all of it right
codespell --write-changes notes.txt

# be asked about each
codespell --interactive 1 --write-changes src/post.c
