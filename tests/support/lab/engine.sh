#!/bin/sh
# The first process of a Docker engine for tests; ends with the last process that uses it.
#   engine.sh FOLDER USERS
# Runs as root in new mount, pid, network and ipc namespaces, so all it started ends with it. Each
# user holds a shared lock on the file USERS; once this script can have it alone, none is left.
# While FOLDER/down exists the engine is down.
set -u
folder=$1
exec 9< "$2"
mount --make-rprivate / && mount -t proc proc /proc || exit 1
ip link set lo up
while :; do
  dockerd --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/pid" \
    -H "unix://$folder/docker.sock" --live-restore --iptables=false --ip6tables=false \
    --bridge=none >> "$folder/log" 2>&1 < /dev/null 9<&- &
  engine=$!
  while [ ! -e "$folder/down" ] && kill -0 "$engine" 2> /dev/null; do
    ! flock -n -x 9 || exit 0
    sleep 0.2
  done
  kill "$engine" 2> /dev/null
  wait "$engine"
  rm -f "$folder/docker.sock"
  while [ -e "$folder/down" ]; do
    ! flock -n -x 9 || exit 0
    sleep 0.1
  done
done
