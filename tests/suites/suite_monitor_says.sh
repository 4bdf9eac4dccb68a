#!/bin/sh
# SPDX-License-Identifier: MIT
# What the training monitor of PyTorch says beside its csv files: mistakes in its config and in trainings, trends,
# ranks that differ, scripts that know nothing of it; see monitor/behaviour.py, mistakes.py, trends.py.
#   B=build  PYTHON=/usr/bin/python3
#   TORCH_INSTALL=DIR    where suite_torch_peers has installed a newer PyTorch and the official tool
suite=monitor_says
. tests/support/checks.sh
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
here=tests/suites/monitor
extension=$(ls "$build"/python/msprobe/_probe*.so 2>/dev/null | head -1)
[ -n "$extension" ] || skip "no extension was built; are there headers of Python?"
if ldd "$extension" | grep -q 'libasan\|libtsan'; then
    skip "the interpreter is built without the sanitizer"
fi
python=$PYTHON
if [ -n "${TORCH_INSTALL:-}" ] && [ -x "$TORCH_INSTALL/venv/bin/python" ]; then
    python=$TORCH_INSTALL/venv/bin/python
fi
"$python" -c 'import torch' 2>/dev/null || skip "$python has no torch"
unset PYTHONPATH MONITOR_OUTPUT_DIR DYNAMIC_MONITOR RANK WORLD_SIZE

ours() { PYTHONPATH=$build/python "$python" "$@"; }
port() { "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# ranks PYTHONPATH HOW OUT: two processes
ranks() {
    at=$(port)
    PYTHONPATH=$1 "$python" $here/programs.py "$2" "$3" rank=0 "$at" >"$scratch/r0" 2>>"$scratch/said" &
    PYTHONPATH=$1 "$python" $here/programs.py "$2" "$3" rank=1 "$at" >"$scratch/r1" 2>>"$scratch/said"
    wait
    grep -h DONE "$scratch/r0" "$scratch/r1"
}

ours $here/behaviour.py "$scratch/behaviour" || rc=1
ours $here/mistakes.py "$scratch/mistakes" || rc=1
ours $here/trends.py "$msprobe" "$scratch/trends" || rc=1

# ---- ranks that differ ---------------------------------------------------------------------------

told() { cat "$scratch/$1/ranked/invariants/rank0.jsonl" 2>/dev/null | grep -c "\"$2\".*rank 1: its"; }
ranks "$build/python" monitored "$scratch/ours" >/dev/null
check ranks_that_agree_are_not_told is "$(told ours replicas) $(told ours same_data)" "0 0"
BYPASSED=1 ranks "$build/python" monitored "$scratch/bypassed" >/dev/null
check a_wrapper_that_is_bypassed_is_told is "$(told bypassed replicas)" 1
SAME_SEED=1 ranks "$build/python" monitored "$scratch/same" >/dev/null
check ranks_with_the_same_data_are_told is "$(told same same_data)" 1

# ---- msprobe run --monitor: a script that knows nothing of it ---------------------------------

cat >"$scratch/train.py" <<'PY'
import os
import torch
from torch import nn

os.chdir("/")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    loss = nn.CrossEntropyLoss()(model(torch.randn(5, 4)), torch.randint(0, 2, (5,)))
    loss.backward()
    optimizer.step()
print(loss.item())
PY
cat >"$scratch/drop_in.py" <<'PY'
import sys
text = open(sys.argv[1]).read().replace("for _ in", """from msprobe.pytorch import TrainerMon
monitor = TrainerMon(sys.argv[2], params_have_main_grad=False)
monitor.set_monitor(model, optimizer)
for _ in""", 1)
exec(compile("import sys\n" + text, "drop_in", "exec"))
PY
echo '{"targets": {}, "ops": ["norm", "min"], "xy_distribution": true, "wg_distribution": true,
       "mv_distribution": true, "param_distribution": true}' >"$scratch/monitor.json"
run_monitored() { "$msprobe" run -o "$scratch/run" --monitor "$scratch/monitor.json" -- "$python" "$scratch/train.py"; }
same_files() {
    (cd "$scratch"/run/monitor/*-rank0-* && cat ./*.csv) >"$scratch/auto.csv"
    (cd "$scratch"/dropped/*-rank0-* && cat ./*.csv) | cmp - "$scratch/auto.csv"
}
if "$python" -c 'import torch.optim.optimizer as o; o.register_optimizer_step_pre_hook' 2>/dev/null; then
    MONITOR_OUTPUT_DIR=$scratch/dropped ours "$scratch/drop_in.py" "$scratch/train.py" "$scratch/monitor.json" >/dev/null
    with=$(run_monitored 2>"$scratch/heard")
    check a_script_without_changes_computes_the_same is "$with" "$("$python" "$scratch/train.py")"
    check its_files_are_those_of_the_drop_in same_files
    sed 's/optimizer.zero_grad()/pass/' "$scratch/train.py" >"$scratch/stale.py"
    "$msprobe" run -o "$scratch/stale" --invariants -- "$python" "$scratch/stale.py" >"$scratch/out" 2>"$scratch/heard"
    check a_script_with_a_mistake_is_told is "$(grep -c 'step 1, rank 0: .*zero_grad' "$scratch/heard") $(grep -c stale \
        "$scratch/stale/monitor/invariants/rank0.jsonl")" "4 4"
    echo '{"ops": "norm"}' >"$scratch/monitor.json"
    run_monitored >"$scratch/out" 2>"$scratch/heard"
    check a_mistake_in_its_config_ends_it_at_once is "$? $(grep -c 'ops: expected a list' "$scratch/heard")" "2 1"
else
    echo "skip monitor_run: $python has no hooks of all optimizers"
fi
exit "$rc"
