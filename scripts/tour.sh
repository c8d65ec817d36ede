#!/bin/sh
# A one-minute tour of mngr in a temporary home and repository. It does not touch your files.
set -eu
exec 2>&1 # one stream, so that notes appear after the commands that printed them

root=$(cd "$(dirname "$0")/.." && pwd -P)
PATH=$root/.venv/bin:$PATH
world=$(mktemp -d "${TMPDIR:-/tmp}/mngr-demo.XXXXXX")
export MNGR_HOST_DIR="$world/home" MNGR__STOP__GRACE=2s
unset MNGR_AGENT_ID TMUX

finish() {
    code=$?
    mngr list --ids | mngr destroy --force --quiet - >/dev/null 2>&1 || :
    rm -rf "$world"
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Pause only on a terminal, to give time to read.
if [ -t 1 ]; then pause=${DEMO_PAUSE:-1.5} bold=$(printf '\033[1m') dim=$(printf '\033[2m') plain=$(printf '\033[0m')
else pause=0 bold='' dim='' plain=''; fi

caption() {
    printf '\n%s%s%s\n' "$bold" "$*" "$plain"
    sleep "$pause"
}
# Show a command as you would type it, then run it.
show() {
    printf '%s$ %s%s\n' "$dim" "$*" "$plain"
    eval "$@"
}

mkdir "$world/shop" && cd "$world/shop"
git init -q && printf 'apples\npears\n' > stock.txt && git add . &&
    git -c user.name=demo -c user.email=demo@example.com commit -qm 'open the shop'

caption 'A repository, and three agents in it. Each gets its own branch and work directory.'
show "mngr create counter -- sh -c 'wc -l stock.txt; exit 0'"
show "mngr create broken -- sh -c 'echo no such shelf >&2; exit 3'"
show "mngr create clerk --label team=till -- sh -c 'while read line; do echo \"\$line\" >> stock.txt; echo \"noted: \$line\"; done'"

caption 'mngr shows the state of each agent, with the reason.'
show "mngr list --fields name,state,state_reason,labels"

caption 'Send a message. "delivered" means that the program has read it.'
show "mngr message clerk -m 'plums'"
show "mngr capture clerk"

caption 'Run a command in the work directory of an agent.'
show "mngr exec clerk 'git diff --stat'"

caption 'Wait for agents to finish: counter is DONE, broken has FAILED with exit code 3.'
show "mngr wait counter broken DONE FAILED --timeout 20"

caption 'Destroy an agent. clerk has uncommitted changes, so mngr refuses without --force.'
printf '%s$ mngr destroy clerk%s\n' "$dim" "$plain"
if mngr destroy clerk --headless; then echo 'this should have been refused' >&2; exit 1; fi
show "mngr destroy clerk --force"
show "mngr list --fields name,state"

caption 'Nothing is lost: a destroyed agent is in the trash until you empty it.'
show "mngr restore clerk"
show "mngr exec clerk 'tail -n 1 stock.txt'"
show "mngr start clerk"
show "mngr list --fields name,state,state_reason"

caption 'For scripts, use JSON, templates and filters.'
show "mngr list --include 'state == \"FAILED\"' --format '{name} ended with {exit_code}'"

caption 'To start an agent in your own repository:  mngr create NAME -- COMMAND'
