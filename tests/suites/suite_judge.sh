#!/bin/sh
# SPDX-License-Identifier: MIT
# Which side is right: what msprobe computes again beside PyTorch, planted faults and legitimate variants,
# and programs of single operators in a clean environment.
#   TORCH_PYTHON=PROGRAM  a Python with PyTorch, in which msprobe's dumper works
B=${B:-build}
TORCH_PYTHON=${TORCH_PYTHON:-${PYTHON:-/usr/bin/python3}}
rc=0
if ! PYTHONPATH=$B/python "$TORCH_PYTHON" -c 'import torch, msprobe._probe' 2>/dev/null; then
    echo "skip judge: $TORCH_PYTHON has no torch"
    exit 0
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-judge-XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
said() { # NAME: a line of the result
    [ $? -eq 0 ] && echo "ok $1: $(tail -1 "$dir/log")" && return
    echo "not ok $1"
    tail -20 "$dir/log"
    rc=1
}
cases() { # SCRIPT FOLDER WORDS...
    script=$1 folder=$2
    shift 2
    PYTHONPATH=$B/python timeout 600 "$TORCH_PYTHON" -W ignore "tests/suites/$script" "$B/msprobe" "$dir/$folder" "$@" >"$dir/log" 2>&1
}
cases judge_operators.py operators
said "operators of PyTorch"
if "$TORCH_PYTHON" -c 'from torch.nn.functional import scaled_dot_product_attention' 2>/dev/null; then
    cases judge_cases.py faults faults second
    said "planted faults"
    cases judge_cases.py variants variants second
    said "legitimate variants"
else
    echo "skip planted faults and variants: they need PyTorch 2, whose operators for CPUs know half types"
fi
cases judge_scripts.py scripts
said "programs of single operators"
exit $rc
