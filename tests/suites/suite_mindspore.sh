#!/bin/sh
# SPDX-License-Identifier: MIT
# The MindSpore adapter against the real package: what it records, that it changes nothing, and that
# its dumps compare with those of PyTorch and of C.
#   B=build  PYTHON=/usr/bin/python3 (with torch)
#   MINDSPORE_PYTHON=FILE    a Python of the version the extension is built for that has mindspore
#   MINDSPORE_INSTALL=DIR    without one: make a virtual environment there from PyPI
#   MINDSPORE_FAULTS=all     every fault against every other run; without it, three of them
#   MINDSPORE_BREAKS=1       each call of ours fails in a training, not a sample of them
#   MINDSPORE_WAYS=all       each way to train is compared at every level with every task, not with one of them
#                            that each commit draws anew
#   MINDSPORE_RANKS=1        two processes train in data parallel, without a dump and with each
#   OFFICIAL=DIR             a folder with the package msprobe of mindstudio-probe and what it needs
suite=mindspore
. tests/support/checks.sh
export PYTHONDONTWRITEBYTECODE=1 MSTX_QUIET=2 GLOG_v=3
unset MSPROBE_DUMP
extension=$(ls "$build"/python/msprobe/_probe*.so 2>/dev/null | head -1)
[ -n "$extension" ] || skip "no extension was built; are there headers of Python?"
if ldd "$extension" | grep -q 'libasan\|libtsan'; then
    skip "the interpreter is built without the sanitizer"
fi
# The package is not always for the newest numpy, and says so only when it runs.
find_python MINDSPORE mindspore 400 'numpy<2' mindspore
"$python" -c 'import sys; sys.path.insert(0, sys.argv[1]); from msprobe import _probe' \
    "$build/python" 2>/dev/null || skip "the extension is for another version than $python"

"$python" tests/suites/suite_mindspore.py "$B"
draw=$(git rev-parse HEAD 2>/dev/null || echo none)
[ "${MINDSPORE_WAYS:-}" != all ] || draw=
DRAW=$draw "$python" tests/suites/mindspore_unchanged.py "$B"
"$python" tests/suites/mindspore_faults.py "$B"
"$python" tests/suites/mindspore_breaks.py "$B" --every "${MINDSPORE_BREAKS:-40}"
[ -z "${MINDSPORE_RANKS:-}" ] || "$python" tests/suites/mindspore_ranks.py "$B"
"$python" tests/suites/mindspore_oracle.py "$B" "${OFFICIAL:-}"
"$python" tests/suites/graph_mistakes.py "$B" "${MISTAKES:-sample}"

# ---- the training monitor: trainings compute the same with it, and its csv files are those of the official one

here=$(pwd)/tests/suites/monitor
monitored() { # PYTHONPATH HOW OUT [NAME]: in the scratch folder, where the compiler leaves files
    (cd "$scratch" && PYTHONPATH=$1 "$python" "$here/programs_mindspore.py" "$2" "$3" ${4:+"$4"} 2>>"$scratch/said") |
        grep DONE
}
monitored '' none "$scratch/none" >"$scratch/none.txt"
monitored "$build/python" monitored "$scratch/ours" >"$scratch/ours.txt"
check every_monitored_program_ran test "$(wc -l <"$scratch/none.txt")" -eq 13
check monitored_trainings_are_the_same_bit_by_bit cmp "$scratch/none.txt" "$scratch/ours.txt"
if [ -d "${OFFICIAL:-/nowhere}/msprobe/mindspore" ]; then
    # Not halves: in a cell of mixed precision the official monitor's own functions are cast as well.
    for name in mlp named convolutions transformer recurrent frozen two_chunks; do
        monitored "$OFFICIAL" official "$scratch/theirs" "$name" >/dev/null
    done
    "$PYTHON" "$here/compare.py" "$scratch/ours" "$scratch/theirs" mindspore || rc=1
fi

# ---- one model in C, PyTorch and MindSpore --------------------------------------------------

report() { # name status
    if [ "$2" -eq 0 ]; then
        echo "ok $1"
    else
        echo "not ok $1"
        [ ! -s "$said" ] || sed 's/^/    /' "$said" | head -12
    fi
}
in_c() { "$build/samples/train_mpi" --steps 1 --quiet "$@" 2>/dev/null; }
in_torch() { PYTHONPATH=$build/python "$PYTHON" samples/train_torch.py --steps 1 --quiet "$@"; }
in_mindspore() { PYTHONPATH=$build/python "$python" samples/train_mindspore.py --steps 1 --quiet "$@" 2>/dev/null; }
compare() { # TARGET GOLDEN
    "$build/msprobe" compare -tp "$scratch/$1/step0" -gp "$scratch/$2/step0" -o "$scratch/out" \
        >"$said" 2>&1
}
no_suspect() { compare "$1" "$2" && grep -q '^no suspect' "$said"; }
first_suspect() { # TARGET GOLDEN MODULE: an operator in it, or itself
    compare "$1" "$2"
    sed -n 's/^suspect 1  *//p' "$said" | grep -Eq " in $3|^(Module|Cell)\.$3"
}
loss_is_near() { # LOSS LOSS
    echo "$1 $2" | awk '{d = $4 - $8; exit !(d < 1e-4 && d > -1e-4 && $4 > 1)}'
}

runs=mindspore
mine=$(in_mindspore --dump "$scratch/mindspore")
[ -n "$mine" ] && [ "$mine" = "$(in_mindspore)" ]
report the_sample_computes_the_same_with_a_dump $?
if "$PYTHON" -c 'import torch' 2>/dev/null; then
    runs="$runs torch"
    loss_is_near "$mine" "$(in_torch --dump "$scratch/torch")"
    report the_loss_is_that_of_pytorch $?
fi
if [ -x "$build/samples/train_mpi" ]; then
    runs="$runs c"
    loss_is_near "$mine" "$(in_c --dump "$scratch/c")"
    report the_loss_is_that_of_c $?
fi
for golden in $runs; do
    [ "$golden" = mindspore ] || {
        no_suspect mindspore "$golden"
        report "no_suspect_against_$golden" $?
    }
done

# A fault is made in layer 1 and is found there; one that only shows inside layer norm, or in what
# another framework calls otherwise, is looked for where both runs have the operator.
fault_is_found() { # FAULT RUN GOLDEN
    "in_$2" --dump "$scratch/$2_$1" --fault "layer1.$1" >/dev/null &&
        first_suspect "$2_$1" "$3" layers.1
    report "fault_$1_in_$2_is_found_against_$3" $?
    rm -rf "$scratch/$2_$1"
}
few="scale half"
[ "${MINDSPORE_FAULTS:-}" != all ] || few="scale sign transposed residual eps mask half bias"
for fault in $few; do
    for golden in $runs; do
        [ "$golden" = mindspore ] || fault_is_found "$fault" mindspore "$golden"
    done
done
case " $runs " in *" torch "*) fault_is_found eps torch mindspore ;; esac
fault_is_found half mindspore mindspore
case " $runs " in *" c "*) fault_is_found half c mindspore ;; esac
