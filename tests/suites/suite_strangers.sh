#!/bin/sh
# SPDX-License-Identifier: MIT
# Databases of strangers: they open, are refused, or are read in part; they change nothing, delete nothing
# and hold nothing up.
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-strangers-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
"$PYTHON" tests/web/page/make_inputs.py "$scratch" || exit 1
"$PYTHON" tests/suites/strangers.py "$(realpath "$B/msprobe")" "$scratch"
