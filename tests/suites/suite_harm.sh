#!/bin/sh
# SPDX-License-Identifier: MIT
# A dump never changes, breaks or stalls a training: many ways to write one, run without us and with us.
# Losses, outputs, gradients, parameters, states, random numbers, what is raised and warned are alike.
#   B=build  PYTHON=/usr/bin/python3
#   HARM="--full"    every way in every mode; without it a sample. See tests/suites/harm/main.py
# Then each allocation, write and call of ours fails once in a training, under a dump and under
# msprobe run: tests/suites/harm/breaks.py
suite=harm
. tests/support/checks.sh
export PYTHONDONTWRITEBYTECODE=1
"$PYTHON" -c 'import torch, numpy' 2>/dev/null || skip "$PYTHON has no torch"
extension=$(ls "$build"/python/msprobe/_probe*.so 2>/dev/null | head -1)
[ -n "$extension" ] || skip "no extension was built; are there headers of Python?"
! is_sanitized || skip "the interpreter is built without the sanitizer"
"$PYTHON" -c 'import sys; sys.path.insert(0, sys.argv[1]); from msprobe import _probe' \
    "$build/python" 2>/dev/null || skip "the extension is for another version than $PYTHON"
echo "# PyTorch $("$PYTHON" -c 'import torch; print(torch.__version__)')"
# shellcheck disable=SC2086
"$PYTHON" tests/suites/harm/main.py "$build" ${HARM:-} || rc=1
shim=$build/tests/programs/broken_disk.so
LD_PRELOAD=$([ ! -e "$shim" ] || echo "$shim") "$PYTHON" tests/suites/harm/breaks.py "$build" || rc=1
MSTX_TORCH=0 "$build/msprobe" run -o "$scratch/marks.run" -- "$PYTHON" tests/suites/harm/breaks.py "$build" marks \
    2>"$scratch/marks.err" || { rc=1; cat "$scratch/marks.err"; }
exit $rc
