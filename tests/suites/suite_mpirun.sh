#!/bin/sh
# SPDX-License-Identifier: MIT
# `mpirun -n K msprobe compare` writes the same for every K and every flavour of
# MPI, also when one rank's dump cannot be read.
suite=mpirun
. tests/support/checks.sh
tool=$msprobe
top=$scratch

dump() { # directory rank scale
    mkdir -p "$1/rank$2"
    cat >"$1/rank$2/dump.json" <<END
{"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": {
"Torch.mul.0.forward": {"input_args": [
  {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.5, "Mean": 0.75, "Norm": 1.25, "requires_grad": false}],
  "output": [
  {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": $3, "Min": 0.5, "Mean": 0.75, "Norm": $3, "requires_grad": false}]}}}
END
}

# An .npy of n float32, each of the four bytes given.
npy() { # file n bytes
    {
        printf '\223NUMPY\001\000v\000'
        printf "%-117s\n" "{'descr': '<f4', 'fortran_order': False, 'shape': ($2,), }"
        k=0
        while [ $k -lt "$2" ]; do
            # shellcheck disable=SC2059
            printf "$3"
            k=$((k + 1))
        done
    } >"$1"
}
tensors() { # directory bytes
    mkdir -p "$1/rank0/dump_tensor_data"
    {
        echo '{"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": null, "data": {'
        for i in 0 1 2 3 4 5; do
            npy "$1/rank0/dump_tensor_data/a$i.npy" $((i + 3)) "$2"
            [ $i -eq 0 ] || echo ,
            echo "\"Torch.mul.$i.forward\": {\"output\": [{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [$((i + 3))], \"Max\": 1.0, \"Min\": 1.0, \"Mean\": 1.0, \"Norm\": 1.0, \"requires_grad\": false, \"data_name\": \"a$i.npy\"}]}"
        done
        echo '}}'
    } >"$1/rank0/dump.json"
}

for r in 0 1 2 3 4; do
    dump "$top/t" $r 2.$r
    dump "$top/b" $r 2.5
done
echo '{"task": "statistics", "data": {' >"$top/t/rank3/dump.json"
tensors "$top/tt" '\000\000\200\077'
tensors "$top/tb" '\000\000\300\077'
rm "$top/tb/rank0/dump_tensor_data/a4.npy"

# Everything that was written, without the time in names and in what was said.
result() { # directory
    for f in "$1"/out/*; do
        echo "$f" | sed -e 's/.*\///' -e 's/_[0-9]\{14\}/_TIME/' -e 's/analyze_[0-9]*/analyze_NS/'
        cat "$f"
    done
    sed -e 's/_[0-9]\{14\}/_TIME/g' -e 's/analyze_[0-9]*/analyze_NS/' -e '/ in .*\/s$/d' "$1/said" "$1/complaints"
}
start() { # folder K launcher... -- arguments
    dir=$top/$1
    shift
    mkdir -p "$dir"
    (cd "$dir" && timeout 120 "$@" -o out >said 2>complaints)
    echo "exit $?" >>"$dir/said"
}

cases='ranks da tensors'
arguments() { # case
    case $1 in
    ranks) echo "compare -tp $top/t -gp $top/b" ;;
    da) echo "compare -tp $top/t -gp $top/b -da" ;;
    tensors) echo "compare -tp $top/tt -gp $top/tb --ext" ;;
    esac
}
for c in $cases; do
    # shellcheck disable=SC2046
    start "alone_$c" "$tool" $(arguments $c)
    result "$top/alone_$c" >"$top/$c.want"
done
grep -q 'rank3/dump.json' "$top/ranks.want" || bad 'the rank that cannot be read is not named'
grep -q 'NaN\|error' "$top/tensors.want" || bad 'the missing tensor is not an error'

tried=
for flavour in openmpi mpich; do
    launcher=$(command -v mpirun.$flavour) || continue
    [ -e "$B/libmsprobe_mpi_$flavour.so" ] || continue
    tried=y
    options=
    [ $flavour = openmpi ] && options='--allow-run-as-root --oversubscribe --quiet'
    for k in 2 4; do
        for c in $cases; do
            name=$flavour-$k-$c
            # shellcheck disable=SC2046,SC2086
            start "$name" "$launcher" $options -n $k "$tool" $(arguments $c)
            if result "$top/$name" | cmp -s - "$top/$c.want"; then
                ok "$name"
            else
                bad "$name"
                result "$top/$name" | diff "$top/$c.want" - | head -10
            fi
        done
    done
    # shellcheck disable=SC2046,SC2086
    start "$flavour-verbose" "$launcher" $options -n 2 "$tool" $(arguments tensors) -v
    if grep -q ' msprobe rank [01] [0-9]*: .*a4' "$top/$flavour-verbose/complaints"; then
        ok "$flavour: lines of the log say whose they are"
    else
        bad "$flavour: lines of the log say whose they are"
        head -5 "$top/$flavour-verbose/complaints"
    fi
done
[ -n "$tried" ] || echo 'skip mpi: no mpirun with a plugin for it'
exit $rc
