#!/bin/sh
# SPDX-License-Identifier: MIT
# Tensor files against torch and NumPy, both ways; see suite_tensor.py.
PYTHON=${PYTHON:-/usr/bin/python3}
if ! "$PYTHON" -c 'import numpy, torch' 2>/dev/null; then
    echo 'skip tensor: no Python with numpy and torch'
    exit 0
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-tensor-XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
"$PYTHON" tests/suites/suite_tensor.py "${B:-build}/tests/tool_tensor" "$dir" "${GOLDEN:-../shared/golden}"
