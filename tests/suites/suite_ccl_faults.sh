#!/bin/sh
# SPDX-License-Identifier: MIT
# What the stand-ins of NCCL and CUDA, HCCL and ACL do wrong on order, and what msprobe report says of it: a slow rank, a
# slow link, a slow device, a clock that drifts, lost times, calls that fail.  (Deadlocks: suite_hang.sh.)
#   B=build        what to test
suite=ccl-faults
. tests/support/checks.sh
trap 'rm -rf "$scratch" /dev/shm/faults-$$-*' EXIT
unset LD_LIBRARY_PATH
export MSTX_QUIET=2
if ! can_preload; then
    echo "skip faults: a sanitizer must be first in a process"
    exit 0
fi
sql() { "$msprobe" sql "$run" "$1" | tail -n +2; }

meeting=0
app=ccl_app all_reduce=ncclAllReduce lookup=
ranks() { # how many, calls, what: rank or ring
    meeting=$((meeting + 1))
    rm -rf "$run"
    for r in $(seq 0 $(($1 - 1))); do
        RANK=$r WORLD_SIZE=$1 timeout 60 "$msprobe" run -o "$run" $lookup "$build/tests/programs/$app" "$3" \
            "faults-$$-$meeting" "$1" "$2" &
    done
    wait
    "$msprobe" report "$run" >"$scratch/report"
    head -20 "$scratch/report"
}
# A machine that is busy with other things delays ranks as well: some tries, each with faults of its own.
tell() { # EXPECTED NOT-EXPECTED COMMAND...
    expected=$1 unexpected=$2
    shift 2
    for try in 1 2 3 4 5 6; do
        "$@"
        grep -q "$expected" "$scratch/report" && ! grep -q "$unexpected" "$scratch/report" && return 0
    done
    return 1
}

slow_rank() {
    export STANDIN_SLOW_RANK=2:30000
    tell '^rank 2 makes the others wait' 'rank [013] makes the others wait' ranks 4 12 rank
    status=$?
    unset STANDIN_SLOW_RANK
    return $status
}
slow_link() {
    export STANDIN_SLOW_LINK=1-2:20000 STANDIN_DELAY_US=2000
    tell 'the link from rank 1 to rank 2 is slow' 'the link from rank [023]' ranks 4 12 ring
    status=$?
    unset STANDIN_SLOW_LINK STANDIN_DELAY_US
    return $status
}
evenly() {
    tell '^findings' 'makes the others wait\|is slow' ranks 2 12 ring
}

device() { echo "SELECT e.start_ns, e.dur_ns FROM events e JOIN tracks t ON t.id = e.track WHERE t.kind = 3 AND e.name = '$all_reduce' AND e.rank = 0 ORDER BY 1"; }
host() { echo "SELECT e.start_ns FROM events e JOIN tracks t ON t.id = e.track WHERE t.kind = 0 AND e.name = '$all_reduce' AND e.rank = 0 ORDER BY 1"; }
slow_device() {
    export STANDIN_DELAY_US=20000
    ranks 2 5 rank
    unset STANDIN_DELAY_US
    is "$(sql "SELECT count(*), min(dur_ns) >= 19900000 FROM ($(device))" | tr '\t' ' ')" '5 1'
}
# Three seconds at 150 ppm are 450 us: two of three operations would end behind the next call of the host, or
# begin before their own.  A few may, where the machine stood still while clocks were compared.
drift_once() {
    ranks 1 250 rank
    sql "WITH d AS (SELECT row_number() OVER () AS i, * FROM ($(device))), h AS (SELECT row_number() OVER () AS i, * FROM ($(host)))
        SELECT count(*), sum(d.start_ns < h.start_ns - 100000 OR d.start_ns + d.dur_ns > n.start_ns + 100000)
        FROM d JOIN h USING (i) JOIN h n ON n.i = h.i + 1" | tr '\t' ' ' >"$scratch/drift"
    read -r calls wrong <"$scratch/drift"
    echo "$wrong of $calls operations lie elsewhere"
    is "$calls" 249 && [ "$wrong" -le 60 ]
}
drift() {
    export STANDIN_DELAY_US=12000 STANDIN_DRIFT_PPM=$1
    drift_once || drift_once || drift_once || drift_once || drift_once
    status=$?
    unset STANDIN_DELAY_US STANDIN_DRIFT_PPM
    return $status
}
# Every third call fails: the program hears of it as it would without us.
fails() {
    RANK=0 STANDIN_LOSS=3 "$build/tests/programs/$app" rank "faults-$$-bare" 1 30 >"$scratch/bare" 2>&1
    bare=$?
    rm -rf "$run"
    RANK=0 STANDIN_LOSS=3 "$msprobe" run -o "$run" $lookup "$build/tests/programs/$app" rank "faults-$$-heard" 1 30 >"$scratch/heard" 2>&1
    is "$?" "$bare" && is "$bare" 10 && is "$(sql "SELECT count(*) FROM ($(host))")" 30
}
lost() {
    rm -rf "$run"
    MSTX_CPU_LOSS=10 "$msprobe" run -o "$run" "$build/tests/programs/device_app" marks 100 || return 1
    "$msprobe" report "$run" >"$scratch/report"
    cat "$scratch/report"
    grep -q 'warning .*: 10 device times were lost' "$scratch/report"
}
check 'lost times are told' lost

faults() { # LIBRARY
    check "$1: a slow rank is named, and nobody else" slow_rank
    check "$1: a slow link is named, and no other" slow_link
    check "$1: nobody is named where all are alike" evenly
    check "$1: a slow device takes its time" slow_device
    check "$1: a clock of the device that is fast is followed" drift 150
    check "$1: a clock of the device that is slow is followed" drift -150
    check "$1: calls that fail fail" fails
}
faults NCCL
# A sanitizer that looks at dlopen knows nothing of the path in the program.
export LD_LIBRARY_PATH=$build/tests/standin
app=hccl_app all_reduce=HcclAllReduce lookup=--hook_dlsym
faults HCCL
exit $rc
