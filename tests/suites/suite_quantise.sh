#!/bin/sh
# SPDX-License-Identifier: MIT
# Number formats beside torch and torchao, checkpoints of codes, and dumps of quantised models, right ones and
# with planted faults.
#   TORCH_PYTHON=PROGRAM   a Python with PyTorch 2.4 or later and numpy; with torchao all formats are compared
#   FAMILIES=all           all models and faults, not one model
suite=quantise
. tests/support/checks.sh
TORCH_PYTHON=${TORCH_PYTHON:-$PYTHON}
export PYTHONDONTWRITEBYTECODE=1

if ! "$TORCH_PYTHON" -c 'import numpy, torch; torch.float8_e8m0fnu' 2>/dev/null; then
    echo "skip quantise: $TORCH_PYTHON has no torch with float8_e8m0fnu, or no numpy"
    exit 0
fi
"$TORCH_PYTHON" tests/suites/quantise_oracle.py "$build" 2>"$scratch/err" || {
    tail -5 "$scratch/err"
    rc=1
}
"$TORCH_PYTHON" tests/suites/quantise_ckpt.py "$build/msprobe" "$scratch/ckpt" || rc=1
if [ "${FAMILIES:-}" = all ]; then
    "$TORCH_PYTHON" tests/gen/quantised_accuracy.py "$build" "$scratch/models" --half first || rc=1
    "$TORCH_PYTHON" tests/gen/quantised_accuracy.py "$build" "$scratch/models" --half second || rc=1
else
    "$TORCH_PYTHON" tests/gen/quantised_accuracy.py "$build" "$scratch/models" --half second --family gated --few || rc=1
fi
exit $rc
