#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs every test program, replays every fuzz corpus and runs the command-line
# cases, one per processor at a time; prints a line for each and, last,
# "N passed, N failed".
#   B=build        what to test
#   ONLY=word      only what has the word in its name
#   TSAN=1         only the tests that have threads
#   UNITS=1        only test programs and fuzz corpora, no suites
#   SUITES=1       only suites
#   SAMPLE=2       only one of two suites, drawn by SEED, any word
#   JOBS=2         how many at a time
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
processors=$(nproc)
JOBS=${JOBS:-$((processors < 4 ? processors : 4))}
export B PYTHON
export LC_ALL=C.UTF-8 TZ=UTC
export CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-4}
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1:allocator_may_return_null=1:die_after_fork=0}"
logs=$B/tests/logs
mkdir -p "$logs"
counts=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-tests-XXXXXX") || exit 1
trap 'rm -rf "$counts"' EXIT
trap 'exit 130' INT TERM

threaded='test_pool test_jread_parts test_dump test_census test_dumper test_dumper_device test_dumper_safety test_trace test_log test_mem test_io
    test_overflow test_rt test_rt_nvtx test_rt_comm test_pairing test_align_auto test_out test_device
    test_plugin'
# These take longest and begin first, so that no processor waits for one of them at the end.
long='suite_torch_dump suite_mpi_hooks suite_faults suite_gloo suite_harm suite_strangers suite_web'
# What these measure, or build, stands no other test beside it.
alone='suite_clock suite_hang suite_soak suite_install suite_deb'

among() { case " $(echo $2) " in *" $1 "*) return 0 ;; esac; return 1; }
is_drawn() { # NAME
    number=$(printf '%s' "${SEED:-}$1" | cksum | cut -d' ' -f1)
    [ $((number / 7 % SAMPLE)) -eq 0 ]
}
is_wanted() { # NAME
    case $1 in *"${ONLY:-}"*) ;; *) return 1 ;; esac
    case $1 in suite_*) [ -z "${SAMPLE:-}" ] || is_drawn "$1" ;; esac
}

# Kind and file of each test, the longest kind first.
list() {
    if [ -z "${TSAN:-}${UNITS:-}" ]; then
        for t in $long; do echo "script tests/suites/$t.sh"; done
        for t in tests/suites/suite_*.sh; do
            [ ! -e "$t" ] || among "$(basename "$t" .sh)" "$alone $long" || echo "script $t"
        done
    fi
    [ -z "${SUITES:-}" ] || return 0
    if [ -z "${TSAN:-}" ]; then
        for t in "$B"/tests/fuzz_*; do echo "corpus $t"; done
    fi
    for t in "$B"/tests/test_*; do
        [ -z "${TSAN:-}" ] || among "$(basename "$t")" "$threaded" || continue
        echo "check $t"
    done
}
list_alone() {
    [ -z "${TSAN:-}${UNITS:-}" ] || return 0
    for t in $alone; do echo "script tests/suites/$t.sh"; done
}
wanted_of() {
    while read -r kind file; do
        case $file in *.o | *.d | *'*') continue ;; esac
        ! is_wanted "$(basename "$file" .sh)" || echo "$kind $file"
    done
}
run_all() { # how many at a time
    xargs -r -P "$1" -L 1 sh tests/run_one.sh "$logs" "$counts"
}
sum() { cat "$counts"/*.count 2>/dev/null | awk -v c="$1" '{ n += $c } END { print n + 0 }'; }

list | wanted_of | run_all "$JOBS"
list_alone | wanted_of | run_all 1
# What failed runs a second time when all else is done: machines are shared, and a
# test that only then passes is named in the last lines.
for t in "$counts"/*.again; do
    [ -e "$t" ] || continue
    name=$(basename "$t" .again)
    cp "$logs/$name.log" "$logs/$name.first.log"
    SECOND=yes run_all 1 <"$t"
    [ "$(awk '{ print $2 }' "$counts/$name.count")" -ne 0 ] || passes="${passes:-} $name"
done
[ -z "${passes:-}" ] || echo "only at the second try:$passes; see $logs/*.first.log"
[ "$(sum 3)" -eq 0 ] || echo "$(sum 3) skipped"
echo "$(sum 1) passed, $(sum 2) failed"
[ "$(sum 2)" -eq 0 ] && [ "$(sum 1)" -gt 0 ]
