"""tmux: the only module that builds its argv. Everything runs on our own server.

Targets are `=name` (a bare name matches by prefix and may hit the wrong agent) or pane ids.
"""

from __future__ import annotations

import zlib

from mngr import quoting
from mngr.state import Pane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MINIMUM = (3, 2)
NOT_INSTALLED = 69
"""What our scripts exit with when there is no tmux."""

CONF = """\
# Written by mngr for its own server. Your own settings for it go into tmux.user.conf beside it.
set -g update-environment ""
set -g remain-on-exit on
set -gq remain-on-exit-format ""
set -g default-terminal "screen-256color"
set -g history-limit {history}
set -g default-size {width}x{height}
set -g focus-events on
set -g escape-time 10
set -g set-titles on
set -g set-titles-string "#{{?@mngr_name,#{{@mngr_name}},#S}}"
set -g status-left-length 64
set -g status-left "[#{{?@mngr_name,#{{@mngr_name}},#S}}] "
set -g status-right "detach: C-b d"
source-file -q "{home}/tmux.user.conf"
"""


def socket_path(home: str, uid: int) -> str:
    """Short, because a socket's path may hold only about 104 bytes; one per home."""
    raw = home.encode("utf-8", "surrogateescape")
    return f"/tmp/mngr-{uid}/{zlib.crc32(raw):08x}{zlib.crc32(raw[::-1]):08x}"


def conf(home: str, width: int, height: int, history: int) -> bytes:
    text = CONF.format(home=home.replace('"', '\\"'), width=width, height=height, history=history)
    return text.encode("utf-8", "surrogateescape")


def command(socket: str, *args: str) -> list[str]:
    return ["tmux", "-u", "-S", socket, *args]


PANE_FIELDS = (
    "session_name pane_id pane_pid pane_dead pane_dead_time pane_tty window_activity pane_in_mode "
    "window_name"
).split()


def list_panes(socket: str) -> list[str]:
    return command(socket, "list-panes", "-a", "-F", _format(PANE_FIELDS))


def _format(fields: Sequence[str]) -> str:
    return "\t".join("#{" + field + "}" for field in fields)


def parse_panes(text: str) -> dict[str, list[Pane]]:
    """Panes by session; the window name comes last because a user may put a tab in it."""
    panes: dict[str, list[Pane]] = {}
    for row in text.splitlines():
        parts = row.split("\t", len(PANE_FIELDS) - 1)
        if len(parts) == len(PANE_FIELDS):
            session, pane_id, pid, dead, dead_time, tty, activity, in_mode, window = parts
            pane = Pane(
                session=session,
                pane_id=pane_id,
                pid=int(pid or 0),
                dead=dead == "1",
                dead_time=float(dead_time or 0),
                tty=tty,
                activity=float(activity or 0),
                in_mode=in_mode not in ("", "0"),
                window=window,
            )
            panes.setdefault(session, []).append(pane)
    return panes


def capture(socket: str, pane: str, *, full: bool, ansi: bool) -> list[str]:
    options = [*(["-e"] if ansi else []), *(["-S", "-"] if full else [])]
    return command(socket, "capture-pane", "-p", "-J", *options, "-t", pane)


def attach(socket: str, session: str, *, read_only: bool = False) -> list[str]:
    return command(socket, "attach-session", *(["-r"] if read_only else []), "-t", f"={session}")


def list_clients(socket: str, session: str) -> list[str]:
    return command(socket, "list-clients", "-t", f"={session}", "-F", "#{client_name}")


def switch_client(socket: str, client: str, session: str) -> list[str]:
    return command(socket, "switch-client", "-c", client, "-t", f"={session}")


def set_name(socket: str, session: str, name: str) -> list[str]:
    return command(socket, "set-option", "-q", "-t", f"={session}:", "@mngr_name", name)


def kill_session(socket: str, session: str) -> list[str]:
    return command(socket, "kill-session", "-t", f"={session}")


def paste(socket: str, pane: str, buffer: str) -> list[str]:
    """Load stdin and paste it, unless the pane is dead: one call, so it cannot die in between.

    Pasting into a dead pane crashes tmux 3.3a and every agent with it; copy-mode would swallow
    the keys. Prints `pasted` or `dead`.
    """
    target = quoting.quote(pane)
    live = f"copy-mode -q -t {target} ; paste-buffer -p -d -b {buffer} -t {target}"
    return command(
        socket,
        *("load-buffer", "-b", buffer, "-", ";"),
        *("if-shell", "-F", "-t", pane, "#{pane_dead}"),
        f"delete-buffer -b {buffer} ; display-message -p dead",
        f"{live} ; display-message -p pasted",
    )


def press_enter(socket: str, pane: str) -> list[str]:
    """A call of its own: within one, tmux would hand over text and key as a single paste."""
    target = quoting.quote(pane)
    return command(
        socket,
        *("if-shell", "-F", "-t", pane, "#{pane_dead}", "display-message -p dead"),
        f"copy-mode -q -t {target} ; send-keys -t {target} Enter ; display-message -p pressed",
    )


def new_session(
    session: str,
    name: str,
    work_dir: str,
    argv: Sequence[str],
    *,
    size: tuple[int, int],
    windows: Sequence[tuple[str, Sequence[str]]],
    pipe_to: str = "",
) -> list[str]:
    """The words after `tmux`: the session, its extra windows and options, in one call.

    One call runs without a turn of the server's loop, so not a byte of output precedes the pipe
    and no fast command is gone before its windows exist.
    """
    width, height = size
    words = [
        *("new-session", "-d", "-P", "-F", "#{pid}", "-s", session, "-n", "agent"),
        *("-x", str(width), "-y", str(height), "-c", work_dir, "--", *_plain(argv)),
        *(";", "set-option", "-q", "-t", f"={session}:", "@mngr_name", name),
    ]
    if pipe_to:
        words += [";", "pipe-pane", "-t", f"={session}:agent", _plain([pipe_to])[0]]
    for title, window_argv in windows:
        words += [";", "new-window", "-d", "-t", f"={session}:", "-n", title, "-c", work_dir]
        words += ["--", *_plain(window_argv)]
    return words


def _plain(argv: Sequence[str]) -> list[str]:
    """tmux takes a word that ends in `;` for a separator unless it is escaped."""
    return [word[:-1] + "\\;" if word.endswith(";") else word for word in argv]


# --- scripts for the agent's host: POSIX sh, no Python there ---------------------------------

CLEAN = r"""
clean() {
  env -i HOME="${HOME:-/}" PATH="$PATH" SHELL="${SHELL:-/bin/sh}" LANG="${LANG:-C.UTF-8}" \
    ${USER+"USER=$USER"} ${LOGNAME+"LOGNAME=$LOGNAME"} ${TZ+"TZ=$TZ"} ${TMPDIR+"TMPDIR=$TMPDIR"} "$@"
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

# Processes that changed session keep the mark in their environment (readable on Linux).
PROCESSES = r"""
agent_pids() {
  if [ -d /proc/self ]; then
    for stat_file in /proc/[0-9]*/stat; do
      IFS= read -r stat_line < "$stat_file" || continue
      set -- ${stat_line##*) }
      case " $leaders " in *" $4 "*)
        [ "$1" = Z ] || { stat_file=${stat_file#/proc/}; echo "${stat_file%/stat}"; } ;;
      esac
    done 2>/dev/null
    grep -ls "MNGR_AGENT_ID=$id" /proc/[0-9]*/environ | sed 's|^/proc/||; s|/environ$||'
  else
    ps -A -o pid=,tty= | while read -r each tty; do
      case " $ttys " in *" $tty "*|*" /dev/$tty "*) echo "$each" ;; esac
    done
  fi
}
# Whoever asked may run inside the agent itself: spare this shell and its parent.
others() {
  for each in $(agent_pids | sort -un); do
    case " $$ $PPID $spared " in *" $each "*) ;; *) echo "$each" ;; esac
  done
}
send() { each_signal=$1; shift; [ $# -eq 0 ] || kill "-$each_signal" "$@" 2>/dev/null; }
gone_within() {
  until=$(($(date +%s) + $1))
  while [ -n "$(others)" ]; do
    [ "$(date +%s)" -lt "$until" ] || return 1
    sleep 0.05
  done
}
# TERM; then HUP, which interactive shells heed; then KILL, the reporting launchers last.
end_processes() {
  send TERM $(others)
  gone_within 1 && return 0
  send HUP $(others)
  gone_within "$1" && return 0
  spared=$leaders; send KILL $(others); gone_within 2
  spared=; gone_within 1 || send KILL $(others)
}
"""

RESTORE = "home=$1 socket=$2\n" + FUNCTIONS + "restore_socket\n"

# Save the screen, end every process of the agent, then its session.
STOP = (
    "home=$1 socket=$2 id=$3 grace=$4 spared=\n"
    + PROCESSES
    + r"""
dir=$home/agents/$id
panes=$(tmux -u -S "$socket" list-panes -s -t "=$id" -F '#{pane_pid} #{pane_tty}' 2>/dev/null)
leaders=$(printf '%s\n' "$panes" | cut -d ' ' -f 1 | tr '\n' ' ')
ttys=$(printf '%s\n' "$panes" | cut -d ' ' -f 2 | tr '\n' ' ')
[ -n "$panes" ] &&
  tmux -u -S "$socket" capture-pane -p -e -J -S - -t "=$id:agent" > "$dir/.screen.$$" 2>/dev/null &&
  mv -f "$dir/.screen.$$" "$dir/screen.txt"
rm -f "$dir/.screen.$$"
end_processes "$grace"
[ -z "$panes" ] || tmux -u -S "$socket" kill-session -t "=$id" 2>/dev/null
[ -z "$(others)" ]
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
pid=$(ours "$@") || exit 1
server=
[ -f "$home/tmux.json" ] && IFS= read -r server < "$home/tmux.json"
case $server in
  *"\"pid\":$pid,"*) ;;
  *) printf '{"pid":%s,"start":"%s"}\n' "$pid" "$(process_start "$pid")" > "$home/.tmux.json.$$" &&
     mv -f "$home/.tmux.json.$$" "$home/tmux.json" ;;
esac
printf '%s\n' "$event" >> "$dir/events.jsonl"
tries=0
while :; do
  for file in "$dir/started" "$dir/exit"; do
    if [ -f "$file" ] && IFS= read -r line < "$file"; then
      case $line in *"\"$launch\""*) exit 0 ;; esac
    fi
  done
  tries=$((tries + 1)); [ "$tries" -lt 1500 ] || { echo "the launcher did not report within 15 s" >&2; exit 1; }
  sleep 0.01
done
"""
)
