#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs every test program, replays every fuzz corpus and runs the command-line
# cases; prints a line for each and, last, "N passed, N failed".
#   B=build        what to test
#   ONLY=word      only what has the word in its name
#   TSAN=1         only the tests that have threads
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
export B PYTHON
export LC_ALL=C.UTF-8 TZ=UTC
export CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-4}
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1:allocator_may_return_null=1:die_after_fork=0}"
logs=$B/tests/logs
mkdir -p "$logs"
passed=0
failed=0
skipped=0
again=

# What fails is shown and runs a second time when all else is done: machines are shared, and a
# test that only then passes is named in the last lines.
report() { # name passed failed how file
    if [ "$3" -eq 0 ]; then
        printf '  ok    %-24s %s\n' "$1" "$2"
    else
        printf '  FAIL  %-24s %s of %s failed; %s\n' "$1" "$3" $(($2 + $3)) "$logs/$1.log"
        grep -E ':[EF]:|ERROR: |runtime error|DIFF' "$logs/$1.log" | head -20
        grep -A12 '^not ok ' "$logs/$1.log" | head -60
        tail -5 "$logs/$1.log"
        if [ -z "${second:-}" ]; then
            cp "$logs/$1.log" "$logs/$1.first.log"
            again="$again $4:$5"
            return
        fi
    fi
    passed=$((passed + $2))
    failed=$((failed + $3))
}
wanted() { case $1 in *"${ONLY:-}"*) return 0 ;; esac; return 1; }

# Check's closing line: "100%: Checks: 12, Failures: 0, Errors: 0"
run_check() {
    program=$1
    name=$(basename "$1")
    wanted "$name" || return
    "$1" >"$logs/$name.log" 2>&1
    status=$?
    # A crash of the tracer of leaks says nothing about the test: then all else is looked at alone.
    if grep -q 'LeakSanitizer has encountered a fatal error' "$logs/$name.log"; then
        ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" "$1" >"$logs/$name.log" 2>&1
        status=$?
    fi
    set -- $(sed -n 's/.*Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\).*/\1 \2 \3/p' \
        "$logs/$name.log" | tail -1)
    if [ $# -ne 3 ] || { [ $status -ne 0 ] && [ $(($2 + $3)) -eq 0 ]; }; then
        report "$name" 0 1 run_check "$program"
    else
        report "$name" $(($1 - $2 - $3)) $(($2 + $3)) run_check "$program"
    fi
}
run_corpus() {
    name=$(basename "$1")
    dir=tests/data/fuzz/${name#fuzz_}
    wanted "$name" || return
    n=$(find "$dir" -type f 2>/dev/null | wc -l)
    if [ "$n" -eq 0 ]; then
        echo "no corpus in $dir" >"$logs/$name.log"
        report "$name" 0 1 run_corpus "$1"
    elif "$1" "$dir"/* >"$logs/$name.log" 2>&1; then
        report "$name" "$n" 0
    else
        report "$name" 0 1 run_corpus "$1"
    fi
}
# A script of tests prints "ok NAME", "not ok NAME" or "skip NAME: why".
run_script() {
    name=$(basename "$1" .sh)
    wanted "$name" || return
    sh "$1" >"$logs/$name.log" 2>&1
    status=$?
    good=$(grep -c '^ok ' "$logs/$name.log")
    wrong=$(grep -c '^not ok ' "$logs/$name.log")
    [ $status -ne 0 ] && [ "$wrong" -eq 0 ] && wrong=1
    if [ "$wrong" -eq 0 ] || [ -n "${second:-}" ]; then
        grep '^skip ' "$logs/$name.log" | sed 's/^/  /'
        skipped=$((skipped + $(grep -c '^skip ' "$logs/$name.log")))
    fi
    report "$name" "$good" "$wrong" run_script "$1"
}

threaded='test_pool test_jread test_dump test_census test_dumper test_dumper_safety test_trace test_log test_mem test_io
    test_overflow test_rt test_rt_nvtx test_rt_comm test_pairing'
for t in "$B"/tests/test_*; do
    case $t in *.o | *.d) continue ;; esac
    [ -z "${TSAN:-}" ] || case " $threaded " in *" $(basename "$t") "*) ;; *) continue ;; esac
    run_check "$t"
done
if [ -z "${TSAN:-}" ]; then
    for t in "$B"/tests/fuzz_*; do
        case $t in *.o | *.d) continue ;; esac
        run_corpus "$t"
    done
    for t in tests/suite_*.sh; do
        [ -e "$t" ] && run_script "$t"
    done
fi
second=yes
for t in $again; do
    before=$failed
    "${t%%:*}" "${t#*:}"
    [ "$failed" -gt "$before" ] || passes="${passes:-} $(basename "${t#*:}")"
done
[ -z "${passes:-}" ] || echo "only at the second try:$passes; see $logs/*.first.log"
[ "$skipped" -eq 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
