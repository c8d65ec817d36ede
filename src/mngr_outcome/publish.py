"""`publish`: the script in an agent's state directory that writes `outcome.json`.

Plain sh, sed and awk: it runs on any host, in dash, busybox and the bash 3.2 of macOS.
"""

from __future__ import annotations

from mngr_outcome.outcome import BYTES_LIMIT, FILE

NAME = "publish"

HELP = """\
publish - report what you did, as your last step

usage: publish --attempted fix|improve|none --summary TEXT [more]

  --attempted fix       you fixed what made the test fail
  --attempted improve   you improved a test that passed already
  --attempted none      no change was required, or you could not make one
  --summary TEXT        what you did and why, for a person who reads only this
  --blocked REASON      why you could not finish
  --needs TEXT          what you require (a program, an account, a decision)
  --no-fix              with --blocked: nothing is missing, but you found no fix
  --test-added NODEID   a test that you added; repeatable
  --confusing COMMAND TRIED HAPPENED
                        a command, what you tried with it, and what happened instead; repeatable
  --task NAME, --try N  the task and the attempt; default: $MNGR_TMR_TASK and $MNGR_TMR_TRY

A TEXT or REASON may be - for stdin (once) or come from a file: --summary-file, --blocked-file,
--needs-file FILE. Commit first: your work is the current commit, and uncommitted or untracked
files are refused. Publishing again replaces the earlier outcome.

examples:
  git add -A && git commit -m 'Include the day itself in --since'
  "$MNGR_AGENT_STATE_DIR/publish" --attempted fix --summary 'a comparison left out the day itself'

  "$MNGR_AGENT_STATE_DIR/publish" --attempted none --summary 'the test requires pandoc' \\
      --blocked 'pandoc: command not found' --needs 'the program pandoc'
"""

# Text is converted to JSON byte by byte. Bytes that are not ASCII are kept, control bytes except
# tab and newline are removed, because JSON forbids them. printf adds the newline that awk removes,
# so that newlines at the end of the text are kept.
SCRIPT = r"""#!/bin/sh
# Writes outcome.json: what this agent did. See publish --help.
set -u
LC_ALL=C
export LC_ALL
umask 077

usage() { cat <<'END_OF_HELP'
@HELP@END_OF_HELP
}
wrong() { printf 'publish: %s; see publish --help\n' "$1" >&2; exit 2; }
refuse() { printf 'publish: %s\n' "$1" >&2; exit 1; }
tab=$(printf '\t')
quoted() {
  tr -d '\000-\010\013-\037\177' |
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e "s/$tab/\\\\t/g" |
    awk 'BEGIN { ORS = ""; print "\"" } NR > 1 { print "\\n" } { print } END { print "\"" }'
}
string() { printf '%s\n' "$1" | quoted; }
text() { if [ "$1" = - ]; then quoted; else string "$1"; fi; }
file() {
  if [ "$1" = - ]; then quoted; return; fi
  [ -f "$1" ] && [ -r "$1" ] || refuse "cannot read the file $1"
  quoted < "$1"
}
words() { [ "$1" -gt "$2" ] || wrong "$3 needs $4"; }

attempted= summary= blocked= needs= tests= confusing= obstacle=missing
task=${MNGR_TMR_TASK-} try=${MNGR_TMR_TRY-0}
while [ $# -gt 0 ]; do
  case $1 in
    --?*=*) option=${1%%=*} value=${1#*=}; shift; set -- "$option" "$value" "$@" ;;
  esac
  case $1 in
    -h | --help) usage; exit 0 ;;
    --confusing) words $# 3 "$1" 'COMMAND TRIED HAPPENED'
      confusing="$confusing,{\"command\":$(string "$2"),\"tried\":$(string "$3")"
      confusing="$confusing,\"happened\":$(string "$4")}"
      shift 4; continue ;;
    --no-fix) obstacle='no fix'; shift; continue ;;
    --attempted | --summary | --blocked | --needs | --test-added | --task | --try) ;;
    --summary-file | --blocked-file | --needs-file) ;;
    *) wrong "unknown word: $1" ;;
  esac
  words $# 1 "$1" 'a value'
  case $1 in
    --attempted) attempted=$2 ;;
    --summary) summary=$(text "$2") || exit ;;
    --blocked) blocked=$(text "$2") || exit ;;
    --needs) needs=$(text "$2") || exit ;;
    --summary-file) summary=$(file "$2") || exit ;;
    --blocked-file) blocked=$(file "$2") || exit ;;
    --needs-file) needs=$(file "$2") || exit ;;
    --test-added) tests="$tests,$(string "$2")" ;;
    --task) task=$2 ;;
    --try) try=$2 ;;
  esac
  shift 2
done

case $attempted in
  fix | improve | none) ;;
  '') wrong '--attempted fix, improve or none is missing' ;;
  *) wrong "--attempted is $attempted, not fix, improve or none" ;;
esac
[ -n "$summary" ] && [ "$summary" != '""' ] || wrong '--summary is missing'
case ${try:=0} in
  *[!0-9]* | 0?* | ???????*) wrong "--try is $try, not a number" ;;
esac
if [ -n "$blocked" ]; then
  blocked="{\"reason\":$blocked,\"needs\":${needs:-\"\"},\"obstacle\":\"$obstacle\"}"
elif [ -n "$needs" ] || [ "$obstacle" != missing ]; then
  wrong '--needs and --no-fix require --blocked REASON'
else
  blocked=null
fi

state=${MNGR_AGENT_STATE_DIR:-$(cd "$(dirname "$0")" && pwd)}
work=${MNGR_AGENT_WORK_DIR:-.}
head=$(git -C "$work" rev-parse --verify 'HEAD^{commit}' 2>/dev/null) ||
  refuse "there is no commit in $work"
dirty=$(git -C "$work" status --porcelain) || refuse "git status failed in $work"
if [ -n "$dirty" ]; then
  printf 'publish: these files are not committed; commit, remove or ignore them first:\n' >&2
  printf '%s\n' "$dirty" | sed -n -e 's/^.../  /' -e 1,30p >&2
  exit 1
fi

beside=$state/.outcome.$$
trap 'rm -f "$beside"' EXIT
{
  printf '{"schema":1,"task":%s,"try":%s' "$(string "$task")" "$try"
  printf ',"attempted":"%s","blocked":%s' "$attempted" "$blocked"
  printf ',"head":"%s","summary":%s' "$head" "$summary"
  printf ',"tests_added":[%s],"confusing":[%s]}\n' "${tests#,}" "${confusing#,}"
} > "$beside" || refuse "cannot write to $state"
size=$(($(wc -c < "$beside")))
[ "$size" -le @LIMIT@ ] ||
  refuse "this is $size bytes long and may be @LIMIT@ at most; shorten the texts"
mv -f "$beside" "$state/@FILE@" || refuse "cannot write $state/@FILE@"
trap - EXIT
printf 'published: %s, commit %s\n' "$attempted" "$head"
"""


def scripts() -> dict[str, bytes]:
    """Return the script by its name, for `CreateRequest.scripts`."""
    filled = {"HELP": HELP, "LIMIT": str(BYTES_LIMIT), "FILE": FILE}
    text = SCRIPT
    for name, value in filled.items():
        text = text.replace(f"@{name}@", value)
    return {NAME: text.encode()}
