#!/bin/sh
# SPDX-License-Identifier: MIT
# Each decision about generated pairs of dumps and about simulated runs, as it is on record: a change of
# one is made on purpose, with
#   python3 tests/suites/align_decisions.py build/tests/tool_align tests/data/align --update
#   python3 tests/suites/run_decisions.py build/msprobe build/tests/tool_sim tests/data/runs --update
suite=decisions
. tests/support/checks.sh
export PYTHONDONTWRITEBYTECODE=1 TZ=UTC LC_ALL=C.UTF-8

[ -x "$PYTHON" ] || skip "no $PYTHON"
! is_sanitized || skip "figures do not depend on a sanitizer"
"$PYTHON" tests/suites/align_decisions.py "$build/tests/tool_align" tests/data/align || rc=1
"$PYTHON" tests/suites/run_decisions.py "$msprobe" "$build/tests/tool_sim" tests/data/runs || rc=1
exit $rc
