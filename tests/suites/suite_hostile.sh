#!/bin/sh
# SPDX-License-Identifier: MIT
# What `msprobe compare` says of inputs that are wrong, and that it goes on where the rest is of use; and
# what files of tensors that attack their reader come to.
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-hostile-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/pairs" "$scratch/tensors" || exit 1
"$PYTHON" tests/suites/hostile.py "$(realpath "$B/msprobe")" "$scratch/pairs"
pairs=$?
"$PYTHON" tests/suites/hostile_tensors.py "$(realpath "$B/msprobe")" "$scratch/tensors" && exit $pairs
