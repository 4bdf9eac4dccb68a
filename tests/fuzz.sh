#!/bin/sh
# SPDX-License-Identifier: MIT
# Lets every fuzz target search for SECONDS_EACH.  What it finds to be new stays
# under $B/corpus for the next time; what it breaks on is kept in $B/crashes.
#   B=build/fuzz         targets, built with -fsanitize=fuzzer
#   SECONDS_EACH=60
#   ONLY=word            only what has the word in its name
B=${B:-build/fuzz}
seconds=${SECONDS_EACH:-60}
export LC_ALL=C.UTF-8 TZ=UTC
mkdir -p "$B/corpus" "$B/crashes" "$B/logs"
passed=0
failed=0

run() { # program
    name=${1##*/fuzz_}
    log=$B/logs/$name.log
    mkdir -p "$B/corpus/$name"
    cp -n "tests/data/fuzz/$name"/* "$B/corpus/$name/" 2>/dev/null
    # The margin over the time is for the first pass over the corpus.
    timeout $((seconds + 120)) "$1" -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=2048 \
        -timeout=20 -print_final_stats=1 -artifact_prefix="$B/crashes/$name-" \
        "$B/corpus/$name" >"$log" 2>&1
    status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    if [ $status -eq 0 ] && [ "${runs:-0}" -gt 0 ]; then
        passed=$((passed + 1))
        echo "ok $name: $runs executions"
    else
        failed=$((failed + 1))
        echo "not ok $name: ${runs:-no} executions; $log"
        grep -E 'ERROR|SUMMARY|runtime error|Test unit written|Assertion' "$log" | head -10
    fi
}

for t in "$B"/tests/fuzz_*; do
    case $t in *.o | *.d | *'*') continue ;; esac
    case $t in *"${ONLY:-}"*) run "$t" ;; esac
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
