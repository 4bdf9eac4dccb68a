#!/bin/sh
# SPDX-License-Identifier: MIT
# Each decision about generated pairs of dumps and about simulated runs, as it is on record: a change of
# one is made on purpose, with
#   python3 tests/suites/align_decisions.py build/tests/tool_align tests/data/align --update
#   python3 tests/suites/run_decisions.py build/msprobe build/tests/tool_sim tests/data/runs --update
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
export PYTHONDONTWRITEBYTECODE=1 TZ=UTC LC_ALL=C.UTF-8

[ -x "$PYTHON" ] || { echo "skip decisions: no $PYTHON"; exit 0; }
rc=0
"$PYTHON" tests/suites/align_decisions.py "$B/tests/tool_align" tests/data/align || rc=1
"$PYTHON" tests/suites/run_decisions.py "$B/msprobe" "$B/tests/tool_sim" tests/data/runs || rc=1
exit $rc
