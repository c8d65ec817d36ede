"""Shell scripts that use tmux on the agent's host, in POSIX sh because Python may be missing."""

from __future__ import annotations

import zlib

from mngr.hosts import agent_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NOT_INSTALLED, GONE = 69, 75
"""Exit codes of LAUNCH: tmux is not installed; the agent was destroyed in the meantime."""

# With direct=exec, `clean` replaces the subshell in which it runs, which saves a process.
CLEAN = r"""
direct=
clean() {
  $direct env -i HOME="${HOME:-/}" PATH="$PATH" SHELL="${SHELL:-/bin/sh}" LANG="${LANG:-C.UTF-8}" \
    ${USER+"USER=$USER"} ${LOGNAME+"LOGNAME=$LOGNAME"} ${TZ+"TZ=$TZ"} \
    ${TMPDIR+"TMPDIR=$TMPDIR"} "$@"
}
"""

FUNCTIONS = r"""
process_start() {
  if [ -r "/proc/$1/stat" ]; then
    IFS= read -r stat_line < "/proc/$1/stat" || return 1
    set -- ${stat_line##*) }
    echo "${20}"
  elif [ ! -d /proc/self ]; then
    LC_ALL=C ps -o lstart= -p "$1"
  fi
}
in_socket_dir() {
  socket_dir=${socket%/*}
  [ -d "$socket_dir" ] || mkdir -m 700 "$socket_dir" 2>/dev/null || [ -d "$socket_dir" ] || {
    echo "cannot create $socket_dir for the tmux socket" >&2; return 1; }
  [ -O "$socket_dir" ] && [ ! -h "$socket_dir" ] || {
    echo "$socket_dir belongs to another user" >&2; return 1; }
}
# If a cleaner of /tmp removed the socket, the server is still running and can create it again.
restore_socket() {
  [ -S "$socket" ] && return 0
  [ -f "$home/tmux.json" ] && IFS= read -r server < "$home/tmux.json" || return 1
  pid=${server#*\"pid\":}; pid=${pid%%[!0-9]*}
  start=${server#*\"start\":\"}; start=${start%%\"*}
  [ -n "$pid" ] && [ -n "$start" ] && [ "$(process_start "$pid")" = "$start" ] || return 1
  in_socket_dir && kill -USR1 "$pid" || return 1
  tries=0
  until [ -S "$socket" ]; do
    tries=$((tries + 1)); [ "$tries" -lt 100 ] || return 1
    sleep 0.02
  done
}
"""

# Every descendant inherits the soft limit on resident memory, and Linux does not enforce it. So a
# number unique to the agent is a mark that survives a new session, a cleared environment, closed
# files and a second fork. Without /proc it could not be read.
MARK = """[ ! -r /proc/self/limits ] || ulimit -S -m {mark} 2>/dev/null
"""
# For processes that an agent starts but that are not its own: mngr's scripts, and the tmux server.
UNMARK = """
ulimit -S -m unlimited 2>/dev/null || ulimit -S -m "$(ulimit -H -m)" 2>/dev/null || :
"""


def mark(agent_id: str) -> int:
    """Return the mark in KiB, as for `ulimit`; larger than any machine's memory."""
    data = agent_id.encode()
    return (1 << 49) + ((zlib.crc32(data[::-1]) & 0xFFFF) << 32) + zlib.crc32(data)


def patterns(ids: Sequence[str]) -> str:
    """Return patterns of an agent's environment or limits, one per line."""
    marks = (f"MNGR_AGENT_ID={each}\n{mark(each) * 1024} " for each in ids)
    return "\n".join(marks)


# Reading every process takes some 20 ms with a thousand of them. So it is done once to find the
# agent's processes and once more, by their marks only, to find new ones; in between only those
# found are watched.
PROCESSES = (
    UNMARK
    + r"""
marked=
marked_pids() { grep -lsF -- "$patterns" /proc/[0-9]*/environ /proc/[0-9]*/limits; }
agent_pids() {
  if [ -d /proc/self ]; then
    [ -z "$1" ] || awk -v leaders=" $1 " 'BEGIN {
      for (each = 1; each < ARGC; each++) {
        if ((getline line < ARGV[each]) > 0) {
          pid = line + 0; sub(/^.*\) /, "", line); split(line, field, " ")
          if (index(leaders, " " field[4] " ")) print pid
        }
        close(ARGV[each])
      }
    }' /proc/[0-9]*/stat
    if [ -n "$marked" ]; then printf '%s\n' "$marked"; else marked_pids; fi
  else
    ps -A -o pid=,ppid=,tty= | awk -v ttys=" $ttys " '
      { parent[$1] = $2; mine[$1] = index(ttys, " " $3 " ") || index(ttys, " /dev/" $3 " ") }
      END {
        do {
          more = 0
          for (pid in parent)
            if (!mine[pid] && mine[parent[pid]]) more = mine[pid] = 1
        } while (more)
        for (pid in parent) if (mine[pid]) print pid
      }'
  fi
}
lives() {
  kill -0 "$1" 2>/dev/null || return 1
  [ -d /proc/self ] || return 0
  { IFS= read -r stat_line < "/proc/$1/stat"; } 2>/dev/null || return 1
  case ${stat_line##*) } in Z*) return 1 ;; esac
}
# The agent itself may have called mngr: do not end this shell and its parent.
find_others() {
  found=
  for each in $(agent_pids "$1"); do
    each=${each#/proc/}; each=${each%%/*}
    case " $$ $PPID $spared$found " in *" $each "*) continue ;; esac
    ! lives "$each" || found="$found $each"
  done
}
still_there() {
  living=
  for each in $found; do ! lives "$each" || living="$living $each"; done
  found=$living
  [ -n "$found" ]
}
# Work that scripts do while processes end, and while the last search for processes runs.
while_ending() { :; }
while_looking() { :; }
# Signal all processes found and wait; fail if any are left, including new ones.
signal_and_wait() {
  find_others "$leaders"
  marked=
  [ -n "$found" ] || return 0
  kill "-$1" $found 2>/dev/null
  while_ending
  # Most end within some milliseconds, so the first pauses are short.
  naps=0 nap=0.001
  while still_there; do
    [ "$naps" -lt $(($2 * 80 + 8)) ] || return 1
    naps=$((naps + 1)); sleep "$nap"; [ "$naps" -lt 8 ] || nap=0.01
  done
  while_looking
  find_others ""
  [ -z "$found" ]
}
# TERM, then HUP, which interactive shells obey, then KILL; launchers last, because they report.
end_processes() {
  signal_and_wait TERM 1 && return 0
  spared=$leaders
  signal_and_wait HUP "$1" || signal_and_wait KILL 2
  spared=
  signal_and_wait TERM 1 || signal_and_wait KILL 2
}
"""
)

RESTORE = "home=$1 socket=$2\n" + FUNCTIONS + "restore_socket\n"

# tmux 3.3a loses about one SIGCHLD in fifty of programs that end at once: their panes are dead, but
# have no exit status until the server looks at its children again, which this makes it do.
COLLECT = 'kill -CHLD "$(tmux -u -S "$socket" display-message -p "#{pid}")" 2>/dev/null'

# Save the screens, end every process of these agents, then their sessions. Arguments: each id with
# the event to record, which may be empty. Screens are written outside the agents' folders, where no
# agent can have put a pipe, and then renamed. tmux reads its commands from a pipe: as arguments,
# those for a hundred agents would be too long. Print the id and the launch of each session that was
# ended.
STOP = (
    "home=$1 socket=$2 grace=$3 patterns=$4; shift 4; ids= spared= leaders= ttys= sessions=\n"
    + PROCESSES
    + agent_files.FUNCTIONS
    + r"""
told() { tmux -u -S "$socket" source-file - 2>/dev/null; }
look() {
  echo "list-panes -a -F '#{pane_dead}#{pane_pid} #{pane_tty} #{@mngr_launch} #{session_name}'"
  for id in $ids; do
    screen=.screen.$id.$$
    echo "capture-pane -e -J -S - -b $screen -t =$id:agent" \
      "; save-buffer -b $screen $screen ; delete-buffer -b $screen"
  done
}
leave() { for id in $sessions; do echo "kill-session -t =$id"; done; }
while_ending() {
  for id in $screens; do
    screen=.screen.$id.$$
    [ -s "$screen" ] || { rm -f "$screen"; continue; }
    [ ! -d "agents/$id/screen.txt" ] && mv -f "$screen" "agents/$id/screen.txt" || rm -f "$screen"
  done 2>/dev/null
  screens=
}
while_looking() {
  [ -z "$sessions" ] || leave | told &
  sessions=
}
cd "$home" || exit 1
for word in "$@"; do case $word in agent-*) ids="$ids $word" ;; esac; done
# Not by a here-document, which some shells keep on a disk that may be full. While tmux answers, the
# marked processes are found; they are printed last, so that no line of either is torn.
panes=$(
  look | told &
  [ ! -d /proc/self ] || marked=$(marked_pids)
  wait
  printf '%s\n' "$marked"
)
IFS='
'
set -f
for line in $panes; do
  case $line in /*) marked="$marked $line"; continue ;; esac
  pid=${line%% *} line=${line#* }; tty=${line%% *} line=${line#* }; session=${line#* }
  # The terminal of a dead pane may have another owner now. Its pid has one if there is a process
  # with that number: it is not given again before the last process of the session has ended.
  case $pid in
    0*) pid=${pid#0} ;;
    1*) pid=${pid#1} tty=; [ ! -d "/proc/$pid" ] || pid= ;;
  esac
  case "$ids " in *" $session "*)
    leaders="$leaders $pid" ttys="$ttys $tty"
    case "$sessions " in *" $session "*) continue ;; esac
    sessions="$sessions $session"
    printf '%s %s\n' "$session" "${line%% *}" ;;
  esac
done
set +f
unset IFS
screens=$sessions
end_processes "$grace"; ended=$?
while_ending
while_looking
wait
[ "$ended" -eq 0 ] || exit "$ended"
for word in "$@"; do
  case $word in agent-*) id=$word ;; ?*) note "agents/$id/events.jsonl" "$word" ;; esac
done
exit 0
"""
)

# The server keeps the environment and limits of the process that starts it, so it is started with a
# minimal environment. A new agent has no processes yet, so its patterns are empty.
LAUNCH = (
    r"""
home=$1 socket=$2 id=$3 grace=$4 patterns=$5; shift 5
dir=$home/agents/$id spared= leaders= ttys=
# Without a record, the agent was destroyed after its launch was recorded: remove the launch files.
for record in "$dir"/agent.[0-9]*.json; do
  [ -e "$record" ] || { rm -rf "$dir"; exit 75; }
  break
done
"""
    + PROCESSES
    + CLEAN
    + FUNCTIONS
    + agent_files.FUNCTIONS
    + r"""
ours() { clean TERM=xterm-256color tmux -u -S "$socket" -f "$home/tmux.conf" "$@"; }
command -v tmux > /dev/null || exit 69
in_socket_dir || exit 1
[ -S "$socket" ] || restore_socket || :
# A lost agent's program may have outlived its terminal: never run two of them.
if [ -n "$patterns" ]; then
  ours kill-session -t "=$id" 2>/dev/null
  end_processes "$grace" || { echo "some processes of its last launch did not end" >&2; exit 1; }
fi
plain "$dir/env" || { echo "$dir/env is not a regular file" >&2; exit 1; }
for file in "$dir/started" "$dir/exit"; do
  if [ -e "$file" ] || [ -h "$file" ]; then rm -rf "$dir/started" "$dir/exit" || exit 1; fi
done
panes=$(direct=exec; ours "$@") || exit 1
pid=${panes%%[!0-9]*} panes=${panes#*[!0-9]}
server=
[ -f "$home/tmux.json" ] && IFS= read -r server < "$home/tmux.json"
case $server in
  *"\"pid\":$pid,"*) ;;
  *) printf '{"pid":%s,"start":"%s"}\n' "$pid" "$(process_start "$pid")" > "$home/.tmux.json.$$" &&
     mv -f "$home/.tmux.json.$$" "$home/tmux.json" ;;
esac
# Both files were removed above, so an existing one is from this launch; it takes milliseconds.
tries=0 nap=0.001
until [ -e "$dir/started" ] || [ -e "$dir/exit" ]; do
  tries=$((tries + 1))
  [ "$tries" -lt 1500 ] || { echo "the launcher did not report within 15 s" >&2; exit 1; }
  sleep "$nap"; [ "$tries" -lt 8 ] || nap=0.01
done
printf '%s\n' "$panes"
"""
)
