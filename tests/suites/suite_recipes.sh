#!/bin/sh
# SPDX-License-Identifier: MIT
# Recipes of msprobe cluster on outputs of profilers that tests/gen/ascend.py makes up, against what the
# official tool made of the same and against the published formulas; see suite_recipes.py.
PYTHON=${PYTHON:-/usr/bin/python3}
dir=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-recipes-XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
"$PYTHON" tests/suites/suite_recipes.py "${B:-build}/msprobe" "$dir"
