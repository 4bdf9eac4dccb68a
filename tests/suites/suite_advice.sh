#!/bin/sh
# SPDX-License-Identifier: MIT
# Advice for trainings that waste time in one way or in none, profiled here; SEEDS="1 3 5": others.
#   TORCH_PYTHON=PYTHON   whose PyTorch profiles by Kineto, as those of PyPI do
suite=advice
. tests/support/checks.sh
PYTHON=${TORCH_PYTHON:-$PYTHON}
if ! "$PYTHON" -c 'import sys, torch.profiler; sys.exit(not torch.profiler.kineto_available())' 2>/dev/null; then
    echo 'skip advice: TORCH_PYTHON=PYTHON names one whose PyTorch profiles by Kineto'
    exit 0
fi

# Prints the kinds of advice, and runs the query of each: it must show events.
kinds() {
    "$msprobe" report --format json "$1" | "$PYTHON" -c '
import json, subprocess, sys
for a in json.load(sys.stdin).get("advice", []):
    rows = subprocess.run([sys.argv[1], "sql", sys.argv[2], a["evidence"]], capture_output=True, text=True, check=True)
    assert len(rows.stdout.splitlines()) > 1, a
    assert a["value"] >= 0.1, a
    print(a["kind"])' "$msprobe" "$1"
}
profiled() {
    "$PYTHON" tests/programs/wasteful.py "$1" "$scratch/$1.$2.json" "$2" >>"$said" 2>&1
    is "$(kinds "$scratch/$1.$2.json")" "$3"
}
has_gc=$("$PYTHON" -c '
import torch
print("record_python_gc_info" in (torch._C._profiler._ExperimentalConfig.__init__.__doc__ or ""))')
for seed in ${SEEDS:-1}; do
    check "seed $seed: nothing is said of a training that wastes no time" profiled clean "$seed" ''
    check "seed $seed: a slow data loader" profiled data "$seed" data_loading
    check "seed $seed: samples that are worked on one by one" profiled transform "$seed" data_loading
    check "seed $seed: a collection of garbage in each step" profiled gc_call "$seed" garbage_collection
    if [ "$has_gc" = True ]; then
        check "seed $seed: many collections that nobody called" profiled gc_many "$seed" garbage_collection
    fi
done
if "$PYTHON" -c 'import torch.utils.flop_counter' 2>/dev/null; then
    flops() { "$PYTHON" tests/suites/trace_flops.py "$msprobe" "$scratch" >>"$said" 2>&1; }
    check 'operations of steps are those that PyTorch counts' flops
fi
exit $rc
