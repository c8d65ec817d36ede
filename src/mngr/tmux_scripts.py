"""What tmux needs done on the agent's own host, in POSIX sh: there may be no Python there."""

from __future__ import annotations

NOT_INSTALLED = 69
"""What LAUNCH exits with when there is no tmux."""

CLEAN = r"""
clean() {
  env -i HOME="${HOME:-/}" PATH="$PATH" SHELL="${SHELL:-/bin/sh}" LANG="${LANG:-C.UTF-8}" \
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
    echo "cannot make $socket_dir for the tmux socket" >&2; return 1; }
  [ -O "$socket_dir" ] && [ ! -h "$socket_dir" ] || {
    echo "$socket_dir belongs to somebody else" >&2; return 1; }
}
# If a temp cleaner took the socket, the server lives on and can make it anew.
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

# Looking at every process costs some 20 ms with a thousand of them, so it is done once to find the
# agent's and once more to see that none is left; in between only those found are watched.
# Processes that changed session keep the mark in their environment (readable on Linux).
PROCESSES = r"""
agent_pids() {
  if [ -d /proc/self ]; then
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v leaders=" $leaders " '
      { pid = $1; sub(/^.*\) /, ""); if ($1 != "Z" && index(leaders, " " $4 " ")) print pid }'
    printf 'MNGR_AGENT_ID=%s\n' $ids | grep -lsFf - /proc/[0-9]*/environ |
      sed 's|^/proc/||; s|/environ$||'
  else
    ps -A -o pid=,tty= | while read -r each tty; do
      case " $ttys " in *" $tty "*|*" /dev/$tty "*) echo "$each" ;; esac
    done
  fi
}
# Whoever asked may run inside the agent itself: spare this shell and its parent.
find_others() {
  found=
  for each in $(agent_pids | sort -un); do
    case " $$ $PPID $spared " in *" $each "*) ;; *) found="$found $each" ;; esac
  done
}
still_there() {
  living=
  for each in $found; do
    kill -0 "$each" 2>/dev/null || continue
    if [ -d /proc/self ]; then
      { IFS= read -r stat_line < "/proc/$each/stat"; } 2>/dev/null || continue
      case ${stat_line##*) } in Z*) continue ;; esac
    fi
    living="$living $each"
  done
  found=$living
  [ -n "$found" ]
}
# Signal what is there, and wait; false when something is left, also something new.
signal_and_wait() {
  find_others
  [ -n "$found" ] || return 0
  kill "-$1" $found 2>/dev/null
  until=$(($(date +%s) + $2))
  while still_there; do
    [ "$(date +%s)" -lt "$until" ] || return 1
    sleep 0.03
  done
  find_others
  [ -z "$found" ]
}
# TERM; then HUP, which interactive shells heed; then KILL, the reporting launchers last.
end_processes() {
  signal_and_wait TERM 1 && return 0
  spared=$leaders
  signal_and_wait HUP "$1" || signal_and_wait KILL 2
  spared=
  signal_and_wait TERM 1 || signal_and_wait KILL 2
}
"""

RESTORE = "home=$1 socket=$2\n" + FUNCTIONS + "restore_socket\n"

# Save the screens, end every process of these agents, then their sessions.
STOP = (
    "home=$1 socket=$2 grace=$3; shift 3; ids=$* spared= leaders= ttys= sessions=\n"
    + PROCESSES
    + r"""
ours() { tmux -u -S "$socket" "$@" 2>/dev/null; }
panes=$(ours list-panes -a -F '#{session_name} #{pane_pid} #{pane_tty}')
while read -r session pid tty; do
  case " $ids " in *" $session "*)
    leaders="$leaders $pid" ttys="$ttys $tty"
    case " $sessions " in *" $session "*) ;; *) sessions="$sessions $session" ;; esac ;;
  esac
done <<END
$panes
END
for id in $sessions; do
  dir=$home/agents/$id
  ours capture-pane -p -e -J -S - -t "=$id:agent" > "$dir/.screen.$$" &&
    mv -f "$dir/.screen.$$" "$dir/screen.txt" || rm -f "$dir/.screen.$$"
done
end_processes "$grace"; ended=$?
for id in $sessions; do ours kill-session -t "=$id"; done
exit "$ended"
"""
)

# The server keeps the environment of whoever started it, so it gets next to none.
LAUNCH = (
    r"""
home=$1 socket=$2 id=$3 launch=$4 event=$5; shift 5
dir=$home/agents/$id
"""
    + CLEAN
    + FUNCTIONS
    + r"""
ours() { clean TERM=xterm-256color tmux -u -S "$socket" -f "$home/tmux.conf" "$@"; }
command -v tmux > /dev/null || exit 69
in_socket_dir || exit 1
[ -S "$socket" ] || restore_socket || :
[ -f "$dir/started" ] && ours kill-session -t "=$id" 2>/dev/null
printf '%s\n' "$event" > "$dir/begun" || exit 1
pid=$(ours "$@") || exit 1
server=
[ -f "$home/tmux.json" ] && IFS= read -r server < "$home/tmux.json"
case $server in
  *"\"pid\":$pid,"*) ;;
  *) printf '{"pid":%s,"start":"%s"}\n' "$pid" "$(process_start "$pid")" > "$home/.tmux.json.$$" &&
     mv -f "$home/.tmux.json.$$" "$home/tmux.json" ;;
esac
tries=0
while :; do
  for file in "$dir/started" "$dir/exit"; do
    if [ -f "$file" ] && IFS= read -r line < "$file"; then
      case $line in *"\"$launch\""*) exit 0 ;; esac
    fi
  done
  tries=$((tries + 1))
  [ "$tries" -lt 1500 ] || { echo "the launcher did not report within 15 s" >&2; exit 1; }
  sleep 0.01
done
"""
)
