#!/bin/sh
# Run every check that reads the code without running it, even if an earlier one fails.
set -u
cd "$(dirname "$0")/.."
bin=.venv/bin
failed=''

check() {
    name=$1
    shift
    if output=$("$@" 2>&1); then
        printf 'ok    %s\n' "$name"
    else
        printf '%s\nFAIL  %s: %s\n' "$output" "$name" "$*"
        failed="$failed, $name"
    fi
}

man_pages() (
    folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
    $bin/python scripts/man.py "$folder" && diff -r man "$folder"
)

check 'lint' $bin/ruff check --quiet .
check 'format' $bin/ruff format --quiet --check .
check 'types' $bin/mypy
check 'imports' $bin/lint-imports
check 'man pages' man_pages

[ -z "$failed" ] || { echo "failed: ${failed#, }" >&2; exit 1; }
