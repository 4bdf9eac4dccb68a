#!/bin/sh
# SPDX-License-Identifier: MIT
# torch.distributed over gloo in two processes, unchanged, under msprobe run.
#   B=build        what to test
suite=gloo
. tests/checks.sh
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
    RANK=$r timeout 120 "$build/msprobe" run -o "$scratch/run" -- "$PYTHON" tests/rt/gloo_app.py $r "$scratch/meet" \
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
all=$("$build/msprobe" sql "$scratch/run" "SELECT count(*) FROM events WHERE domain = 'communication'" | tail -1)
if [ "$found" = 8 ] && [ "$all" = 16 ]; then
    echo "ok every-call-is-a-range"
else
    echo "not ok every-call-is-a-range"
    echo "    $found all-reduces of 8, $all calls of 16"
    exit 1
fi

# Every kind of call, with what belongs to it.
run=$scratch/more
sql() { "$build/msprobe" sql "$run" "$1" | tail -n +2 | tr '\t\n' ', '; }
for r in 0 1; do
    RANK=$r timeout 120 "$build/msprobe" run -o "$run" -- "$PYTHON" tests/rt/gloo_more.py $r "$scratch/meet2" \
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
exit $rc
