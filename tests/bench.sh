#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the benchmarks one after the other and prints their tables.  The header
# says on what: a figure without its machine and its load means nothing.
#   B=build        what to measure
#   ONLY=word      only what has the word in its name
#   HTA=python     a Python with HolisticTraceAnalysis, measured beside ours on traces
#   OFFICIAL=dir   the official tool, to be measured beside ours on the small models
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
export B PYTHON
export LC_ALL=C.UTF-8 TZ=UTC
rc=0
runs=0

load() { cut -d' ' -f1-3 /proc/loadavg 2>/dev/null || echo unknown; }

echo "machine  $(uname -sm), $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
echo "load     $(load)"
for t in "$B"/tests/bench_*; do
    case $t in *.o | *.d | *'*') continue ;; esac
    case $t in *"${ONLY:-}"*) ;; *) continue ;; esac
    printf '\n%s\n' "$(basename "$t")"
    "$t" || { rc=1; echo "bench: $(basename "$t") failed"; }
    runs=$((runs + 1))
done
case mpi in *"${ONLY:-}"*)
    printf '\nbench_mpi\n'
    sh tests/bench/bench_mpi.sh || { rc=1; echo "bench: bench_mpi failed"; }
    runs=$((runs + 1))
    ;;
esac
case traces in *"${ONLY:-}"*)
    printf '\nbench_traces\n'
    "$PYTHON" tests/bench/bench_traces.py "$B/msprobe" ${HTA:+"$HTA"} || { rc=1; echo "bench: bench_traces failed"; }
    runs=$((runs + 1))
    ;;
esac
case torch in *"${ONLY:-}"*)
    printf '\nbench_torch\n'
    if "$PYTHON" -c 'import torch' 2>/dev/null; then
        ONLY=-s "$PYTHON" tests/bench/bench_torch.py "$B" ${OFFICIAL:+"$OFFICIAL"} || { rc=1; echo "bench: bench_torch failed"; }
        runs=$((runs + 1))
    else
        echo "left out: $PYTHON has no torch"
    fi
    ;;
esac
printf '\nload     %s\n' "$(load)"
[ $runs -gt 0 ] || { echo "bench: no $B/tests/bench_*"; rc=1; }
exit $rc
