#!/bin/sh
# SPDX-License-Identifier: MIT
# README's two commands on fresh machines: root file systems that debootstrap makes, with git and make alone.
#   sh tests/portable/fresh.sh [RELEASE-ARCH...]     default: Debian 12 and 13, amd64 and arm64
#   INTO=DIR       where they are kept (3 GB each); one that is there is used again
#   COMMANDS=...   what runs in each, without a network; default 'make demo' and 'make test'
#   MIRROR=URL     where Debian is; default where this machine has it from
# `make deps` installs with the network; then a clone of HEAD is built and tested with none but the loopback.
# Packages that are here (make deb, make tarball) are installed last: the archive on every system, the Debian package
# on the release that it was built on.
# Prints "ok SYSTEM: COMMAND", "not ok ..." or "skip SYSTEM: why"; logs are beside the root file systems.
INTO=${INTO:-build/fresh}
mkdir -p "$INTO" && INTO=$(realpath "$INTO") || exit 1
COMMANDS=${COMMANDS:-make demo
make test}
native=$(dpkg --print-architecture)
ARCH=aarch64
. tests/portable/emulator.sh
PATH=$PATH:/usr/sbin:/sbin
rc=0

skip_all() { echo "skip fresh: $*"; exit 0; }
[ "$(id -u)" -eq 0 ] || skip_all 'only root makes root file systems'
command -v debootstrap >/dev/null || skip_all 'no debootstrap here; apt-get install debootstrap'
unshare -m -n true 2>/dev/null || skip_all 'no mounts and networks of its own here'

mirror_here() { apt-cache policy | sed -n 's|.* \(http[^ ]*/debian\) [a-z]*/main .*|\1|p' | head -n 1; }
MIRROR=${MIRROR:-$(mirror_here)}

# make_root RELEASE ARCH: in $root, whole or not at all.
make_root() {
    [ ! -e "$root/etc/debian_version" ] || return 0
    rm -rf "$root.part"
    debootstrap --arch="$2" --variant=minbase --include=git,make,ca-certificates \
        "$1" "$root.part" ${MIRROR:+"$MIRROR"} && mv "$root.part" "$root"
}
clone_head() {
    rm -rf "$root/root/msprobe" && git clone -q --depth 1 "file://$PWD" "$root/root/msprobe"
}
# What the mounts and the network of a machine are, which end with the command. $1: unshare's words.
inside() { # WORDS COMMAND
    # shellcheck disable=SC2086,SC2016
    timeout "${LIMIT:-5400}" unshare -m -p -f $1 sh -ec 'cd "$0"
        mount -t proc proc proc
        mount --rbind /sys sys
        mount -t tmpfs -o mode=755 tmpfs dev
        for node in null zero full random urandom tty; do : >dev/$node; mount --bind /dev/$node dev/$node; done
        ln -s /proc/self/fd dev/fd
        mkdir dev/pts dev/shm
        mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
        ln -s pts/ptmx dev/ptmx
        mount -t tmpfs tmpfs dev/shm
        ip link set lo up 2>/dev/null || :
        exec env -i HOME=/root TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            chroot . sh -c "cd /root/msprobe && $1"' "$root" "$2"
}
step() { # NAME COMMAND...
    name=$1
    shift
    began=$(date +%s)
    if "$@" >>"$root.log" 2>&1 </dev/null; then
        echo "ok $name, $(($(date +%s) - began)) s$(tail -n 1 "$root.log" | grep -oE '^[0-9]+ passed, [0-9]+ failed' | sed 's/^/: /')"
    else
        echo "not ok $name"
        tail -n 15 "$root.log" | sed 's/^/    /'
        rc=1
        return 1
    fi
}
deps() {
    cp -L /etc/resolv.conf "$root/etc/resolv.conf" && cp /etc/hosts "$root/etc/hosts" && inside '' 'make deps'
}
# Where the packages for an architecture are: that of this machine, or that of a build with CROSS.
deb_of() { ls build/msprobe_*_"$1".deb build/*/msprobe_*_"$1".deb 2>/dev/null | head -n 1; }
tarball_of() { ls build/portable/msprobe-*-"$(case $1 in arm64) echo aarch64 ;; *) uname -m ;; esac)".tar.gz 2>/dev/null | head -n 1; }
is_of_this_release() { [ "$1" = "$(. /etc/os-release && echo "$VERSION_CODENAME")" ]; }
works='selftest && $msprobe compare -tp tests/data/parity/p2p_tensors/target -gp tests/data/parity/p2p_tensors/golden -o /root/compared'
unpacks() { # FILE
    cp "$1" "$root/root/msprobe.tar.gz" && rm -rf "$root/opt/msprobe" && mkdir "$root/opt/msprobe" &&
        inside -n "tar -xf /root/msprobe.tar.gz -C /opt/msprobe --strip-components=1 && msprobe=/opt/msprobe/bin/msprobe && \$msprobe $works"
}
installs() { # FILE
    cp "$1" "$root/root/msprobe.deb" &&
        inside '' 'apt-get install -y --no-install-recommends /root/msprobe.deb' &&
        inside -n "msprobe=/usr/bin/msprobe && \$msprobe $works" && inside '' 'apt-get purge -y msprobe'
}
runs_there() { [ "$1" = "$native" ] || { [ -n "$qemu" ] && teach_kernel 2>/dev/null; }; }

try_system() { # RELEASE ARCH
    root=$INTO/$1-$2
    : >"$root.log"
    runs_there "$2" || { echo "skip $1-$2: the kernel does not start its programs; apt-get install qemu-user-static"; return; }
    step "$1-$2: root file system" make_root "$1" "$2" && step "$1-$2: clone" clone_head &&
        step "$1-$2: make deps, with the network" deps || return
    printf '%s\n' "$COMMANDS" >"$INTO/commands"
    while IFS= read -r command; do
        step "$1-$2: $command, without a network" inside -n "$command"
    done <"$INTO/commands"
    tarball=$(tarball_of "$2")
    [ -z "$tarball" ] || step "$1-$2: $(basename "$tarball") is unpacked and tests itself, without a network" unpacks "$tarball"
    deb=$(deb_of "$2")
    [ -z "$deb" ] || ! is_of_this_release "$1" || step "$1-$2: $(basename "$deb") is installed, tests itself and goes" installs "$deb"
}

[ $# -gt 0 ] || set -- bookworm-amd64 trixie-amd64 bookworm-arm64 trixie-arm64
for system; do try_system "${system%-*}" "${system##*-}"; done
exit $rc
