#!/bin/sh
# SPDX-License-Identifier: MIT
# The JSON that commands print has the forms that msprobe-json(5) gives, on small inputs and on ../shared/golden.
#   B=build
suite=json
. tests/support/checks.sh
mkdir -p "$scratch/forms"
"$PYTHON" tests/suites/json_forms.py "$build" "$scratch/forms" || rc=1
exit $rc
