#!/bin/sh
# SPDX-License-Identifier: MIT
# A sample of the simulated lives of the recorder and of the writers; make simulate plays a million.
# A seed that is named here is played again by: build/tests/tool_simulate 1 SEED
suite=simulate
. tests/support/checks.sh
tool=$build/tests/tool_simulate
! is_sanitized || skip "threads as coroutines on one stack each are nothing that a sanitizer can follow"
plays() { "$tool" -s 40 "$@" >"$said" 2>&1; }
check "schedules of recorder and writers: nothing lost, or told" plays 30000
# The same seed is the same life: what one says, another run says too.
one() { "$tool" 1 "$1" | sed 's/ in .* s,//'; }
check "a seed is played again as it was" is "$(one 40000)" "$(one 40000)"
exit $rc
