#!/bin/sh
# SPDX-License-Identifier: MIT
# The PyTorch adapter: its own tests, and its dumps against those of the official tool over the same
# model, where that package is to be had.
#   B=build  PYTHON=/usr/bin/python3
#   OFFICIAL=DIR    a folder with the package msprobe of mindstudio-probe that $PYTHON can import
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
export PYTHONDONTWRITEBYTECODE=1
if ! "$PYTHON" -c 'import torch' 2>/dev/null; then
    echo "skip torch_dump: $PYTHON has no torch"
    exit 0
fi
if ! ls "$B"/python/msprobe/_probe*.so >/dev/null 2>&1; then
    echo "skip torch_dump: no extension was built; are there headers of Python?"
    exit 0
fi
if ldd "$(ls "$B"/python/msprobe/_probe*.so | head -1)" | grep -q 'libasan\|libtsan'; then
    echo "skip torch_dump: the interpreter is built without the sanitizer"
    exit 0
fi
"$PYTHON" tests/suites/suite_torch_dump.py "$B"
"$PYTHON" tests/suites/suite_torch_trouble.py "$B"
"$PYTHON" tests/suites/suite_torch_unharmed.py "$B"
"$PYTHON" tests/suites/torch_oracle.py "$B" "${OFFICIAL:-}"

# ---- msprobe run --dump: a script that knows nothing of it ----------------------------------

build=$(cd "$B" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-dump-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
unset PYTHONPATH MSPROBE_DUMP RANK WORLD_SIZE LOCAL_RANK
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
report() { # name status
    if [ "$2" -eq 0 ]; then echo "ok $1"; else echo "not ok $1"; fi
}
dumped() { # options of config.json
    rm -rf "$scratch/run"
    echo "$1" >"$scratch/config.json"
    (cd "$scratch" && "$build/msprobe" run -o run --dump config.json -- "$PYTHON" train.py)
}
steps() { (cd "$scratch/run" 2>/dev/null && echo step*); }

with=$(dumped '{"level": "mix", "step": [0, 2]}' 2>"$scratch/said")
without=$("$PYTHON" "$scratch/train.py")
[ "$with" = "$without" ] && [ "$(steps)" = "step0 step2" ]
report a_script_is_dumped_step_by_step_and_computes_the_same $?
grep -q '"Module.0.Linear.parameters_grad.0"' "$scratch"/run/step2/*/dump.json
report its_model_is_found $?
dumped '{"level": "mux"}' >"$scratch/out" 2>"$scratch/said"
[ $? -eq 2 ] && grep -q 'level: expected one of' "$scratch/said" && [ ! -s "$scratch/out" ]
report a_mistake_in_its_config_ends_it_at_once $?
dumped "{\"level\": \"L0\", \"dump_path\": \"$scratch/elsewhere\"}" >/dev/null 2>&1
[ -e "$scratch"/elsewhere/step0 ]
report the_path_in_the_config_goes_first $?

# ---- the sample ---------------------------------------------------------------------------

sample() { PYTHONPATH=$build/python "$PYTHON" samples/train_torch.py --steps 2 --layers 2 "$@"; }
clean=$(sample --quiet --save "$scratch/weights")
[ "$clean" = "$(sample --quiet --dump "$scratch/sample")" ]
report the_sample_computes_the_same_with_a_dump $?
loaded=$(sample --quiet --weights "$scratch/weights" --save "$scratch/again")
[ -n "$loaded" ] && [ "$loaded" != "$clean" ] &&
    [ "$loaded" = "$(sample --quiet --weights "$scratch/weights" --seed 1)" ] &&
    [ "$(ls "$scratch/weights")" = "$(ls "$scratch/again")" ]
report the_sample_starts_from_saved_weights $?
for fault in $(sample --list-faults | sed -n 's/^layerN\.\([a-z]*\) .*/\1/p'); do
    [ "$(sample --quiet --fault "layer1.$fault")" != "$clean" ]
    report "fault_${fault}_changes_the_loss" $?
done
