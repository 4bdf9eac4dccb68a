#!/bin/sh
# SPDX-License-Identifier: MIT
# torch.distributed over gloo in two processes, unchanged, under msprobe run.
#   B=build        what to test
suite=gloo
. tests/checks.sh
export MSTX_QUIET=2
if [ ! -e "$build/python/mstx.so" ] || ! "$PYTHON" -c 'import torch.distributed as d; assert d.is_gloo_available() if hasattr(d, "is_gloo_available") else d.is_available()' 2>/dev/null; then
    echo "skip gloo: no PyTorch with it"
    exit 0
fi
if ! can_preload; then
    echo "skip gloo: a sanitizer must come first in a process"
    exit 0
fi
for r in 0 1; do
    RANK=$r timeout 120 "$build/msprobe" run -o "$scratch/run" -- "$PYTHON" tests/rt/gloo_app.py $r "$scratch/meet" \
        >"$scratch/out.$r" 2>&1 &
done
wait
if grep -qx good "$scratch/out.0" && grep -qx good "$scratch/out.1"; then
    echo "ok results-are-the-same"
else
    echo "not ok results-are-the-same"
    tail -5 "$scratch/out.0" "$scratch/out.1" | sed 's/^/    /'
    exit 1
fi
found=$("$build/msprobe" sql "$scratch/run" "SELECT count(*) FROM events WHERE domain = 'communication'
    AND name LIKE '%count%1024%dataType%fp32%groupName%opName%HcclAllreduce%'" | tail -1)
all=$("$build/msprobe" sql "$scratch/run" "SELECT count(*) FROM events WHERE domain = 'communication'" | tail -1)
if [ "$found" = 8 ] && [ "$all" = 16 ]; then
    echo "ok every-call-is-a-range"
else
    echo "not ok every-call-is-a-range"
    echo "    $found all-reduces of 8, $all calls of 16"
    exit 1
fi
