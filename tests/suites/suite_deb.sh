#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the Debian package, asks lintian, installs it into a folder of its own, uses it there and
# removes it again.
#   B=build        what to pack
#   CROSS=aarch64  the build is for that processor, whose programs the kernel starts in an emulator
B=${B:-build}
export MAKEFLAGS= MAKELEVEL=
scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-deb-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
root=$scratch/root
rc=0

check() { # name command...
    name=$1
    shift
    if "$@" >"$scratch/said" 2>&1; then
        echo "ok $name"
    else
        echo "not ok $name"
        sed 's/^/    /' "$scratch/said" | head -20
        rc=1
    fi
}
skip_all() { echo "skip deb: $*"; exit 0; }

command -v dpkg-shlibdeps >/dev/null || skip_all 'no dpkg-dev here'
! readelf -W --dyn-syms "$B/libmsprobe.so" | grep -qE '__(asan|tsan|ubsan)_' || skip_all 'a sanitizer build is not for others'

# The database of installed packages is that of the folder; what the package depends on is outside.
in_folder() { dpkg --root="$root" --force-not-root --force-depends --log=/dev/null "$@"; }
builds() {
    make --no-print-directory -s B="$B" CROSS="${CROSS:-}" deb >"$scratch/built" &&
        deb=$(tail -n 1 "$scratch/built") && [ -s "$deb" ]
}
lintian_finds_no_error() {
    lintian --allow-root --tag-display-limit 0 "$deb" >"$scratch/lint" 2>&1
    cat "$scratch/lint"
    ! grep '^E:' "$scratch/lint"
}
names_what_it_needs() {
    for want in libc6 libsqlite3-0 libcjson1 libmicrohttpd12; do
        dpkg-deb -f "$deb" Depends | grep -w "$want" || return 1
    done
    ! dpkg-deb -f "$deb" Depends | grep mpi
}
installs() {
    mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" && : >"$root/var/lib/dpkg/status" &&
        in_folder -i "$deb" && in_folder -s msprobe | grep '^Status: install ok installed'
}
is_intact() { [ -z "$(in_folder -V msprobe)" ]; }
program_runs() { "$root/usr/bin/msprobe" selftest; }
program_records() {
    "$root/usr/bin/msprobe" run -o "$scratch/run" -- "$B/samples/mstx_c" && "$root/usr/bin/msprobe" report "$scratch/run" |
        grep -E '^steps: 20 '
}
manual_reads() {
    MANPATH=$root/usr/share/man LC_ALL=C man -P cat msprobe-compare | grep -q 'msprobe'
}
removes() { in_folder -P msprobe && [ -z "$(find "$root/usr" ! -type d)" ]; }

check 'make deb' builds
deb=$(tail -n 1 "$scratch/built")
if command -v lintian >/dev/null; then
    check 'lintian finds no error' lintian_finds_no_error
else
    echo 'skip lintian: it is not here'
fi
check 'it depends on the libraries and on no MPI' names_what_it_needs
check 'it installs' installs
check 'its files are what was packed' is_intact
check 'the installed program tests itself' program_runs
check 'the installed program records another' program_records
if command -v man >/dev/null; then check 'its manual pages read' manual_reads; else echo 'skip man: it is not here'; fi
check 'it leaves nothing behind' removes
exit $rc
