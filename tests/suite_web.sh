#!/bin/sh
# SPDX-License-Identifier: MIT
# The server of the page: hostile requests over raw sockets, and every page in a
# browser where node, playwright-core and Chromium are here.
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-web-XXXXXX") || exit 1
server=
stop() {
    [ -z "$server" ] || kill "$server" 2>/dev/null
    [ -z "$server" ] || wait "$server" 2>/dev/null
    server=
}
trap 'stop; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
rc=0
bad() {
    echo "not ok $*"
    rc=1
}

# Starts the server and sets address, port and token from the line that it prints.
start() { # argument...
    "$B/msprobe" serve --port 0 "$@" >"$scratch/said" 2>"$scratch/log" &
    server=$!
    for _ in $(seq 100); do
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

"$PYTHON" tests/web/make_inputs.py "$scratch" || exit 1
if start "$scratch/t" --golden "$scratch/g"; then
    "$PYTHON" tests/web/sockets.py "$port" "$token" "$scratch/log" "$(ulimit -n)" || rc=1
    if kill -TERM "$server" && wait "$server"; then
        echo "ok the server ends by a signal"
        server=
    else
        bad "the server ends by a signal"
    fi
fi
exit $rc
