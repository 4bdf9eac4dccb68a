#!/bin/sh
# SPDX-License-Identifier: MIT
# Clocks of hosts compared by TCP: processes without MPI that play hosts whose clocks are off by a
# second and drift, meet through the run or at an address, and are brought to one clock; what cannot
# meet is not waited for.
#   B=build        what to test
suite=clock
. tests/support/checks.sh
export MSTX_QUIET=2 MSTX_CLOCK_EVERY=1

sql() { "$msprobe" sql "$run" "$1" | tail -n +2; }

rank() { # RANK ROUNDS DIR CLOCK
    RANK=$1 WORLD_SIZE=2 MSTX_CLOCK_FAKE=$4 "$msprobe" run -o "$3" -- "$build/tests/programs/clock_app" "$2"
}
two_hosts() { # CLOCK-OF-RANK-1 [DIR-OF-RANK-1]
    rm -rf "$run"
    rank 0 400 "$run" 1:0:0 &
    rank 1 350 "${2:-$run}" "2:$1" &
    wait
}
# How far the times of the run are from the true ones must be the same on both, window by window.
apart_ns() {
    sql "SELECT CAST(max(abs(a.late - b.late)) AS INTEGER) FROM
        (SELECT CAST(value AS INTEGER) / 500000000 AS w, min(start_ns - CAST(value AS INTEGER)) AS late FROM events
         WHERE name = 'true' AND rank = 0 GROUP BY w HAVING count(*) > 25) a JOIN
        (SELECT CAST(value AS INTEGER) / 500000000 AS w, min(start_ns - CAST(value AS INTEGER)) AS late FROM events
         WHERE name = 'true' AND rank = 1 GROUP BY w HAVING count(*) > 25) b USING (w)"
}
# Within a microsecond where the machine let some messages through undisturbed; the run says whether it did, and a
# busy one gets other tries.  At last it must keep to what it says.
clocks_meet() { # CLOCK-OF-RANK-1
    for try in 1 2 3 4 5 6; do
        two_hosts "$1"
        apart=$(apart_ns)
        unsure=$(sql 'SELECT max(uncertainty_ns) FROM clock_offsets')
        echo "clocks are $apart ns apart, uncertainty $unsure ns, $(sql 'SELECT count(*) FROM clock_offsets') points"
        is "$(sql "SELECT DISTINCT method FROM clock_offsets")" pings && [ -n "$apart" ] &&
            [ "$apart" -le 1000 ] && return 0
    done
    [ -n "$apart" ] && [ "$unsure" -gt 20000 ] && [ "$apart" -le $((2 * unsure)) ]
}
by_address() {
    by_address_once || by_address_once || by_address_once
}
by_address_once() {
    rm -rf "$scratch/elsewhere"
    port=$((20000 + $$ % 10000))
    export MASTER_ADDR=127.0.0.1 MSTX_CLOCK_PORT=$port
    two_hosts 1000000000:50 "$scratch/elsewhere"
    unset MASTER_ADDR MSTX_CLOCK_PORT
    mv "$scratch"/elsewhere/rank_1 "$run" && rm -rf "$scratch/elsewhere" || return 1
    apart=$(apart_ns)
    echo "clocks are $apart ns apart"
    [ -n "$apart" ] && [ "$apart" -le 1000000 ]
}
leaves_nothing() { is "$(find "$run" -name '.clock*')" ''; }
one_host() {
    rm -rf "$run"
    rank 0 50 "$run" 1:0:0 &
    rank 1 30 "$run" 1:0:0 &
    wait
    is "$(sql 'SELECT count(DISTINCT host) FROM clock_offsets WHERE offset_ns <> 0')" 0
}
# Nobody answers: rank 1 alone, then with the address of somebody who is no longer there.
alone() {
    rm -rf "$run"
    begin=$(date +%s)
    rank 1 30 "$run" 2:5:0 || return 1
    printf '%s\n' '1 2 99999999 9' 127.0.0.1 >"$run/.clock-at-job"
    rank 1 30 "$run" 2:5:0 || return 1
    printf 'not an address at all' >"$run/.clock-at-job"
    rank 1 30 "$run" 2:5:0 || return 1
    [ $(($(date +%s) - begin)) -lt 30 ]
}
# Whoever listens there says something else, or nothing.
stranger() {
    rm -rf "$run"
    mkdir -p "$run"
    python3 -c 'import os, socket, sys, threading, time
s = socket.create_server(("127.0.0.1", 0))
open(sys.argv[1], "w").write("1 2 %d %d\n127.0.0.1\n" % (os.getpid(), s.getsockname()[1]))
def serve():
    while True:
        c = s.accept()[0]
        c.send(b"HTTP/1.0 400 what do you want here, there is nothing\r\n\r\n")
        time.sleep(0.05)
        c.close()
threading.Thread(target=serve, daemon=True).start()
time.sleep(2)' "$run/.clock-at-job" &
    rank 1 100 "$run" 2:5:0
    status=$?
    wait
    is "$status" 0 && is "$(sql 'SELECT count(*) FROM clock_offsets')" 0
}

# Somebody who says a byte now and then instead of a greeting is sent away.
dribble() {
    rm -rf "$run"
    rank 0 800 "$run" 1:0:0 &
    python3 -c 'import glob, socket, sys, time
for _ in range(100):
    found = glob.glob(sys.argv[1] + "/.clock-at*")
    if found:
        break
    time.sleep(0.1)
begin = time.monotonic()
s = socket.create_connection(("127.0.0.1", int(open(found[0]).readline().split()[3])))
s.settimeout(0.5)
while time.monotonic() - begin < 7.5:
    try:
        s.send(b"x")
        if s.recv(1) == b"":
            break
    except TimeoutError:
        continue
    except OSError:
        break
print("it was sent away after %.1f s" % (time.monotonic() - begin))
sys.exit(time.monotonic() - begin >= 7.5)' "$run"
    status=$?
    wait
    return $status
}

check 'a second ahead, 50 ppm fast' clocks_meet 1000000000:50
check 'the run keeps nothing of it' leaves_nothing
# Everybody who looks at the run sees how sure the times are.
shown() {
    unsure=$(sql 'SELECT max(uncertainty_ns) FROM clock_offsets')
    printf 1 >"$scratch/keys"
    "$msprobe" report "$run" | grep -q 'clocks of 2 hosts brought together, sure to [0-9]' &&
        "$msprobe" view --script "$scratch/keys" "$run" | grep -q 'clocks  *of 2 hosts brought together, sure to [0-9]' || return 1
    "$msprobe" serve --port 0 "$run" >"$scratch/address" &
    server=$!
    for i in $(seq 100); do
        grep -q '^http' "$scratch/address" && break
        sleep 0.1
    done
    python3 -c 'import json, sys, urllib.request as u
address, token = open(sys.argv[1]).readline().strip().split("/#token=")
about = json.load(u.urlopen(u.Request(address + "/api/about", headers={"Authorization": "Bearer " + token})))
print(about["timeline"]["clock"])
sys.exit(about["timeline"]["clock"] < float(sys.argv[2]))' "$scratch/address" "$unsure"
    status=$?
    kill "$server"
    wait "$server"
    return $status
}
check 'every view tells how sure it is' shown
check 'a second behind, 50 ppm slow' clocks_meet -1000000000:-50
check 'ranks that record elsewhere meet at an address' by_address
check 'processes of one host have nothing to ask' one_host
check 'nobody is waited for' alone
check 'a stranger is not believed' stranger
check 'a stranger keeps no place' dribble
# All ranks of a job get the same answer, also in groups, and leave nothing; where a member or
# the leader of a group is missing, the answer is no.
agree() { # EXPECTED SIZE [MISSING PATIENCE_MS]
    answer=$1
    shift
    rm -rf "$run"
    is "$(MSTX_OUT=$run timeout 300 "$build/tests/programs/agree_app" "$@" 2>/dev/null)" "$answer" && leaves_nothing
}
if is_sanitized; then
    echo 'skip hundreds of ranks agree: each is a process, too many under a sanitizer'
else
    check 'two ranks agree that they are here' agree 'yes 2 no 0' 2
    check 'one group of ranks agrees' agree 'yes 128 no 0' 128
    check 'a rank alone in its group agrees' agree 'yes 129 no 0' 129
    check 'three groups of ranks agree' agree 'yes 300 no 0' 300
    check 'ranks in groups miss one' agree 'yes 0 no 299' 300 290 1500
    check 'ranks in groups miss a leader' agree 'yes 0 no 299' 300 128 1500
    check 'ranks in groups miss rank 0' agree 'yes 0 no 299' 300 0 1500
fi
exit $rc
