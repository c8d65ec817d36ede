#!/bin/sh
# The first process of a sandbox: a root of its own over the layers of its image, then the command.
#   box.sh FOLDER LAYERS NAME [VOLUME PATH]... -- ARGV...
# Runs as root in new mount, pid, uts, ipc and network namespaces. FOLDER has upper and work.
set -eu
folder=$1 layers=$2 name=$3; shift 3
mount --make-rprivate /
mkdir -p "$folder/root"
mount -t overlay overlay -o "lowerdir=$layers,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
while [ "$1" != -- ]; do
  mkdir -p "$folder/root/$2" && mount --bind "$1" "$folder/root/$2"
  shift 2
done
shift
cd "$folder/root"
mount -t proc proc proc
mount -t tmpfs tmpfs dev; mkdir dev/pts dev/shm
for each in null zero full random urandom tty; do touch "dev/$each"; mount --bind "/dev/$each" "dev/$each"; done
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts dev/pts
ln -s pts/ptmx dev/ptmx; ln -s /proc/self/fd dev/fd
hostname "$name"
mkdir -p old
pivot_root . old
umount -l /old
cd /
echo ready
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@" > /dev/null
