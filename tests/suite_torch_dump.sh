#!/bin/sh
# SPDX-License-Identifier: MIT
# The PyTorch adapter: its own tests, and its dumps against those of the official tool over the same
# model, where that package is to be had.
#   B=build  PYTHON=/usr/bin/python3
#   OFFICIAL=DIR    a folder with the package msprobe of mindstudio-probe that $PYTHON can import
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
export PYTHONDONTWRITEBYTECODE=1
if ! "$PYTHON" -c 'import torch' 2>/dev/null; then
    echo "skip torch_dump: $PYTHON has no torch"
    exit 0
fi
if ! ls "$B"/python/msprobe/_probe*.so >/dev/null 2>&1; then
    echo "skip torch_dump: no extension was built; are there headers of Python?"
    exit 0
fi
if ldd "$(ls "$B"/python/msprobe/_probe*.so | head -1)" | grep -q 'libasan\|libtsan'; then
    echo "skip torch_dump: the interpreter is built without the sanitizer"
    exit 0
fi
"$PYTHON" tests/suite_torch_dump.py "$B"
"$PYTHON" tests/torch_oracle.py "$B" "${OFFICIAL:-}"
