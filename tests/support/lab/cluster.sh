#!/bin/sh
# The first process of a Slurm cluster for tests; ends with the last process that uses it.
#   cluster.sh FOLDER USERS NODE...
# Runs as root in namespaces of its own; see engine.sh. Each node has files of
# its own in FOLDER/private.
set -u
folder=$1 users=$2; shift 2
exec 9< "$users"
mount --make-rprivate / && mount -t proc proc /proc || exit 1
hostname lab
ip link set lo up
# A loopback alone stalls Slurm for seconds.
ip link add eth0 type veth peer name eth1 && ip addr add 10.97.0.1/24 dev eth0 || exit 1
ip link set eth0 up; ip link set eth1 up
export SLURM_CONF="$folder/slurm.conf"
munged --foreground --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" \
  --pid-file="$folder/munge.pid" --log-file="$folder/munge.log" --seed-file="$folder/munge.seed" \
  9<&- &
until [ -S "$folder/munge.socket" ]; do sleep 0.05; done
slurmctld -D 9<&- &
for node in "$@"; do
  unshare -m sh -c 'mount -t tmpfs tmpfs "$0/private" && exec slurmd -D -N "$1"' \
    "$folder" "$node" 9<&- &
done
until flock -n -x 9; do sleep 0.2; done
