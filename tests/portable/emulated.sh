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
# Suites whose programs are all of the build: neither a vendor's, an MPI's nor a Python's libraries are of that processor.
suites='advice against align cli cluster decisions folded graph judge json kineto monitor_says nan parity quantise repairs
    source tensor timeline trend whatif deb'
large_pages='test_io test_segment_file test_jread_parts test_dump test_pt test_litmus'
export B ARCH CROSS="$ARCH"
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
    # Suites need the programs that only `make test-programs` builds.
    [ -e "$B/tests/tool_sim" ] || return 0
    for s in $suites; do echo "script tests/suites/suite_$s.sh"; done
}
# The order of a SEED: that of checksums of its names.
drawn() {
    while read -r kind file; do
        case $file in *.o | *.d | *'*') continue ;; esac
        name=$(basename "$file" .sh)
        case $name in *"${ONLY:-}"*) ;; *) continue ;; esac
        printf '%s %s %s\n' "$(printf '%s' "${SEED:-}$name" | cksum | cut -d' ' -f1)" "$kind" "$file"
    done | sort -n | cut -d' ' -f2-
}
sum() { cat "$counts"/*.count 2>/dev/null | awk -v c="$1" '{ n += $c } END { print n + 0 }'; }

failed_checks() { # log
    grep -E ':[FE]:' "$1" | cut -d: -f5
    sed -n 's/^not ok //p' "$1"
}
# Takes from the failures of a program those that are known: "PROGRAM CHECK: reason".
forgive() { # name
    [ -s "$known" ] || return 0
    read -r good wrong left_out <"$counts/$1.count"
    [ "$wrong" -gt 0 ] || return 0
    n=$(failed_checks "$logs/$1.log" | sort -u | sed "s/^/$1 /; s/\$/:/" | grep -cxFf "$counts/known")
    [ "$n" -eq 0 ] || echo "        $n of them known"
    echo "$good $((wrong - n)) $((left_out + n))" >"$counts/$1.count"
    [ "$wrong" -gt "$n" ] || rm -f "$counts/$1.again"
}
passed_natively() { # name
    log=$NATIVE/tests/logs/$1.log
    set -- $(sed -n 's/.*Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\).*/\1 \2 \3/p' "$log" | tail -n 1)
    if [ $# -eq 3 ]; then echo $(($1 - $2 - $3)); else grep -c '^ok ' "$log"; fi
}
# Counts what passes on this machine and is not even tried here as failed.
compare_with_native() { # name
    [ -n "${NATIVE:-}" ] && [ -e "$NATIVE/tests/logs/$1.log" ] || return 0
    read -r good wrong left_out <"$counts/$1.count"
    lost=$(($(passed_natively "$1") - good - wrong - left_out))
    [ "$lost" -gt 0 ] || return 0
    echo "        $lost that pass on this machine did not run here"
    echo "$good $((wrong + lost)) $left_out" >"$counts/$1.count"
}
run() { # kind file
    sh tests/run_one.sh "$logs" "$counts" "$1" "$2" </dev/null
    forgive "$(basename "$2" .sh)"
    compare_with_native "$(basename "$2" .sh)"
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
    name=$(basename "$file" .sh)
    cp "$logs/$name.log" "$logs/$name.first.log"
    SECOND=yes run "$kind" "$file"
done
# With pages of 64 KiB, as many systems of that processor have them, what maps files. The recorder's own
# programs are not among them: where its page is larger than the machine's, qemu cuts a mapping at the end
# that the file has, and texts are mapped ahead of theirs.
own=$counts
counts=$own/pages
mkdir "$counts"
for name in $large_pages; do
    case $name in *"${ONLY:-}"*) ;; *) continue ;; esac
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
