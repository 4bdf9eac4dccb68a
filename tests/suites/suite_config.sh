#!/bin/sh
# SPDX-License-Identifier: MIT
# config_check of configurations, the debugger's names, and resumed runs.
#   TORCH_PYTHON=PROGRAM      a Python with PyTorch; with mindstudio-probe both tools run on each pair
#   FULL=1                    inputs of modules from another dump, too
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
TORCH_PYTHON=${TORCH_PYTHON:-$PYTHON}
rc=0

"$PYTHON" tests/suites/config_oracle.py "$B/msprobe" hostile || rc=1
if ! "$TORCH_PYTHON" -c 'import torch' 2>/dev/null; then
    echo "skip config: $TORCH_PYTHON has no torch"
    exit $rc
fi
"$TORCH_PYTHON" tests/suites/resume_runs.py "$B/msprobe" || rc=1
if "$TORCH_PYTHON" -c 'import msprobe.core.config_check' 2>/dev/null; then
    PAIRS=${PAIRS:-20} "$TORCH_PYTHON" tests/suites/config_oracle.py "$B/msprobe" official || rc=1
    OURS=$B/python "$TORCH_PYTHON" tests/suites/names_oracle.py pytorch core || rc=1
    OURS=$B/python "$TORCH_PYTHON" tests/suites/names_oracle.py --config || rc=1
    "$TORCH_PYTHON" tests/suites/request_oracle.py "$B" || rc=1
    # Half a minute of processor time for imports of the official package alone.
    [ -z "${FULL:-}" ] || "$TORCH_PYTHON" tests/suites/load_oracle.py "$B" || rc=1
else
    echo "skip config: no mindstudio-probe beside torch"
fi
exit $rc
