#!/bin/sh
# SPDX-License-Identifier: MIT
# How right the alignment is: a few generated pairs of every case against limits a
# little below what is usual, and recorded pairs of two frameworks where they are.
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
tool=$B/tests/tool_align
golden=${MSPROBE_GOLDEN:-../shared/golden}

[ -x "$PYTHON" ] || { echo "skip align: no $PYTHON"; exit 0; }
PYTHONDONTWRITEBYTECODE=1 "$PYTHON" tests/gen/align_accuracy.py --tool "$tool" --pairs 3 --check

# The table that a user gets, generated and scored by tools that are not ours.
PYTHONDONTWRITEBYTECODE=1 "$PYTHON" tests/gen/align_csv.py --pairs 6 --first 1 --jobs 1 --check

# What --write_mapping writes, given back in every form.
PYTHONDONTWRITEBYTECODE=1 "$PYTHON" tests/gen/mapping_trip.py --pairs 4 --check

for case in cross_a cross_b cross_tensor; do
    if [ -f "$golden/$case/truth.json" ]; then
        PYTHONDONTWRITEBYTECODE=1 "$PYTHON" tests/gen/align_accuracy.py --tool "$tool" \
            --recorded "$golden/$case"
    else
        echo "skip align $case: no $golden/$case"
    fi
done

# Every row that the official tool pairs with a mapping written by hand is paired without.
case=$golden/cross_fixture
if [ -d "$case" ]; then
    ours=$("$tool" -d "$case/target/step0/rank0" "$case/golden/step0/rank0")
    missing=$(printf '%s\n' "$ours" | grep -vxF -f - "$case/expected/compare_lm.data_mapping.yaml" | grep .)
    if [ -z "$missing" ]; then
        echo "ok align cross_fixture"
    else
        echo "not ok align cross_fixture"
        printf '%s\n' "$missing"
    fi
else
    echo "skip align cross_fixture: no $case"
fi
