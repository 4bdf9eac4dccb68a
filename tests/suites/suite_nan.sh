#!/bin/sh
# SPDX-License-Identifier: MIT
# One judgement of NaN and infinity: stat, check, overflow_check, compare, view and serve name the same
# operator on each mistake, and nothing on healthy programs with masks.
suite=nan
. tests/support/checks.sh

export PYTHONDONTWRITEBYTECODE=1
"$PYTHON" tests/suites/nan_dumps.py "$msprobe" "$scratch" || rc=1
"$PYTHON" tests/suites/nan_shapes.py "$msprobe" "$scratch" || rc=1
"$PYTHON" -c 'import torch' 2>/dev/null || { echo "skip cases of PyTorch: $PYTHON has no torch"; exit $rc; }
"$PYTHON" tests/suites/nan_cases.py "$msprobe" "$scratch" || rc=1
exit $rc
