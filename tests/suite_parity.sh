#!/bin/sh
# SPDX-License-Identifier: MIT
# Holds `msprobe compare --compat=strict` against what the official tool wrote:
# every csv and json of the golden cases, where those are at hand.
#   GOLDEN=../shared/golden   the cases
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
GOLDEN=${GOLDEN:-../shared/golden}

if [ ! -d "$GOLDEN" ]; then
    echo "skip parity: no $GOLDEN"
    exit 0
fi
if ! command -v "$PYTHON" >/dev/null; then
    echo "skip parity: no $PYTHON"
    exit 0
fi
exec "$PYTHON" tests/parity.py "$B/msprobe" "$GOLDEN"
