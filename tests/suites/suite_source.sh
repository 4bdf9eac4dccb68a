#!/bin/sh
# SPDX-License-Identifier: MIT
# Does compare name the operator that introduces the difference?  Recorded pairs with
# a known truth, and, where PyTorch is, a few faults in real runs; a sound pair and a
# dump against itself must have no suspect.
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
golden=${MSPROBE_GOLDEN:-../shared/golden}
export PYTHONDONTWRITEBYTECODE=1 MSPROBE="$B/msprobe"

[ -x "$PYTHON" ] || { echo "skip source: no $PYTHON"; exit 0; }
if [ -d "$golden" ]; then
    "$PYTHON" tests/suites/source_golden.py "$B/msprobe" "$golden" || echo "not ok source golden"
else
    echo "skip source golden: no $golden"
fi
"$PYTHON" tests/gen/torch_faults.py --check || echo "not ok source torch"

# A rule that silences one kind of fault shows in these few.
"$PYTHON" tests/gen/source_accuracy.py --check --cases 120
