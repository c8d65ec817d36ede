"""The first process of a host that an engine created: keeps it alive, and ends it on time."""

from __future__ import annotations

AGED, IDLE = 71, 72
"""Exit codes of HOLD for a host past its maximum age, and for one that was idle for too long."""

# Arguments: the host's id, its lifetime and its idle timeout in whole seconds (0 for none), and its
# home or "". Time counts from the first start of the host: it may be stopped and started again. On
# first contact, mngr writes the path of the tmux socket to $home/tmux.socket. Activity is output on
# an agent's terminal or a change in its state directory; reading agents changes neither. With
# `serve` as the last argument, the tmux server is started here, because a server that a remote
# command starts may end with that command, as in Slurm with proctrack/cgroup.
HOLD = r"""
id=$1 lifetime=$2 idle=$3 home=${4:-${MNGR_HOST_DIR:-$HOME/.mngr}} serve=${5:-} socket=
case $home in "~/"*) home=$HOME/${home#"~/"} ;; esac
umask 077
mkdir -p "$home"  # if this fails, the host lives until mngr has told why
began=$home/.began.$id seen=$home/.seen.$id next=$home/.seen.$id.next
# The host's clock can be wrong, and be corrected while agents are at work.
ticks() {
  tick=$(date +%s)
  [ ! -r /proc/uptime ] || { read -r tick _ < /proc/uptime; tick=${tick%.*}; }
}
ticks; active=$tick shown=
[ -s "$began" ] || date +%s > "$began"
read -r start < "$began" || start=$(date +%s)
ours() { tmux -u -S "$socket" "$@" 2> /dev/null; }
finish() {
  trap '' TERM INT
  [ -z "$socket" ] || ours kill-server
  for each in $(grep -lsF -- "MNGR_HOST_DIR=$home" /proc/[0-9]*/environ); do
    pid=${each#/proc/} pid=${pid%/environ}
    [ "$pid" = "$$" ] || ! tr '\0' '\n' < "$each" | grep -qxF -- "MNGR_HOST_DIR=$home" ||
      kill -KILL "$pid"
  done 2> /dev/null
  exit "$1"
}
trap 'finish 0' TERM INT
find_socket() {
  [ -z "$socket" ] && [ -s "$home/tmux.socket" ] && read -r socket < "$home/tmux.socket" || return
  [ -z "$serve" ] || {
    mkdir -p -m 700 "${socket%/*}"
    env -i HOME="$HOME" PATH="$PATH" SHELL="${SHELL:-/bin/sh}" LANG="${LANG:-C.UTF-8}" \
      TERM=xterm-256color tmux -u -S "$socket" -f "$home/tmux.conf" \
      start-server ';' set -g exit-empty off
  }
}
# Two files are used alternately, because a full disk has no room for another one.
look() {
  if touch "$next" 2> /dev/null; then
    [ -z "$(find "$home/agents" -newer "$seen" 2> /dev/null | head -n 1)" ] || active=$tick
    last=$seen seen=$next next=$last
  fi
  last=$(ours list-panes -a -F '#{window_activity}' | sort -n | tail -n 1)
  [ "$last" = "$shown" ] || active=$tick shown=$last
}
touch "$seen" "$next"
nap=15
for each in "$lifetime" "$idle"; do
  [ "$each" -eq 0 ] || [ "$each" -gt 150 ] || nap=1
done
while :; do
  find_socket
  [ "$lifetime" -eq 0 ] || [ $(($(date +%s) - start)) -lt "$lifetime" ] || finish 71
  if [ "$idle" -gt 0 ]; then ticks; look; [ $((tick - active)) -lt "$idle" ] || finish 72; fi
  # Before the first agent, mngr may be about to create it.
  if [ -z "$socket" ]; then sleep 0.2 & else sleep "$nap" & fi
  wait $!
done
"""


def ended(code: int) -> str:
    """Return why a host's first process ended, if its exit code is one of mngr's."""
    return {AGED: "reached its --max-age", IDLE: "idle for its --idle-timeout"}.get(code, "")


def words(host_id: str, lifetime: float | None, idle: float | None, *more: str) -> list[str]:
    """Return the command that keeps a host alive."""
    seconds = [str(max(1, round(each))) if each else "0" for each in (lifetime, idle)]
    return ["sh", "-c", HOLD, "mngr", host_id, *seconds, *more]
