#!/bin/sh
# SPDX-License-Identifier: MIT
# Everything in which `compare` differs from --compat=strict on the golden pairs, and on
# those of tests/data/parity, is one of the repairs that msprobe-compare(1) lists.
#   GOLDEN=../shared/golden   the cases
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
GOLDEN=${GOLDEN:-../shared/golden}
for needed in "$GOLDEN" "$(command -v "$PYTHON")"; do
    [ -e "$needed" ] || {
        echo "skip repairs: no ${needed:-$PYTHON}"
        exit 0
    }
done
export PYTHONDONTWRITEBYTECODE=1
rc=0
"$PYTHON" tests/suites/repairs.py "$B/msprobe" "$GOLDEN" || rc=1
"$PYTHON" tests/suites/repairs.py "$B/msprobe" tests/data/parity || rc=1
"$PYTHON" tests/suites/repairs.py "$B/msprobe" --random 100 || rc=1
exit $rc
