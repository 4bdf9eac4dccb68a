#!/bin/sh
# SPDX-License-Identifier: MIT
# The sample trainer: deterministic, right by the word of PyTorch, slow and wrong where it is told to
# be, dumped in the official layout.
#   B=build        what to test
suite=train
. tests/support/checks.sh
train=$build/samples/train_mpi
export MSTX_QUIET=2
if [ ! -x "$train" ]; then
    echo "skip train: no MPI to build it with"
    exit 0
fi
if ldd "$train" | grep -q libmpich; then
    mpirun=mpirun.mpich
else
    mpirun=mpirun.openmpi
fi
command -v "$mpirun" >/dev/null || mpirun=mpirun
launch() { # RANKS ARGUMENTS...
    n=$1
    shift
    timeout 120 "$mpirun" -n "$n" "$@"
}
same_losses_twice() {
    launch 2 "$train" --steps 5 >"$scratch/a" && launch 2 "$train" --steps 5 >"$scratch/b" &&
        [ -s "$scratch/a" ] && cmp "$scratch/a" "$scratch/b"
}
weights_go_round() { # saved weights are those it started from, so training goes on from them
    launch 1 "$train" --steps 1 --rate 0 --save "$scratch/w" &&
        launch 2 "$train" --steps 3 >"$scratch/a" &&
        launch 2 "$train" --steps 3 --seed 1 --weights "$scratch/w" >"$scratch/b" && cmp "$scratch/a" "$scratch/b"
}
torch_agrees() {
    launch 2 "$train" --steps 20 | sed 's/\(\....\).*/\1/' >"$scratch/a" &&
        "$PYTHON" samples/train_torch.py --steps 20 --ranks 2 | sed 's/\(\....\).*/\1/' >"$scratch/b" || return 1
    awk 'NR == FNR {a[$2] = $4; next} {d = a[$2] - $4; if (d > 0.0021 || d < -0.0021) {print; bad = 1}; n++}
        END {exit bad || n != 20}' "$scratch/a" "$scratch/b"
}
in_c() { launch 1 "$train" --steps 1 --quiet "$@"; }
in_torch() { PYTHONPATH=$build/python "$PYTHON" samples/train_torch.py --steps 1 --quiet "$@"; }
told_of() { # TARGET GOLDEN: what compare says of two runs, in $scratch/told
    "$msprobe" compare -tp "$scratch/$1/step0" -gp "$scratch/$2/step0" -o "$scratch/out" >"$scratch/told" 2>&1
    sed -n 1,4p "$scratch/told"
}
torch_and_c_agree() {
    in_c --dump "$scratch/c" >/dev/null && in_torch --dump "$scratch/torch" >/dev/null || return 1
    for pair in "c torch" "torch c"; do
        told_of $pair
        grep -q '^no suspect' "$scratch/told" || return 1
    done
}
layers_are_paired() { # every layer and its parts, with no mapping
    "$msprobe" compare -tp "$scratch/torch/step0" -gp "$scratch/c/step0" -o "$scratch/out" --write_mapping >/dev/null 2>&1
    for l in 0 1 2 3; do
        for part in attn.Attention mlp.MLP; do
            node=Module.layers.$l.$part.forward.0
            grep -rqF "$node.output.0: $node.output.0" "$scratch/out" || { echo "$node"; return 1; }
        done
    done
}
mappings_come_back() { # what --write_mapping wrote names the same suspect, in every form
    rm -rf "$scratch/bad"
    in_torch --dump "$scratch/bad" --fault layer1.scale >/dev/null || return 1
    dumps=$(find "$scratch/bad/step0" "$scratch/c/step0" -name dump.json | sort)
    PYTHONDONTWRITEBYTECODE=1 "$PYTHON" tests/gen/mapping_trip.py --check $dumps >"$scratch/told"
    cat "$scratch/told"
    grep -q '^ok' "$scratch/told"
}
across() { # FAULT IN AGAINST: a fault of layer 1 is named first there, without a mapping
    rm -rf "$scratch/bad"
    "in_$2" --dump "$scratch/bad" --fault "layer1.$1" >/dev/null || return 1
    told_of bad "$3"
    sed -n 's/^suspect 1  *//p' "$scratch/told" | grep -Eq 'in layers\.1|^Module\.layers\.1'
}
it_learns() { # the loss of the guess is ln 64 = 4.16
    launch 1 "$train" --steps 400 --quiet | awk '{exit !($4 < 3)}'
}
fault_is_found() { # FAULT WHAT: the first suspect is an operator of the layer
    rm -rf "$scratch/bad" "$scratch/out"
    launch 1 "$train" --steps 1 --dump "$scratch/bad" --fault "$1" &&
        "$msprobe" compare -tp "$scratch/bad/step0/rank0/dump.json" -gp "$scratch/good/step0/rank0/dump.json" \
            -o "$scratch/out" >"$scratch/told"
    cat "$scratch/told"
    sed -n 's/^suspect 1  *//p' "$scratch/told" | grep -q "$2"
}
# Half precision is too small to show in the loss of one step: it shows in the dump, below.
every_fault_changes_the_loss() {
    launch 1 "$train" --steps 1 >"$scratch/good.loss"
    for f in $("$train" --list-faults | awk '{sub(/layerN\./, ""); print $1}'); do
        [ "$f" = half ] && continue
        launch 1 "$train" --steps 1 --fault "layer1.$f" >"$scratch/bad.loss" || return 1
        cmp -s "$scratch/good.loss" "$scratch/bad.loss" && { echo "fault $f changes nothing"; return 1; }
    done
    true
}
# By how long the ranks are in their collectives alone. Whether it is slow in all steps or in bursts is judged
# by undisturbed steps, of which four processes on two processors that others load have none.
slow_rank_is_named_first() {
    rm -rf "$scratch/run"
    launch 4 "$msprobe" run -o "$scratch/run" -- "$train" --steps 20 --slow-rank 2 --slow-factor 6 >/dev/null &&
        "$msprobe" report "$scratch/run" >"$scratch/a" && head -1 "$scratch/a" | grep -E '^rank 2 makes the others wait in (all steps|bursts).* in backward; '
}
slow_rank_is_slow() { # its own step part before the gradients are shared is the longest
    rm -rf "$scratch/run"
    launch 3 "$msprobe" run -o "$scratch/run" -- "$train" --steps 8 --slow-rank 1 --slow-factor 6 >/dev/null &&
        "$msprobe" report "$scratch/run" >/dev/null &&
        "$msprobe" sql "$scratch/run" "SELECT p.rank FROM names n JOIN tracks t ON t.id = n.track
            JOIN processes p ON p.id = t.process JOIN strings s ON s.id = n.name
            WHERE s.value = 'backward' ORDER BY n.total_ns DESC LIMIT 1" | tail -1 | grep -qx 1
}
recipes_take_a_run() { # that of the check before
    db=$scratch/run/cluster_analysis_output/cluster_analysis.db
    for mode in slow_rank hccl_sum cluster_time_summary communication_group_map mstx_sum; do
        "$msprobe" cluster -m $mode -d "$scratch/run" >/dev/null || return 1
    done
    "$PYTHON" - "$db" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
one = lambda sql: db.execute(sql).fetchone()[0]
assert one("SELECT count(DISTINCT Rank) FROM HcclPerRankStats WHERE OpType LIKE 'Hccl%'") == 4
assert one("SELECT count(DISTINCT rank) FROM ClusterTimeSummary WHERE stepTime > 0") == 4
assert one("SELECT min(abs(computation + communicationNotOverlapComputation + free - stepTime)"
           " / stepTime < 0.01) FROM ClusterTimeSummary") == 1
assert one("SELECT count(*) FROM CommunicationGroupMapping WHERE rank_set = '(0,1,2,3)'") == 1
assert one("SELECT count(*) FROM MSTXMarkStats") > 0
END
}
wrong_options_are_refused() {
    "$train" --layers 99 && return 1
    "$train" --nonsense && return 1
    launch 1 "$train" --fault layer9.scale && return 1
    launch 1 "$train" --fault layer1.nonsense && return 1
    launch 1 "$train" --weights "$scratch/nothing" && return 1
    true
}
check same-losses-twice same_losses_twice
check weights-go-round weights_go_round
check it-learns it_learns
# Such a library cannot be loaded into a Python that was built without.
sanitized() { nm -D "$build/libmstx.so" | grep -q '__asan_init\|__tsan_init'; }
if ! "$PYTHON" -c 'import torch, numpy' 2>/dev/null; then
    echo "skip torch-has-the-same-losses: no PyTorch"
elif sanitized; then
    echo "skip torch and C: a sanitizer must come first in a process"
else
    check torch-has-the-same-losses torch_agrees
    check torch-and-c-have-no-suspect torch_and_c_agree
    check layers-of-torch-and-c-are-paired layers_are_paired
    check mappings-of-torch-and-c-come-back mappings_come_back
    for fault in $("$train" --list-faults | awk '{sub(/layerN\./, ""); print $1}'); do
        check "fault-$fault-in-torch-is-found-by-c" across "$fault" torch c
        check "fault-$fault-in-c-is-found-by-torch" across "$fault" c torch
    done
fi
launch 1 "$train" --steps 1 --dump "$scratch/good" >/dev/null
check dumps-are-equal sh -c "cd '$scratch' && timeout 60 $mpirun -n 1 '$train' --steps 1 --dump again >/dev/null && cmp good/step0/rank0/dump.json again/step0/rank0/dump.json"
check fault-in-attention-is-found fault_is_found layer2.scale 'scaled_dot_product_attention.2.forward'
check fault-in-mlp-is-found fault_is_found layer1.bias 'linear.6.forward'
check half-precision-is-found fault_is_found layer1.half 'Module.layers.1.mlp.MLP.forward.0'
check every-fault-changes-the-loss every_fault_changes_the_loss
if sanitized; then
    echo "skip slow ranks: a sanitizer must come first in a process"
else
    check slow-rank-is-slow slow_rank_is_slow
    check slow-rank-is-named-first slow_rank_is_named_first
    check recipes-take-a-run recipes_take_a_run
fi
check wrong-options-are-refused wrong_options_are_refused
exit $rc
