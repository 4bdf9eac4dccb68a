#!/bin/sh
# SPDX-License-Identifier: MIT
# torch.distributed over gloo in two processes, unchanged, under msprobe run.
#   B=build        what to test
suite=gloo
. tests/support/checks.sh
export MSTX_QUIET=2
if [ ! -e "$build/python/mstx.so" ] || ! "$PYTHON" -c 'import torch.distributed as d; assert d.is_gloo_available() if hasattr(d, "is_gloo_available") else d.is_available()' 2>/dev/null; then
    echo "skip gloo: no PyTorch with it"
    exit 0
fi
if ! can_preload; then
    echo "skip gloo: a sanitizer must come first in a process"
    exit 0
fi
for r in 0 1; do
    RANK=$r timeout 120 "$build/msprobe" run -o "$scratch/run" -- "$PYTHON" tests/programs/gloo_app.py $r "$scratch/meet" \
        >"$scratch/out.$r" 2>&1 &
done
wait
if grep -qx good "$scratch/out.0" && grep -qx good "$scratch/out.1"; then
    echo "ok results-are-the-same"
else
    echo "not ok results-are-the-same"
    tail -5 "$scratch/out.0" "$scratch/out.1" | sed 's/^/    /'
    exit 1
fi
found=$("$build/msprobe" sql "$scratch/run" "SELECT count(*) FROM events WHERE domain = 'communication'
    AND name LIKE '%count%1024%dataType%fp32%groupName%opName%HcclAllreduce%'" | tail -1)
all=$("$build/msprobe" sql "$scratch/run" "SELECT count(*) FROM events WHERE domain = 'communication' AND name <> 'wait'" | tail -1)
waits=$("$build/msprobe" sql "$scratch/run" "SELECT count(*) FROM events WHERE domain = 'communication' AND name = 'wait'" | tail -1)
if [ "$found" = 8 ] && [ "$all" = 16 ] && [ "$waits" = 4 ]; then
    echo "ok every-call-is-a-range"
else
    echo "not ok every-call-is-a-range"
    echo "    $found all-reduces of 8, $all calls of 16, $waits waits of 4"
    exit 1
fi

# Every kind of call, with what belongs to it.
run=$scratch/more
sql() { "$build/msprobe" sql "$run" "$1" | tail -n +2 | tr '\t\n' ', '; }
for r in 0 1; do
    RANK=$r timeout 120 "$build/msprobe" run -o "$run" -- "$PYTHON" tests/programs/gloo_more.py $r "$scratch/meet2" \
        >"$scratch/out.$r" 2>&1 &
done
wait
all_kinds_run() { cat "$scratch/out.0" "$scratch/out.1"; is "$(cat "$scratch/out.0" "$scratch/out.1" | grep -cx good)" 2; }
check every-kind-of-call-works all_kinds_run
check groups-have-their-members is "$(sql 'SELECT size, ranks FROM comm_groups')" '2,0,1 2,0,1 '
check root-and-reduction is "$(sql "SELECT op, peer, reduce FROM comm_ops WHERE rank = 0 AND seq < 3 AND op IN ('Reduce', 'Broadcast', 'AllReduce') AND
    comm_group = (SELECT min(comm_group) FROM comm_ops) ORDER BY seq")" 'Reduce,0,sum Broadcast,1,na AllReduce,,max '
check a-group-by-its-place is "$(sql "SELECT op FROM comm_ops WHERE rank = 1 AND comm_group <> (SELECT comm_group FROM comm_ops WHERE op = 'Reduce') ORDER BY seq")" 'AllReduce Barrier '
check between-two-and-by-batches is "$(sql "SELECT op, count(*) FROM comm_ops WHERE op IN ('Send', 'Recv') AND rank = 0 GROUP BY op ORDER BY op")" 'Recv,1 Send,3 '
check an-asynchronous-call-lasts-until-it-was-waited-for is "$(sql "SELECT count(*), min(end_ns - start_ns) >= 200000000 FROM comm_ops
    WHERE op = 'AllReduce' AND seq = 7")" '2,1 '
check objects-travel-as-bytes is "$(sql "SELECT DISTINCT op FROM comm_ops WHERE type = 'uint8' AND rank = 0 ORDER BY op")" 'AllGather Broadcast Scatter '
check nothing-stays-open is "$(sql 'SELECT sum(unfinished) FROM processes')" '0 '

# Functional collectives and compiled regions, which newer versions have.
if "$PYTHON" -c 'import torch; torch.ops._c10d_functional.all_to_all_single' 2>/dev/null; then
    run=$scratch/functional
    backends=$(command -v g++ >/dev/null && echo 3 || echo 2)
    export TORCHINDUCTOR_CACHE_DIR="$scratch/inductor"
    for r in 0 1; do
        RANK=$r timeout 200 "$build/msprobe" run -o "$run" -- "$PYTHON" tests/programs/gloo_functional.py $r "$scratch/meet5" \
            >"$scratch/out.$r" 2>&1 &
    done
    wait
    check functional-collectives-run all_kinds_run
    check each-is-a-range is "$(sql "SELECT op, reduce, count(*) FROM comm_ops WHERE op <> 'Wait'
        GROUP BY op, reduce ORDER BY op, reduce")" \
        "AllGather,na,2 AllReduce,max,2 AllReduce,min,$((4 * backends)) AllReduce,sum,4 AlltoAll,na,2 Barrier,na,2 Broadcast,na,2 ReduceScatter,sum,2 "
    check waits-reduce-nothing is "$(sql "SELECT DISTINCT type, reduce FROM comm_ops WHERE op = 'Wait'")" 'na,na '
    check a-part-counts-as-one-rank-has-it is "$(sql "SELECT DISTINCT count FROM comm_ops WHERE op = 'ReduceScatter'")" '4 '
    check a-result-lasts-until-it-is-read is "$(sql "SELECT count(*), min(end_ns - start_ns) >= 200000000 FROM comm_ops
        WHERE op = 'AllReduce' AND seq = 0")" '2,1 '
    check functional-ones-end is "$(sql 'SELECT sum(unfinished) FROM processes')" '0 '
fi

# Gradients are reduced in C++: they are seen, and what is learnt is the same to the bit.
learn() { # RANKS HOW COMMAND...: what each rank learnt
    ranks=$1 how=$2
    shift 2
    rm -f "$scratch/meet3"
    for r in $(seq 0 $((ranks - 1))); do
        RANK=$r timeout 120 "$@" "$PYTHON" tests/programs/gloo_ddp.py "$r" "$ranks" "$scratch/meet3" "$how" \
            >"$scratch/learnt.$r" 2>"$scratch/err.$r" &
    done
    wait
    cat "$scratch"/learnt.[0-9]
    cat "$scratch"/err.[0-9] >&2
    rm -f "$scratch"/learnt.[0-9]
}
same_training() { # RANKS HOW REDUCTIONS
    run=$scratch/ddp.$2
    rm -rf "$run"
    learn "$1" "$2" >"$scratch/bare" || return 1
    learn "$1" "$2" "$build/msprobe" run -o "$run" -- >"$scratch/heard"
    is "$(wc -l <"$scratch/bare")" "$1" && is "$(cat "$scratch/heard")" "$(cat "$scratch/bare")" &&
        is "$(sql "SELECT count(*), sum(end_ns IS NULL OR end_ns <= start_ns) FROM comm_ops WHERE op = 'AllReduce' AND rank = 0")" "$3"
}
check gradients-of-three-ranks same_training 3 plain '6,0 '
check sparse-gradients same_training 3 sparse '12,0 '
check gradients-in-their-buckets same_training 2 view '6,0 '
check a-hook-of-the-program same_training 3 own '6,0 '
check a-hook-that-comes-late same_training 2 late '6,0 '
uneven_training() { # RANKS HOW: the work of the ranks is not the same, so neither are their calls
    run=$scratch/ddp.$2
    learn "$1" "$2" >"$scratch/bare" || return 1
    learn "$1" "$2" "$build/msprobe" run -o "$run" -- >"$scratch/heard"
    is "$(wc -l <"$scratch/bare")" "$1" && is "$(cat "$scratch/heard")" "$(cat "$scratch/bare")" &&
        is "$(sql "SELECT count(*) > 0, sum(end_ns IS NULL OR end_ns <= start_ns) FROM comm_ops WHERE op = 'AllReduce' AND rank = 0")" '1,0 '
}
check a-rank-that-has-less-to-do uneven_training 3 join
check a-join-after-a-step uneven_training 3 join-later
check a-join-shared-by-all uneven_training 3 join-all
check parameters-are-compared is "$(sql "SELECT rank, count(*) FROM comm_ops WHERE op = 'AllGather' AND seq = 0 GROUP BY rank")" '0,1 1,1 2,1 '
check parameters-are-broadcast is "$(sql "SELECT count(*) > 0 FROM comm_ops WHERE op = 'Broadcast' AND rank = 0")" '1 '

# Who waits is told while he waits, in less than two seconds more than the limit.
late() { # HOW
    run=$scratch/late.$1
    rm -rf "$run" "$scratch/meet4"
    for r in 0 1; do
        MSTX_QUIET=0 RANK=$r WORLD_SIZE=2 timeout 120 "$build/msprobe" run -o "$run" --hang-timeout 1 -- \
            "$PYTHON" tests/programs/gloo_dead.py $r "$scratch/meet4" "$1" >"$scratch/out.$r" 2>&1 &
    done
    wait
    cat "$scratch/out.0" "$scratch/out.1"
    "$build/msprobe" report "$run" >"$scratch/report"
    cat "$scratch/report"
}
hangs() { sql 'SELECT rank, name, seq, waited_ns < 3000000000 FROM hangs ORDER BY rank'; }
waits_in() { # HOW RANK CALL EXPECTED: a machine that stood still meanwhile gets another try
    for try in 1 2 3; do
        late "$1"
        [ "$(hangs)" = "$4" ] && break
    done
    is "$(hangs)" "$4" && grep -q "rank $2 waits in $3 .* for" "$scratch/out.$2"
}
misses() { grep -q 'error .*rank 1 is missing from AllReduce (call 3) of .*, in which 1 rank waited' "$scratch/report"; }
check a-rank-that-does-not-come waits_in collective 0 'AllReduce (call 3)' '0,AllReduce,3,1 '
check it-is-named misses
check its-stacks-are-there is "$(sql 'SELECT count(*) FROM hangs WHERE length(stacks) > 100')" '1 '
check a-receive-that-nobody-sends-to waits_in receive 1 'Recv (call 0)' '1,Recv,0,1 '
check an-asynchronous-call-that-is-waited-for waits_in waited 0 'AllReduce (call 3)' '0,AllReduce,3,1 '
check gradients-that-do-not-come waits_in ddp 0 'AllReduce (call 5)' '0,AllReduce,5,1 '
nobody() {
    late not-waited
    is "$(hangs)" ''
}
check nobody-waits-so-nobody-hangs nobody
exit $rc
