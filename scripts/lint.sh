#!/bin/sh
# Every check that reads the code without running it. All of them run, whatever fails first.
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

check 'lint' $bin/ruff check --quiet .
check 'format' $bin/ruff format --quiet --check .
check 'types' $bin/mypy
check 'imports' $bin/lint-imports
check 'man pages' $bin/python -m mngr.cli.app.manual --check man

[ -z "$failed" ] || { echo "failed: ${failed#, }" >&2; exit 1; }
