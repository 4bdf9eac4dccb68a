#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the peer of bench_mstx in a recording session of its own; prints what it prints, or
# nothing when LTTng is not there.
#   sh tests/programs/lttng.sh
home=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-lttng-XXXXXX") || exit 1
export HOME="$home" LTTNG_HOME="$home"
trap 'kill "$daemon" 2>/dev/null; rm -rf "$home"' EXIT
command -v lttng-sessiond >/dev/null || exit 0
cc=${CC:-cc}
"$cc" -O2 -I. -o "$home/peer" tests/programs/lttng_peer.c -llttng-ust -ldl || exit 0
lttng-sessiond --no-kernel >/dev/null 2>&1 &
daemon=$!
sleep 1
{
    lttng create bench --output="$home/trace"
    lttng enable-channel --userspace --subbuf-size=4M --num-subbuf=8 wide
    lttng enable-event --userspace --channel=wide peer:mark
    lttng start
} >/dev/null 2>&1 || exit 0
"$home/peer"
lttng destroy >/dev/null 2>&1
