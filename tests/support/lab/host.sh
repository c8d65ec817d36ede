#!/bin/sh
# The first process of a test host: its own root, processes, name and sshd, until it is killed.
#   host.sh ROOT FOLDER NAME USER PUBLIC_KEY
# Runs as root in new mount, pid, uts and ipc namespaces and in the host's own network namespace.
set -eu
root=$1 folder=$2 name=$3 user=$4 key=$5
mount --make-rprivate /
mount -t tmpfs -o size=4g none "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
cd "$folder/root"
mount -t proc proc proc
mount -t tmpfs tmpfs tmp; chmod 1777 tmp
mount -t tmpfs tmpfs run; mkdir -p run/sshd
mount -t tmpfs tmpfs dev; mkdir dev/pts dev/shm
for each in null zero full random urandom tty; do touch "dev/$each"; mount --bind "/dev/$each" "dev/$each"; done
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts dev/pts
ln -s pts/ptmx dev/ptmx; ln -s /proc/self/fd dev/fd
hostname "$name"
mkdir -p "srv/$user/.ssh"
printf '%s\n' "$key" > "srv/$user/.ssh/authorized_keys"
# A local account whose password is locked would refuse keys; `*` only matches no password.
chroot . useradd -p '*' -d "/srv/$user" -s /bin/bash "$user"
chroot . chown -R "$user" "/srv/$user"
printf 'LANG=de_DE.UTF-8\n' > etc/default/locale
printf 'export LANG=de_DE.UTF-8\n' > "srv/$user/.bashrc"
chroot . ssh-keygen -A > /dev/null
mkdir -p old
pivot_root . old
umount -l /old
cd /
exec /usr/sbin/sshd -D -e -o UsePAM=no -o SetEnv=LANG=de_DE.UTF-8
