#!/bin/sh
# dotenv: settings in a file, for the programs of one project.

# === Keeping settings ===

# keep a setting in .env
dotenv set COLOUR green

# ask for one
dotenv get COLOUR

# all of them
dotenv list

# all of them, for a program
dotenv list --format=json

# forget one
dotenv unset COLOUR

# === Using settings ===

# start a program that sees them
dotenv run -- sh -c 'echo "the sky is $COLOUR"'

# what is set outside may win
COLOUR=red dotenv run --no-override -- printenv COLOUR

# another file for another place
dotenv --file staging.env set COLOUR blue
dotenv --file staging.env run -- printenv COLOUR

# === When something is missing ===

# the program's exit code is ours
dotenv run -- sh -c 'exit 7' || echo "exit code $?"

# nothing of that name
dotenv get NOTHING || echo "exit code $?"
