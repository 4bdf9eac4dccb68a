#!/bin/sh
# SPDX-License-Identifier: MIT
# The training monitor of PyTorch: small trainings of many families compute the same with it, bit by bit, and its
# csv files are those of the official monitor, value by value; see monitor/compare.py.
#   B=build  PYTHON=/usr/bin/python3
#   TORCH_INSTALL=DIR    where suite_torch_peers has installed a newer PyTorch and the official tool
suite=monitor
. tests/support/checks.sh
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
here=tests/suites/monitor
extension=$(ls "$build"/python/msprobe/_probe*.so 2>/dev/null | head -1)
[ -n "$extension" ] || skip "no extension was built; are there headers of Python?"
if ldd "$extension" | grep -q 'libasan\|libtsan'; then
    skip "the interpreter is built without the sanitizer"
fi
python=$PYTHON
official=
if [ -n "${TORCH_INSTALL:-}" ] && [ -x "$TORCH_INSTALL/venv/bin/python" ]; then
    python=$TORCH_INSTALL/venv/bin/python
    "$python" -c 'import msprobe' 2>/dev/null && official=yes
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

# all PYTHONPATH HOW OUT: what every program computed
all() {
    PYTHONPATH=$1 "$python" $here/programs.py "$2" "$3" 2>>"$scratch/said" | grep DONE
    ranks "$1" "$2" "$3"
}

all '' none "$scratch/none" >"$scratch/none.txt"
all "$build/python" monitored "$scratch/ours" >"$scratch/ours.txt"
check every_program_ran test "$(wc -l <"$scratch/none.txt")" -eq 19
check trainings_are_the_same_bit_by_bit cmp "$scratch/none.txt" "$scratch/ours.txt"
if [ -n "$official" ]; then
    all '' monitored "$scratch/theirs" >/dev/null
    "$PYTHON" $here/compare.py "$scratch/ours" "$scratch/theirs" || rc=1
else
    echo "skip monitor_official: the official tool is not installed beside $python"
fi

second() { PYTHONPATH=$1 "$python" $here/second.py "$2" "$3" 2>>"$scratch/said" | grep DONE; }
if "$python" -c 'import torch; torch.optim.Optimizer.register_step_pre_hook' 2>/dev/null; then
    second '' none "$scratch/none2" >"$scratch/none2.txt"
    second "$build/python" monitored "$scratch/ours2" >"$scratch/ours2.txt"
    check trainings_are_the_same_with_the_second_monitor cmp "$scratch/none2.txt" "$scratch/ours2.txt"
fi
if [ -n "$official" ]; then
    second '' monitored "$scratch/theirs2" >/dev/null
    "$python" $here/second.py compare "$scratch/ours2" "$scratch/theirs2" || rc=1
fi
"$python" $here/after.py "$msprobe" "$scratch/ours/alarms" "$scratch/after" || rc=1
exit "$rc"
