#!/bin/sh
# SPDX-License-Identifier: MIT
# Plays simulated schedules, a share of the seeds on each processor; prints what was wrong with which
# seed and, last, "N passed, N failed".
#   sh tests/simulate.sh SCHEDULES [FIRST]
B=${B:-build}
count=${1:-1000000}
first=${2:-1}
jobs=${JOBS:-$(nproc)}
share=$(((count + jobs - 1) / jobs))
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
trap 'exit 130' INT TERM
seq 0 $((jobs - 1)) | while read -r i; do echo "$share $((first + i * share))"; done |
    xargs -P "$jobs" -L 1 "$B/tests/tool_simulate" >"$out"
cat "$out"
awk '/ schedules in / { done += $1; wrong += $6 } END { print done - wrong " passed, " wrong + 0 " failed"; exit wrong != 0 || done == 0 }' "$out"
