#!/bin/sh
# SPDX-License-Identifier: MIT
# Holds `msprobe compare --compat=strict` against what the official tool wrote:
# every csv and json of the cases in tests/data/parity, and of the golden cases where
# those are at hand.
#   GOLDEN=../shared/golden   the cases
#   OFFICIAL=DIR              a folder with the package msprobe of mindstudio-probe that $PYTHON can
#                             run: random pairs are compared by both
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
GOLDEN=${GOLDEN:-../shared/golden}

if ! command -v "$PYTHON" >/dev/null; then
    echo "skip parity: no $PYTHON"
    exit 0
fi
rc=0
"$PYTHON" tests/suites/parity.py "$B/msprobe" tests/data/parity || rc=1
if [ -d "$GOLDEN" ]; then
    "$PYTHON" tests/suites/parity.py "$B/msprobe" "$GOLDEN" || rc=1
else
    echo "skip parity: no $GOLDEN"
fi
"$PYTHON" tests/suites/compare_oracle.py "$B/msprobe" "${OFFICIAL:-}" || rc=1
exit $rc
