#!/bin/sh
# Set up everything that the targets of the Makefile require; fast if there is nothing to do.
#   scripts/bootstrap.sh run   what mngr itself requires: tmux, git, .venv with the package
#   scripts/bootstrap.sh dev   also what its checks and tests require
#   scripts/bootstrap.sh soak  also what the tests that take minutes require
# PYTHON=/path/to/python chooses the interpreter.
set -eu

stage=${1:-run}
lab='ip ssh nsenter setpriv debootstrap zstd dockerd iptables slurmctld munged'
# The servers of a Kubernetes cluster are built from source.
[ "$stage" != soak ] || { stage=dev lab="$lab kubectl etcd go dpkg-source openssl"; }
cd "$(dirname "$0")/.."
root=$(pwd -P)
venv=$root/.venv
log=$(mktemp)
trap 'rm -f "$log"' EXIT

case $stage in
    run) needed='tmux git' wanted='' ;;
    # Without the wanted programs some tests are skipped, which only CI counts as a failure.
    dev) needed='tmux git make bash ps' wanted='asciinema rsync zsh fish tcsh bats npm chromium' ;;
    *) echo "mngr: unknown stage '$stage'; use run, dev or soak" >&2; exit 2 ;;
esac
# Sandboxes require bubblewrap, which exists only on Linux.
[ "$stage-$(uname)" != dev-Linux ] || wanted="$wanted bwrap"
# Test hosts are namespaces with their own roots, engines and clusters, which only root can create.
# Without root the tests that require them are skipped, each with the reason.
[ "$stage-$(uname)-$(id -u)" != dev-Linux-0 ] || [ ! -e /etc/debian_version ] || wanted="$wanted $lab"

say() { printf 'mngr: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# --- programs ---------------------------------------------------------------------------------

is_missing() {
    [ "$1" = tmux ] || { ! have "$1"; return; }
    have tmux || return 0
    is_old "$(tmux -V)"
}

# "tmux 3.3a", "tmux next-3.5"; versions without numbers are builds from source, and new.
is_old() {
    number=${1#tmux }
    number=${number#next-}
    case $number in [0-9]*.[0-9]*) ;; *) return 1 ;; esac
    major=${number%%.*}
    minor=${number#*.}
    minor=${minor%%[!0-9]*}
    [ "$major" -lt 3 ] || { [ "$major" -eq 3 ] && [ "$minor" -lt 2 ]; }
}

missing_of() {
    found=''
    for program in "$@"; do
        ! is_missing "$program" || found="$found $program"
    done
    echo "${found# }"
}

# Programs whose packages have other names. Debian's npm only recommends the node it runs on.
packages() {
    for program in "$@"; do
        case $(package_tool)/$program in
            */ps) program=procps ;;
            */bwrap) program=bubblewrap ;;
            */ip) program=iproute2 ;;
            */ssh) program=openssh-client ;;
            */nsenter | */setpriv) program=util-linux ;;
            */dockerd) program=docker.io ;;
            */slurmctld) program=slurm-wlm ;;
            */munged) program=munge ;;
            */kubectl) program=kubernetes-client ;;
            */etcd) program=etcd-server ;;
            */go) program=golang-go ;;
            */dpkg-source) program=dpkg-dev ;;
            apt-get/npm) program='nodejs npm' ;;
            brew/npm) program=node ;;
            brew/bats) program=bats-core ;;
        esac
        printf ' %s' "$program"
    done
}

package_tool() {
    for tool in apt-get brew dnf pacman zypper apk; do
        ! have "$tool" || { echo "$tool"; return; }
    done
    if [ -e /etc/debian_version ]; then echo apt-get; elif [ "$(uname)" = Darwin ]; then echo brew; fi
}

# The line a person would type to install the packages named.
how_to() {
    case $(package_tool) in
        apt-get) by_root "apt-get install -y $*" ;;
        dnf) by_root "dnf install -y $*" ;;
        pacman) by_root "pacman -S --needed $*" ;;
        zypper) by_root "zypper install $*" ;;
        apk) by_root "apk add $*" ;;
        brew) if have brew; then echo "brew install $*"; else echo "brew install $* (Homebrew is at https://brew.sh)"; fi ;;
        *) echo "your package manager's command that installs $*" ;;
    esac
}

by_root() {
    if [ "$(id -u)" = 0 ]; then echo "$1"; elif have sudo; then echo "sudo $1"; else echo "su -c '$1'"; fi
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

may_install() {
    case $(package_tool) in
        apt-get) have apt-get && { [ "$(id -u)" = 0 ] || { have sudo && sudo -n true 2>/dev/null; }; } ;;
        brew) have brew && [ "$(id -u)" != 0 ] ;;
        *) return 1 ;;
    esac
}

install() {
    may_install || return 1
    say "installing $*"
    install_with "$(package_tool)" "$@" >"$log" 2>&1 </dev/null || { tail -n 5 "$log" >&2; return 1; }
}

install_with() {
    tool=$1
    shift
    [ "$tool" = apt-get ] || { brew install --quiet "$@"; return; }
    # A fresh image has no package lists and an old one stale lists: both need the update.
    apt_install "$@" || { as_root apt-get update && apt_install "$@"; }
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        -o DPkg::Lock::Timeout=120 "$@"
}

# Set $missing to the programs that could not be installed.
supply() {
    missing=$(missing_of "$@")
    [ -n "$missing" ] || return 0
    install $(packages $missing) || return 0
    missing=$(missing_of "$@")
}

ensure_programs() {
    supply $needed
    [ -z "$missing" ] || die "cannot go on without $(named $missing); type: $(how_to $(packages $missing))"
    supply $wanted
    [ -n "$missing" ] || return 0
    [ -z "${CI:-}" ] || die "cannot run every test without $(named $missing); type: $(how_to $(packages $missing))"
    say "skipping the tests that require $(named $missing); to run them, type: $(how_to $(packages $missing))"
}

named() {
    for program in "$@"; do
        case $program in
            tmux) if have tmux; then program="tmux 3.2 or newer (found $(tmux -V))"; else program='tmux (3.2 or newer)'; fi ;;
        esac
        printf '%s' "${separator:-}$program"
        separator=', '
    done
}

# --- Python -----------------------------------------------------------------------------------

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
can_make_venv() { "$1" -c 'import venv, ensurepip' >/dev/null 2>&1; }

find_python() {
    for python in ${PYTHON:-python3.13 python3.12 python3.11 python3}; do
        # Run it, because a version manager has shims for versions that are not active.
        if new_enough "$python" && can_make_venv "$python"; then return; fi
    done
    python=''
}

# Debian's python3 comes without ensurepip.
ensure_python() {
    find_python
    [ -z "$python" ] || return 0
    [ -z "${PYTHON:-}" ] || die "PYTHON=$PYTHON is not Python 3.11 or newer with the venv module"
    packages='python3 python3-venv'
    [ "$(package_tool)" != brew ] || packages='python@3.13'
    ! install $packages || find_python
    [ -n "$python" ] || die "cannot find Python 3.11 or newer with the venv module; type: $(how_to $packages)"
}

# A virtual environment contains its own path in many files, so a copied one does not work.
venv_is_ours() {
    [ -x "$venv/bin/python" ] || return 1
    case $(grep '^command = ' "$venv/pyvenv.cfg" 2>/dev/null) in *" $venv") ;; *) return 1 ;; esac
}

ensure_venv() {
    ! venv_is_ours || return 0
    ensure_python
    # Creating it again would empty the directory that the link names, which is not ours.
    [ ! -h "$venv" ] || die ".venv is a link; remove it and run this again"
    say "making .venv with $("$python" --version)"
    "$python" -m venv --clear "$venv" >"$log" 2>&1 || failed 'making .venv'
}

# setuptools, which Python 3.11 puts into new environments, runs code at every start of Python.
drop_setuptools() {
    ls "$venv"/lib/*/site-packages/distutils-precedence.pth >/dev/null 2>&1 || return 0
    pip uninstall -y setuptools
}

# An older pip creates a `mngr` script that takes 7 ms longer to start, but works.
renew_pip() {
    try_pip install 'pip>=25.2' || true
}

pip() { try_pip "$@" || failed "pip $*"; }

try_pip() {
    PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
        "$venv/bin/python" -m pip "$@" >"$log" 2>&1 </dev/null
}

failed() { cat "$log" >&2; die "$1 failed; see the lines above"; }

# A hash instead of times, because a checkout changes the time of every file.
key() { cat pyproject.toml scripts/bootstrap.sh | cksum; }

is_ready() {
    venv_is_ours || return 1
    key=$(key)
    [ "$(cat "$venv/.ready-$stage" 2>/dev/null)" = "$key" ] ||
        [ "$(cat "$venv/.ready-dev" 2>/dev/null)" = "$key" ]
}

ensure_package() {
    ! is_ready || return 0
    ensure_venv
    say "installing mngr into .venv"
    drop_setuptools
    renew_pip
    if [ "$stage" = dev ]; then pip install -e '.[dev]'; else pip install -e '.[demo]'; fi
    key >"$venv/.ready-$stage"
}

# With PYTHONDONTWRITEBYTECODE, each start would compile every module again.
ensure_bytecode() {
    stamp=$venv/.compiled
    if [ -e "$stamp" ] && [ -z "$(find src -name '*.py' -newer "$stamp" | head -n 1)" ]; then return; fi
    touch "$stamp.new"
    # The checks and tests report a module that does not compile.
    "$venv/bin/python" -m compileall -q src >/dev/null 2>&1 || true
    mv "$stamp.new" "$stamp"
}

ensure_programs
ensure_package
ensure_bytecode
