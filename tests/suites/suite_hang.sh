#!/bin/sh
# SPDX-License-Identifier: MIT
# Devices and communication libraries as users of msprobe run meet them: queues of OpenCL, NCCL on
# several ranks, programs that look functions up, and ranks that do not come back.
#   B=build        what to test
suite=hang
. tests/support/checks.sh
meeting=0
trap 'rm -rf "$scratch" /dev/shm/suite-$$-*' EXIT
unset LD_LIBRARY_PATH

if ! can_preload; then
    echo "skip hangs: a sanitizer must be first in a process"
    exit 0
fi
fresh() { rm -rf "$run"; }
sql() { "$msprobe" sql "$run" "$1" | tail -n +2; }

same_symbols() { symbols_of "$build/$1.so" | diff "tests/data/$1.symbols" -; }
check 'libmstx_hook.so shows the names it stands for' same_symbols libmstx_hook
check 'libmstx_dlsym.so shows dlsym' same_symbols libmstx_dlsym
needs() { needs_only "$build/$1.so" libc.so.6 libmstx.so.0; }
check 'libmstx_hook.so needs libc and the recorder' needs libmstx_hook
check 'libmstx_dlsym.so needs libc' needs libmstx_dlsym

# Every name that the description of the interfaces gives has its hook.
spec=../shared/spec/comm-and-device.md
covered() {
    grep -oE '\b(nccl|Hccl)[A-Z][A-Za-z]*\(' "$spec" | tr -d '(' | sort -u >"$scratch/names"
    [ "$(wc -l <"$scratch/names")" -gt 50 ] || return 1
    symbols_of "$build/libmstx_hook.so" | comm -23 "$scratch/names" - | grep . && return 1
    return 0
}
if [ -e "$spec" ]; then
    check 'every prototype of the description has its hook' covered
else
    echo "skip prototypes: no $spec here"
fi

# ---- devices --------------------------------------------------------------------------------

opencl() {
    fresh
    "$msprobe" run -o "$run" "$build/tests/programs/device_app" opencl-hooked 50 >"$scratch/out" 2>>"$said"
    status=$?
    [ $status -eq 77 ] && return 0
    [ $status -eq 0 ] && is "$(sql "SELECT sum(events) FROM tracks WHERE kind = 3 AND name NOT LIKE '% commands'")" 50
}
check 'queues of OpenCL are known without a word of the program' opencl
# What the program reads from its own events, start and end by the steady clock, is what was recorded.
commands() {
    [ $status -eq 77 ] && return 0
    is "$(sql "SELECT count(*) FROM events e JOIN tracks t ON t.id = e.track WHERE t.kind = 0 AND e.name = 'clEnqueueFillBuffer'")" 50 || return 1
    sql "SELECT e.start_ns - (SELECT min(start_ns) FROM events), dur_ns FROM events e JOIN tracks t ON t.id = e.track
         WHERE t.name LIKE '% commands' AND e.name = 'clEnqueueFillBuffer' ORDER BY e.start_ns" >"$scratch/recorded"
    paste "$scratch/out" "$scratch/recorded" | awk '
        function far(a, b) {return a - b > 3000 || b - a > 3000}
        {n += NF == 4; since = $1 - first; was = $3 - base}
        NR == 1 {first = $1; base = $3; next}
        far(since, was) || far($2 - $1, $4) {print "expected", since, $2 - $1, "found", was, $4; wrong++}
        END {exit n != 50 || wrong}'
}
check 'commands of OpenCL have the times of their events' commands
without() {
    fresh
    "$msprobe" run -o "$run" --comm none "$build/tests/programs/device_app" opencl-hooked 5 >"$scratch/out" 2>>"$said"
    status=$?
    [ $status -eq 77 ] && return 0
    [ $status -eq 0 ] && is "$(sql "SELECT count(*) FROM tracks WHERE kind = 3")" 0
}
check 'run --comm none leaves them alone' without

# ---- ranks ------------------------------------------------------------------------------------

ranks() { # how many, calls, then options of run; of $app (ccl_app), doing $what (rank)
    n=$1 calls=$2
    shift 2
    meeting=$((meeting + 1)) # a new communicator
    fresh
    i=0
    pids=
    while [ $i -lt "$n" ]; do
        RANK=$i WORLD_SIZE=$n timeout -k 1 "${limit:-20}" "$msprobe" run -o "$run" "$@" \
            "$build/tests/programs/${app:-ccl_app}" "${what:-rank}" "suite-$$-$meeting" "$n" "$calls" 2>"$scratch/err.$i" &
        pids="$pids $!"
        i=$((i + 1))
    done
}
together() {
    ranks 3 20
    wait
    is "$(sql "SELECT count(DISTINCT rank) FROM processes")" 3 &&
        is "$(sql "SELECT count(*) FROM events WHERE name = 'ncclAllReduce' AND domain = 'communication'")" 120 &&
        is "$(sql "SELECT count(*) FROM hangs")" 0
}
check 'NCCL on three ranks, host and device, every call' together
slow() {
    STANDIN_SLOW_RANK=1:20000
    export STANDIN_SLOW_RANK
    ranks 3 5
    wait
    unset STANDIN_SLOW_RANK
    # the others wait on the device for the slow one
    [ "$(sql "SELECT count(*) FROM events e JOIN tracks t ON e.track = t.id
              WHERE t.kind = 3 AND e.name = 'ncclAllReduce' AND e.rank = 0 AND dur_ns > 15e6")" -ge 4 ]
}
check 'a slow rank makes the others wait on the device' slow
looked_up() {
    fresh
    LD_LIBRARY_PATH=$build/tests/standin "$msprobe" run -o "$run" --hook_dlsym \
        "$build/tests/programs/ccl_app" hccl 2>>"$said" &&
        [ "$(sql "SELECT count(*) FROM events WHERE name LIKE 'Hccl%'")" -ge 30 ]
}
check 'run --hook_dlsym sees functions that are looked up' looked_up

said_so() {
    LD_LIBRARY_PATH=$build/tests/standin MSTX_QUIET=0 "$msprobe" run -o "$run" "$build/tests/programs/ccl_app" hccl 2>"$scratch/out"
    grep -q 'none of its calls came to the hooks.*--hook_dlsym' "$scratch/out"
}
check 'without it the user is told what to try' said_so

# ---- hangs --------------------------------------------------------------------------------------

# Rank R does not come back from its call N.  While it hangs, within two seconds of the limit and what
# starting takes, the report names it and the call; and all of them live on.
deadlock() { # R N NAME
    limit=60
    STANDIN_DEADLOCK=$1:$2
    export STANDIN_DEADLOCK
    ranks 3 10 --hang_timeout 1 $lookup
    unset STANDIN_DEADLOCK limit
    i=0
    until [ "$(cat "$scratch"/err.[012] | grep -c 'waits in\|has not come')" -ge 3 ] || [ $i -gt 300 ]; do
        i=$((i + 1))
        sleep 0.1
    done
    "$msprobe" report "$run" --format json >"$scratch/report"
    "$msprobe" report "$run" >>"$said"
    kill -0 $pids
    alive=$?
    kill $pids
    wait
    is $alive 0 && grep -q "rank $1 waits in $3 (call $2)" "$scratch/err.$1" &&
        grep -q "\"text\": \"rank $1 .*waited in $3 (call $2)" "$scratch/report" &&
        ! grep -q '"text": "rank . did not come' "$scratch/report" &&
        waited=$(sql "SELECT max(waited_ns) FROM hangs WHERE on_device = 0") &&
        [ "$waited" -le 3000000000 ] &&
        sql "SELECT stacks FROM hangs WHERE rank = $1" | grep -q pause &&
        "$msprobe" report --most 0 "$run" | sed -n "/^stacks of rank $1 in $3/,/^\$/p" | grep -q pause
}
# A machine that stood still meanwhile gets another try.
told() { deadlock "$@" || deadlock "$@" || deadlock "$@"; }
app=ccl_app what=mixed lookup=
check 'a rank that does not come back is named with its call, and its stack kept' told 1 4 ncclAllReduce
check 'the first as well, in another call' told 0 2 ncclAllGather
check 'and the last' told 2 3 ncclReduceScatter
# A sanitizer that looks at dlopen knows nothing of the path in the program.
export LD_LIBRARY_PATH=$build/tests/standin
app=hccl_app lookup=--hook_dlsym
check 'HCCL: rank 0 in its first call' told 0 0 HcclAllReduce
check 'HCCL: rank 1 in another' told 1 5 HcclBarrier
check 'HCCL: rank 2 in a third' told 2 4 HcclAlltoAll
unset app what lookup LD_LIBRARY_PATH
patient() {
    STANDIN_DEADLOCK=0:0
    export STANDIN_DEADLOCK
    limit=4
    ranks 1 3 --hang_timeout 0
    unset STANDIN_DEADLOCK limit
    wait
    ! grep -q waits "$scratch/err.0" && is "$(sql 'SELECT count(*) FROM hangs')" 0
}
check 'run --hang_timeout 0 does not look' patient

# Rank 2 of three comes late to what mpi_dead KIND does; in the report of the run he is to blame, and
# nobody else, for the call; the others wait in it, for him where it has another end.
mpi() { # KIND CALL [from|to]
    kind=$1 call=$2 way=$3
    fresh
    timeout 40 "mpirun.$flavour" -n 3 "$msprobe" run -o "$run" --hang_timeout 1 "$scratch/dead" "$kind" 2 4 2>"$scratch/err" ||
        return 1
    "$msprobe" report --most 0 "$run" >"$scratch/report"
    cat "$scratch/err" "$scratch/report" >>"$said"
    grep -q "error .*rank 2 is missing from ${way:+the other end of }$call$nth of MPI_COMM_WORLD.*, in which [12] ranks* waited" \
        "$scratch/report" &&
        grep -q "mstx: rank [01] waits in $call$nth${way:+ $way rank 2} of MPI_COMM_WORLD" "$scratch/err" &&
        grep -q "rank [01] .* waited in $call$nth${way:+ $way rank 2} of MPI_COMM_WORLD" "$scratch/report" &&
        ! grep 'error .*rank [01] did not come' "$scratch/report" &&
        waited=$(sql "SELECT max(waited_ns) FROM hangs WHERE on_device = 0") && [ "$waited" -le 3000000000 ]
}
nth='\( (call [0-9]*)\)*'
late() { mpi "$@" || mpi "$@"; } # a machine that stood still meanwhile gets another try
for flavour in openmpi mpich; do
    if ! command -v "mpicc.$flavour" >/dev/null || [ ! -e "$build/libmstx_mpi_$flavour.so" ] ||
        ! "mpicc.$flavour" -w -O1 -o "$scratch/dead" tests/programs/mpi_dead.c; then
        echo "skip $flavour: it is not here"
        continue
    fi
    check "$flavour: a rank that does not come to a collective is named" late allreduce MPI_Allreduce
    check "$flavour: and to one that the others wait for with MPI_Wait" late iallreduce MPI_Iallreduce
    check "$flavour: and to one with its neighbours" late neighbour MPI_Neighbor_allgather
    check "$flavour: who does not send" late recv MPI_Recv from
    check "$flavour: to one that only waits" late irecv MPI_Irecv from
    check "$flavour: who does not receive from one that only waits" late isend MPI_Issend to
    check "$flavour: one of several that are waited for together" late waitall MPI_Irecv from
    check "$flavour: at the other end of a prepared one" late persistent 'MPI_Recv_init started' from
    check "$flavour: of a probe" late probe MPI_Probe from
    check "$flavour: what nobody waits for does not hang" late listener MPI_Irecv from
    is_quiet() { ! grep 'rank -1\|rank [0-9]* waits in MPI_Irecv (call 0)' "$scratch/err"; }
    check "$flavour: and is not told" is_quiet
    check "$flavour: who waits for him elsewhere is not to blame" late between MPI_Barrier
done
exit $rc
