#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs one test for tests/run.sh, prints its line, and leaves "passed failed skipped"
# in COUNTS/NAME.count, and in COUNTS/NAME.again how to run it once more if it failed.
#   run_one.sh LOGS COUNTS check|corpus|script FILE
#   SECOND=yes     this is the second try
logs=$1 counts=$2 kind=$3 file=$4
name=$(basename "$file" .sh)
log=$logs/$name.log
began=$(date +%s)
skipped=0

# What times prints of a shell's children, "1m2.5s 0m0.5s", as seconds.
seconds_of() { tail -n 1 "$1" | tr 'ms' '  ' | awk '{ printf "%.0f", 60 * ($1 + $3) + $2 + $4 }'; }
report() { # passed failed
    took=$(($(date +%s) - began))
    times >"$counts/$name.times" # a subshell would tell of its own children
    if [ "$2" -eq 0 ]; then
        printf '  ok    %-24s %-5s %4s s, %s of a processor\n' "$name" "$1" "$took" "$(seconds_of "$counts/$name.times")"
    else
        printf '  FAIL  %-24s %s of %s failed; %s\n' "$name" "$2" $(($1 + $2)) "$log"
        grep -E ':[EF]:|ERROR: |runtime error|DIFF' "$log" | head -20
        grep -A12 '^not ok ' "$log" | head -60
        tail -5 "$log"
        [ -n "${SECOND:-}" ] || echo "$kind $file" >"$counts/$name.again"
    fi
    echo "$1 $2 $skipped" >"$counts/$name.count"
}

# Check's closing line: "100%: Checks: 12, Failures: 0, Errors: 0"
run_check() {
    "$file" >"$log" 2>&1
    status=$?
    # A crash of the tracer of leaks says nothing about the test: then all else is looked at alone.
    if grep -q 'LeakSanitizer has encountered a fatal error' "$log"; then
        ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" "$file" >"$log" 2>&1
        status=$?
    fi
    set -- $(sed -n 's/.*Checks: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\).*/\1 \2 \3/p' \
        "$log" | tail -1)
    if [ $# -ne 3 ] || { [ $status -ne 0 ] && [ $(($2 + $3)) -eq 0 ]; }; then
        report 0 1
    else
        report $(($1 - $2 - $3)) $(($2 + $3))
    fi
}

run_corpus() {
    dir=tests/data/fuzz/${name#fuzz_}
    n=$(find "$dir" -type f 2>/dev/null | wc -l)
    if [ "$n" -eq 0 ]; then
        echo "no corpus in $dir" >"$log"
        report 0 1
    elif "$file" "$dir"/* >"$log" 2>&1; then
        report "$n" 0
    else
        report 0 1
    fi
}

# A script of tests prints "ok NAME", "not ok NAME" or "skip NAME: why".
run_script() {
    sh "$file" >"$log" 2>&1
    status=$?
    good=$(grep -c '^ok ' "$log")
    wrong=$(grep -c '^not ok ' "$log")
    skipped=$(grep -c '^skip ' "$log")
    [ $status -ne 0 ] && [ "$wrong" -eq 0 ] && wrong=1
    if [ "$wrong" -eq 0 ] || [ -n "${SECOND:-}" ]; then
        grep '^skip ' "$log" | sed 's/^/  /'
    fi
    report "$good" "$wrong"
}

"run_$kind"
exit 0
