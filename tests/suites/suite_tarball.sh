#!/bin/sh
# SPDX-License-Identifier: MIT
# The archive of `make tarball`, unpacked into a folder of any name and moved to another, where it is used
# without being installed.
#   TARBALL=FILE   the archive; without it the one below $B/portable
suite=tarball
. tests/support/checks.sh
TARBALL=${TARBALL:-$(ls "$B"/portable/msprobe-*-"$(uname -m)".tar.gz 2>/dev/null | tail -n 1)}
[ -e "$TARBALL" ] || skip "there is none in $B/portable; make tarball builds it"
data=$(realpath tests/data/parity/p2p_tensors)
symbols=$(realpath tests/portable/symbols.sh)
first="$scratch/a folder with spaces"
second=$scratch/second

unpacks() { mkdir -p "$first" && tar -xzf "$TARBALL" -C "$first" --strip-components=1 && [ -x "$first/bin/msprobe" ]; }
needs_little() {
    for folder in bin lib lib/msprobe; do sh "$symbols" "$second/$folder" 2.28 || return 1; done
}
names_nobody() { ! tar -tvzf "$TARBALL" | awk '{ print $2 }' | grep -v '^root/root$'; }
alone() { env -i HOME="$scratch" PATH=/usr/bin:/bin LC_ALL=C.UTF-8 "$@"; }

cat >"$scratch/marks.py" <<'END'
import mstx

for i in range(20):
    mstx.range_end(mstx.range_start("step"))
END
selftest() { alone "$1/bin/msprobe" selftest; }
records() {
    rm -rf "$run" && alone "$1/bin/msprobe" run -o "$run" -- python3 "$scratch/marks.py" &&
        alone "$1/bin/msprobe" report "$run" | grep '20 events'
}
compares() { alone "$1/bin/msprobe" compare -tp "$data/target" -gp "$data/golden" -o "$scratch/compared" && ls "$scratch/compared" | grep compare_result; }
has_manuals() { MANPATH=$1/share/man LC_ALL=C man -P cat msprobe-compare | grep -q msprobe; }
moves() { mv "$first" "$second"; }
# shellcheck disable=SC2046
builds_with_it() {
    cc -std=c17 -o "$scratch/two_dumps" samples/two_dumps.c $(PKG_CONFIG_PATH=$second/lib/pkgconfig pkg-config --cflags --libs msprobe) \
        -lm -Wl,-rpath,"$second/lib" && "$scratch/two_dumps" "$scratch/dumps" && alone "$second/bin/msprobe" stat "$scratch/dumps/clean"
}

check 'it unpacks into a folder with spaces in its name' unpacks
check 'its files are of nobody here' names_nobody
check 'there it passes its own test' selftest "$first"
check 'there marks of a Python script are recorded and reported' records "$first"
check 'there two dumps are compared' compares "$first"
check 'the folder moves' moves
check 'no file in it needs a newer C library than 2.28' needs_little
check 'moved it passes its own test' selftest "$second"
check 'moved it records and reports' records "$second"
check 'moved its pkg-config file leads to its headers and libraries' builds_with_it
if command -v man >/dev/null; then check 'moved its manual pages read' has_manuals "$second"; else echo 'skip man: it is not here'; fi
exit $rc
