#!/bin/sh
# SPDX-License-Identifier: MIT
# Measures the terminal viewer: makes a run of 10,000,000 events on 64 ranks and a
# graph of 1,000,000 nodes and looks at both on a pseudo terminal.
#   sh tests/bench/bench_view.sh [PATH...]    these instead
#   B=build        what to measure
#   KEEP=folder    where the inputs are kept for the next time
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
export B LC_ALL=C.UTF-8
if [ $# -eq 0 ]; then
    scratch=${KEEP:-$(mktemp -d "${TMPDIR:-/tmp}/msprobe-bench-view-XXXXXX")} || exit 1
    [ -n "${KEEP:-}" ] || trap 'rm -rf "$scratch"' EXIT
    trap 'exit 130' INT TERM
    mkdir -p "$scratch" || exit 1
    if [ ! -f "$scratch/run/run.db" ]; then
        "$B/tests/tool_big_run" "$scratch/run" 64 10000000 && "$B/msprobe" import "$scratch/run" || exit 1
    fi
    if [ ! -d "$scratch/g" ]; then
        "$PYTHON" tests/web/page/make_graph.py "$scratch/d" 1000000 &&
            "$B/msprobe" graph_visualize -tp "$scratch/d" -o "$scratch/g" >/dev/null || exit 1
        rm -rf "$scratch/d"
    fi
    set -- "$scratch/run" "$scratch"/g/*.vis.db
fi
for path; do
    echo "$path"
    "$PYTHON" tests/bench/bench_view.py "$path" || exit 1
done
