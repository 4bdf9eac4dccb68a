#!/bin/sh
# SPDX-License-Identifier: MIT
# `make demo` ends in its answers, and README's command lines print what stands below them.
#   B=build
suite=tours
. tests/support/checks.sh
! is_sanitized || skip "the samples are those of the plain build"
[ -x "$B/samples/two_dumps" ] || skip "the samples were not built"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
check 'the demo ends in its answers' sh samples/demo.sh "$B/demo"
"$PYTHON" tests/suites/readme_tours.py "$B" || rc=1
exit $rc
