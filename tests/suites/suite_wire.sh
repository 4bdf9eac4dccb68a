#!/bin/sh
# SPDX-License-Identifier: MIT
# Ranks in network namespaces, whose packets a process of the test carries: slow connections are named.
suite=wire
. tests/support/checks.sh
! is_sanitized || skip 'a carrier of packets beside sanitized ranks is too slow'
[ -e /dev/net/tun ] && [ "$(id -u)" = 0 ] && unshare -n true 2>/dev/null || skip 'no network namespaces or /dev/net/tun'
${CC:-cc} -O2 -I. -o "$scratch/wire" tests/waiting/wire.c -ldl || { bad 'wire does not compile'; exit 1; }
"$scratch/wire" net 2 0 -1 -1 0 0 true
[ $? -eq 77 ] && skip 'no right to make devices'

# Records four ranks; writes the slow links that the report names.
links_of() { # NAME USUAL_US A B SLOW_US RATE
    timeout 300 "$scratch/wire" net 4 "$2" "$3" "$4" "$5" "$6" "$msprobe" run -o "$scratch/$1" -- \
        "$scratch/wire" ring 40 200000 10000 >"$scratch/out" 2>&1 || bad "$1: $(tail -1 "$scratch/out")"
    "$msprobe" report --format json "$scratch/$1" | "$PYTHON" -c '
import json, sys
print([f["ranks"] for f in json.load(sys.stdin)["findings"] if f["kind"] == "slow_link"])'
}
is() { # NAME GOT WANTED
    [ "$2" = "$3" ] && ok "$1" || bad "$1: $2, not $3"
}
is 'equal connections are not accused' "$(links_of clean 200 -1 -1 200 0)" '[]'
is 'a connection with a delay is named' "$(links_of delay 200 1 2 12000 0)" '[[1, 2]]'
is 'a rank with a delay is named' "$(links_of rank 200 3 -1 12000 0)" '[[3]]'
"$msprobe" sql "$scratch/delay" "SELECT count(DISTINCT rank) FROM events WHERE domain = 'connections'" | grep -qx 4 &&
    ok 'each rank records its connections' || bad 'connections are missing'
exit $rc
