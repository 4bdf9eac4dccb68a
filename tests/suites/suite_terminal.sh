#!/bin/sh
# SPDX-License-Identifier: MIT
# Long commands show on a terminal how far they are, and nothing to a pipe; an interrupt leaves nothing.
#   B=build  SEED=WORD    draws the moments of the interrupts
suite=terminal
. tests/support/checks.sh
"$PYTHON" tests/suites/terminal.py "$build" "$scratch" || rc=1
ended_by() { # PROGRAM...: recording a program that ^C ends, which marks nothing, ends with 130 and leaves no folder
    (cd "$scratch" && "$PYTHON" -c 'import os, signal, subprocess, sys, time
p = subprocess.Popen(sys.argv[1:], start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
time.sleep(1)
os.killpg(p.pid, signal.SIGINT)
sys.exit(p.wait())' "$msprobe" run -o out_of_run -- "$@")
    is $? 130 && [ ! -e "$scratch/out_of_run" ]
}
check 'an interrupt ends a recording with its program' ended_by sleep 30
exit $rc
