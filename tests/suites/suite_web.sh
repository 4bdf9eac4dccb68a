#!/bin/sh
# SPDX-License-Identifier: MIT
# The server of the page: hostile requests over raw sockets, and every page in a
# browser where node, playwright-core and Chromium are here.
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-web-XXXXXX") || exit 1
server=
stop() {
    for p in $server $other; do kill "$p" 2>/dev/null; done
    for p in $server $other; do wait "$p" 2>/dev/null; done
    server=
    other=
}
other=
trap 'stop; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
rc=0
bad() {
    echo "not ok $*"
    rc=1
}

# Starts the server and sets address, port and token from the line that it prints.
start() { # argument...
    : >"$scratch/said" # now: the server's own redirection may come after a look at what another said
    "$B/msprobe" serve --port 0 "$@" >"$scratch/said" 2>"$scratch/log" &
    server=$!
    for _ in $(seq 600); do
        address=$(sed -n '1s/^\(http.*\)$/\1/p' "$scratch/said")
        [ -z "$address" ] || break
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    if [ -z "$address" ]; then
        bad "the server starts: $(tail -1 "$scratch/log")"
        return 1
    fi
    port=$(echo "$address" | sed 's/.*:\([0-9]*\)\/.*/\1/')
    token=${address##*token=}
}

"$PYTHON" tests/web/page/make_inputs.py "$scratch" || exit 1
if start "$scratch/t" --golden "$scratch/g"; then
    "$PYTHON" tests/web/page/sockets.py "$port" "$token" "$scratch/log" "$server" || rc=1
    if kill -TERM "$server" && wait "$server"; then
        echo "ok the server ends by a signal"
        server=
    else
        bad "the server ends by a signal"
    fi
fi
"$PYTHON" tests/web/page/signals.py "$B/msprobe" "$scratch" || rc=1
# What the page does wrong fails at once.  Where Chromium itself ends (75), which it does when a machine
# has no memory left, nothing is known of the page: that is tried once more.
browse() { # script argument...
    timeout 900 node "$@" >"$scratch/browsed" 2>&1
    browsed=$?
    if [ $browsed -eq 75 ]; then
        sed 's/^/# Chromium was lost: /' "$scratch/browsed"
        timeout 900 node "$@" >"$scratch/browsed" 2>&1
        browsed=$?
    fi
    cat "$scratch/browsed"
    [ $browsed -eq 0 ] || bad "$(basename "$1"), which ended with $browsed"
}

# A server of its own beside the one that start began; sets address.
beside() { # argument...
    start "$@" || return
    other="$other $server"
    server=
}

# Eight ranks of which one is slow; a comparison; and a run that gets longer while it is looked at.
cluster() {
    [ -x "$B/tests/tool_sim" ] || { echo "skip the cluster in a browser: no $B/tests/tool_sim"; return; }
    "$B/tests/tool_sim" "$scratch/sim" straggler 0.3 1 2 2 2 30 >/dev/null &&
        "$B/tests/tool_sim" "$scratch/grow" clean 0 1 1 1 2 5 >/dev/null || { bad "a simulated run is made"; return; }
    beside "$scratch/sim" || return
    run=$address
    beside "$scratch/grow" || return
    growing=$address
    beside "$scratch/t" || return
    alone=$address
    start "$scratch/t" --golden "$scratch/g" || return
    export SHOTS="$B/tests/logs"
    browse tests/web/page/hands.mjs "$run" "$address" "$alone"
    browse tests/web/page/keys.mjs "$run" "$address"
    browse tests/web/page/axe.mjs run "$run" comparison "$address" dump "$alone"
    browse tests/web/page/cluster.mjs "$run" "$address" "$growing" \
        "$B/tests/tool_sim $scratch/grow clean 0 1 1 1 2 \$((\$(date +%s) % 500 + 20))"
}

# Evidence of findings, searches and hundreds of ranks; and a folder to choose from.
choices() {
    [ -x "$B/tests/tool_sim" ] || return
    mkdir "$scratch/all" && mv "$scratch/t" "$scratch/g" "$scratch/sim" "$scratch/all" &&
        "$B/msprobe" data2db --db "$scratch/all/tr" --data "$scratch/all/t" >/dev/null &&
        printf 'NPU Name,Bench Name,NormRelativeErr,Result\na,a,0.1%%,pass\nb,b,50%%,error\nc,c,2%%,warning\n' \
            >"$scratch/all/compare_result_1.csv" &&
        "$B/tests/tool_sim" "$scratch/all/before" clean 0 1 2 2 2 30 >/dev/null &&
        printf '%s\n' 'start_time_stamp,end_time_stamp,device_addr,stream_id,pool_type,size,actual_peak_memory,file_name,line_num,type,tag,is_persistent,is_small' \
            '1,9,0x1000,0,0,4096,4096,net.py,3,kWeight,Dense,1,0' '2,5,0x3000,0,0,12288,16384,net.py,7,kTemp,MatMul,0,0' >"$scratch/all/memory_block.csv" &&
        "$B/tests/tool_sim" "$scratch/many" straggler 0.2 7 8 4 8 10 4 8 256 >/dev/null || { bad "a folder of runs is made"; return; }
    beside "$scratch/all/sim" || return
    run=$address
    beside "$scratch/many" || return
    browse tests/web/page/evidence.mjs "$run" "$address"
    start "$scratch/all" || return
    browse tests/web/page/choose.mjs "$address" "$server"
    stop
}

# Every page in a browser; two servers, one with a comparison and one with a trace.
pages() {
    if ! command -v node >/dev/null; then
        echo "skip pages in a browser: no node here"
        return
    fi
    node tests/web/page/csv.mjs || rc=1
    if [ ! -d tests/web/page/node_modules/playwright-core ] && [ -n "${CI:-}" ] && command -v npm >/dev/null; then
        (cd tests/web/page && npm ci --silent --no-audit --no-fund --ignore-scripts) >&2
    fi
    beside "$scratch/run.json" || return
    trace=$address
    if start "$scratch/t" --golden "$scratch/g"; then
        browse tests/web/page/pages.mjs "$address" "$trace"
    fi
    stop
    cluster
    stop
    choices
}
pages
exit $rc
