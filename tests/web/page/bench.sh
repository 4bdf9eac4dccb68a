#!/bin/sh
# SPDX-License-Identifier: MIT
# Measures the page in a headless browser: makes a run of 10,000,000 events on 64
# ranks and a graph of 1,000,000 nodes, serves both and prints figures beside bars.
#   B=build        what to measure
#   KEEP=folder    where the inputs are kept for the next time
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
export LC_ALL=C.UTF-8
scratch=${KEEP:-$(mktemp -d "${TMPDIR:-/tmp}/msprobe-bench-web-XXXXXX")} || exit 1
pids=
cleanup() {
    for p in $pids; do kill "$p" 2>/dev/null; done
    [ -n "${KEEP:-}" ] || rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

if [ ! -d "$scratch/run" ]; then
    "$B/tests/tool_big_run" "$scratch/run" 64 10000000 || exit 1
fi
if [ ! -d "$scratch/g" ]; then
    "$PYTHON" tests/web/page/make_graph.py "$scratch/d" 1000000 &&
        "$B/msprobe" graph_visualize -tp "$scratch/d" -o "$scratch/g" >/dev/null || exit 1
    rm -rf "$scratch/d"
fi

start() { # path name
    rm -f "$scratch/$2.said"
    "$B/msprobe" serve --port 0 "$1" >"$scratch/$2.said" 2>"$scratch/$2.log" &
    pids="$pids $!"
    for _ in $(seq 1200); do
        grep -qs "^http" "$scratch/$2.said" && return
        kill -0 "${pids##* }" 2>/dev/null || break
        sleep 0.1
    done
    echo "bench: the server does not start: $(tail -1 "$scratch/$2.log")" >&2
    exit 1
}
start "$scratch/run" run
start "$(ls "$scratch"/g/*.vis.db)" graph
node tests/web/page/bench.mjs "$(head -1 "$scratch/run.said")" "$(head -1 "$scratch/graph.said")"
