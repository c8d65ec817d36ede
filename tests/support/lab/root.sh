#!/bin/sh
# Build the root file system that test hosts start from, packed, once per machine.
#   root.sh FILE.tar.zst
# Debian's minimal system with what a host needs: sh, git, tmux and sshd; no Python.
set -eu
target=$1
work=$(mktemp -d "${target%/*}/.root.XXXXXX")
trap 'rm -rf "$work"' EXIT
export DEBIAN_FRONTEND=noninteractive
command -v debootstrap > /dev/null || apt-get install -y -qq -o DPkg::Lock::Timeout=300 debootstrap > /dev/null
[ -x "$(command -v zstd)" ] || apt-get install -y -qq -o DPkg::Lock::Timeout=300 zstd > /dev/null
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1)
debootstrap --variant=minbase --include=git,tmux,openssh-server,locales,procps \
    bookworm "$work/root" "$mirror" > "$work/log" 2>&1 || { tail -n 5 "$work/log" >&2; exit 1; }
# Messages in another language show where we read what was meant for people.
chroot "$work/root" localedef -i de_DE -f UTF-8 de_DE.UTF-8
rm -rf "$work/root"/usr/share/doc/* "$work/root"/usr/share/man/* "$work/root"/usr/share/i18n \
    "$work/root"/var/cache/apt/* "$work/root"/var/lib/apt/lists/* "$work/root"/etc/ssh/ssh_host_*
tar -C "$work/root" --numeric-owner -cf - . | zstd -q -3 -T0 -o "$work/packed"
mv "$work/packed" "$target"
