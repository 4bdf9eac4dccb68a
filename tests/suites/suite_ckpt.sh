#!/bin/sh
# SPDX-License-Identifier: MIT
# Checkpoints: `config_check -c` beside the official tool on Megatron's folders, and readers beside the
# frameworks that wrote the files.
#   TORCH_PYTHON=PROGRAM      a Python with PyTorch; with mindstudio-probe both tools run on each pair
#   MINDSPORE_PYTHON=PROGRAM  a Python with MindSpore
B=${B:-build}
TORCH_PYTHON=${TORCH_PYTHON:-${PYTHON:-/usr/bin/python3}}
MINDSPORE_PYTHON=${MINDSPORE_PYTHON:-}
rc=0

if ! "$TORCH_PYTHON" -c 'import torch' 2>/dev/null; then
    echo "skip ckpt: $TORCH_PYTHON has no torch"
else
    "$TORCH_PYTHON" tests/suites/ckpt_oracle.py "$B/msprobe" torch || rc=1
    if "$TORCH_PYTHON" -c 'import msprobe.core.config_check' 2>/dev/null; then
        "$TORCH_PYTHON" tests/suites/ckpt_oracle.py "$B/msprobe" official >"${TMPDIR:-/tmp}/ckpt.$$" 2>&1 || rc=1
        grep -E '^(ok|FAIL)' "${TMPDIR:-/tmp}/ckpt.$$" || cat "${TMPDIR:-/tmp}/ckpt.$$"
        rm -f "${TMPDIR:-/tmp}/ckpt.$$"
    else
        echo "skip ckpt: no mindstudio-probe beside torch"
    fi
fi
if [ -n "$MINDSPORE_PYTHON" ]; then
    "$MINDSPORE_PYTHON" tests/suites/ckpt_oracle.py "$B/msprobe" mindspore || rc=1
else
    echo "skip ckpt of MindSpore: no MINDSPORE_PYTHON"
fi
exit $rc
