#!/bin/sh
# SPDX-License-Identifier: MIT
# What `msprobe compare` says of inputs that are wrong, and that it goes on where the rest is of use.
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-hostile-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
"$PYTHON" tests/suites/hostile.py "$(realpath "$B/msprobe")" "$scratch"
