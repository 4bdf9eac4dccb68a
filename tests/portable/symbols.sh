#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that built files need no newer C library than GLIBC, and no other library.
#   sh tests/portable/symbols.sh build/portable/x86_64 2.28
# Prints "ok FILE VERSION SIZE" or "not ok ..." for each file; status 1 when one failed.
set -e
build=${1:?the folder of the build}
glibc=${2:-2.28}
# Of the C library and of MPI; the loader itself.
allowed='libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|libmstx\.so\.0|ld-linux[-a-z0-9_]*\.so\.[0-9]'
rc=0
count=0

files() {
    find "$build" -maxdepth 3 \( -name mutants -o -name tests -o -name libs -o -name 'python.*' \) -prune -o \
        \( -type f \( -name '*.so' -o -name '*.so.[0-9]*' -o -name msprobe \) -print \)
}
newer_than() { # version limit
    [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | tail -n 1)" != "$2" ]
}
for f in $(files); do
    readelf -h "$f" >/dev/null 2>&1 || continue
    count=$((count + 1))
    newest=$(readelf -W --version-info "$f" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
    other=$(readelf -dW "$f" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vxE "$allowed" || true)
    said="${f#"$build"/} needs GLIBC_${newest:-none}, $(stat -c %s "$f") bytes"
    if newer_than "${newest:-0}" "$glibc"; then
        echo "not ok $said: later than $glibc: $(objdump -T "$f" | awk -v v="GLIBC_$newest" 'index($0, v) { printf " %s", $NF }')"
        rc=1
    elif [ -n "$other" ]; then
        echo "not ok $said, and the libraries" $other
        rc=1
    else
        echo "ok $said"
    fi
done
[ "$count" -gt 0 ] || { echo "not ok $build has no program and no library"; rc=1; }
exit $rc
