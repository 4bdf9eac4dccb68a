#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the tests of a build for another processor in an emulator of that processor (qemu-user).
#   ARCH=aarch64 B=build/aarch64 sh tests/portable/emulated.sh [SECONDS]
# SECONDS: test programs and corpora are drawn by SEED, any word, until so many seconds are over; without
# it all run. The last line is "N passed, N failed"; checks that fail because of the emulator are in
# tests/data/emulated.known, with the reason.
# Tests start each other's programs, so the kernel has to know the emulator: as root this script says it to
# the kernel while it runs, where nobody has yet.
ARCH=${ARCH:-aarch64}
B=${B:-build/$ARCH}
. tests/portable/emulator.sh
[ -n "$qemu" ] || { echo "skip emulated: no qemu-$ARCH-static here; apt-get install qemu-user-static"; exit 77; }
known=tests/data/emulated.known
large_pages='test_io test_segment_file test_jread_parts test_dump test_pt test_litmus'
export B ARCH
runs() { "$B/msprobe" version >/dev/null 2>&1; }
runs || teach_kernel 2>/dev/null
runs || { echo "skip emulated: the kernel does not start programs for $ARCH; run as root, or register $qemu with binfmt_misc"; exit 77; }

logs=$B/tests/logs
mkdir -p "$logs"
counts=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-emulated-XXXXXX") || exit 1
export CK_TIMEOUT_MULTIPLIER="${CK_TIMEOUT_MULTIPLIER:-20}" LC_ALL=C.UTF-8 TZ=UTC

list() {
    for t in "$B"/tests/fuzz_*; do echo "corpus $t"; done
    for t in "$B"/tests/test_*; do echo "check $t"; done
}
# The order of a SEED: that of checksums of its names.
drawn() {
    while read -r kind file; do
        case $file in *.o | *.d | *'*') continue ;; esac
        name=$(basename "$file")
        printf '%s %s %s\n' "$(printf '%s' "${SEED:-}$name" | cksum | cut -d' ' -f1)" "$kind" "$file"
    done | sort -n | cut -d' ' -f2-
}
sum() { cat "$counts"/*.count 2>/dev/null | awk -v c="$1" '{ n += $c } END { print n + 0 }'; }

# Takes from the failures of a program those that are known: "PROGRAM CHECK: reason".
forgive() { # name
    [ -s "$known" ] || return 0
    read -r good wrong left_out <"$counts/$1.count"
    [ "$wrong" -gt 0 ] || return 0
    n=$(grep -E ':[FE]:' "$logs/$1.log" | sort -u | cut -d: -f5 | sed "s/^/$1 /; s/\$/:/" | grep -cxFf "$counts/known")
    [ "$n" -eq 0 ] || echo "        $n of them known"
    echo "$good $((wrong - n)) $((left_out + n))" >"$counts/$1.count"
    [ "$wrong" -gt "$n" ] || rm -f "$counts/$1.again"
}
run() { # kind file
    sh tests/run_one.sh "$logs" "$counts" "$1" "$2" </dev/null
    forgive "$(basename "$2")"
}

cut -d: -f1 "$known" | sed 's/$/:/' >"$counts/known"
end=$(($(date +%s) + ${1:-86400}))
left=0
list | drawn >"$counts/list"
while read -r kind file; do
    if [ "$(date +%s)" -ge "$end" ]; then
        left=$((left + 1))
    else
        run "$kind" "$file"
    fi
done <"$counts/list"
# As tests/run.sh does: what failed runs a second time.
for t in "$counts"/*.again; do
    [ -e "$t" ] || continue
    read -r kind file <"$t"
    cp "$logs/$(basename "$file").log" "$logs/$(basename "$file").first.log"
    SECOND=yes run "$kind" "$file"
done
# With pages of 64 KiB, as many systems of that processor have them, what maps files. The recorder's own
# programs are not among them: where its page is larger than the machine's, qemu cuts a mapping at the end
# that the file has, and texts are mapped ahead of theirs.
own=$counts
counts=$own/pages
mkdir "$counts"
for name in $large_pages; do
    [ ! -e "$B/tests/$name" ] || QEMU_PAGESIZE=65536 sh tests/run_one.sh "$counts" "$counts" check "$B/tests/$name" </dev/null
done
passed=$(sum 1) failed=$(sum 2)
counts=$own
[ "$left" -eq 0 ] || echo "$left programs were not drawn"
passed=$((passed + $(sum 1))) failed=$((failed + $(sum 2))) skipped=$(sum 3)
[ "$skipped" -eq 0 ] || echo "$skipped skipped"
rm -rf "$counts"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
