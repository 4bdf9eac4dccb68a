#!/bin/sh
# SPDX-License-Identifier: MIT
# A sample of the load that the server, imports and reports stand; `make load` is all of it.
#   B=build LOAD=full
suite=load
. tests/support/checks.sh
! is_sanitized || skip "a sanitizer's memory is not ours"
[ -x "$build/tests/tool_sim" ] || skip "no simulated cluster: no $B/tests/tool_sim"
"$PYTHON" tests/suites/load.py "$build" "$scratch" ${LOAD:+"$LOAD"} || rc=1
exit $rc
