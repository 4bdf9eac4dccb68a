#!/bin/sh
# SPDX-License-Identifier: MIT
# The columns of `msprobe compare --ext` beside figures that numpy computes.
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
if ! "$PYTHON" -c 'import numpy' 2>/dev/null; then
    echo 'skip ext: no Python with numpy'
    exit 0
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-ext-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
"$PYTHON" tests/suites/ext_oracle.py "$(realpath "$B/msprobe")" "$scratch"
