#!/bin/sh
# SPDX-License-Identifier: MIT
# Commands that mpirun starts as K processes print once, and write the same for every K and every
# flavour of MPI: compare, also when one rank's dump cannot be read, and those that read runs.  The
# death of a process ends them with a failure and leaves nothing half.
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
for r in 0 1 2 3 4; do
    for step in 0 1 2; do
        dump "$top/steps/step$step" $r 2.$step
    done
done
dump "$top/steps/step1" 3 NaN
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

# ---- commands that read runs ----------------------------------------------------------------

# Under a sanitizer a killed MPI job leaves processes behind for seconds.
if [ -z "$tried" ] || is_sanitized; then
    echo 'skip runs: a sanitized build, or no mpirun'
    exit $rc
fi
"$B/tests/tool_sim" "$top/sim" straggler 0.1 7 >/dev/null
reading='report json sql whatif slow_rank mstx_sum all hccl_sum cluster_time_summary no_rank no_place export check check_json check_cut trend stat overflow graph missing usage help'
of_command() { # name: sets its arguments
    case $1 in
    report) set -- report "$top/sim" ;;
    json) set -- report --format json "$top/sim" ;;
    sql) set -- sql "$top/sim" 'SELECT op, count(*), sum(bytes) FROM comm_ops GROUP BY op' ;;
    whatif) set -- whatif "$top/sim" ;;
    no_rank) set -- cluster -m hccl_sum -d "$top/sim" -o "$top/made" --rank_list 4095 ;;
    no_place) set -- cluster -m hccl_sum -d "$top/sim" -o /dev/null/made ;;
    slow_rank | mstx_sum | all | hccl_sum | cluster_time_summary) set -- cluster -m "$1" -d "$top/sim" -o "$top/made" --export_type text ;;
    export) set -- export --format csv -o "$top/made.csv" "$top/sim" ;;
    check) set -- check "$top/b" ;;
    check_json) set -- check --format json "$top/steps" ;;
    check_cut) set -- check "$top/t" ;;
    trend) set -- trend "$top/steps" ;;
    stat) set -- stat "$top/b/rank0" ;;
    overflow) set -- overflow_check -i "$top/steps/step1" -o "$top/made" ;;
    graph) set -- graph_visualize -tp "$top/b/rank0" -o "$top/made" ;;
    missing) set -- report "$top/nowhere" ;;
    usage) set -- sql --bogus ;;
    help) set -- cluster --help ;;
    esac
    printf '%s\0' "$@" >"$top/arguments"
}
# What a command prints and writes, without what the clock tells.
ran() { # launcher...
    rm -rf "$top/made" "$top/made.csv" "$top/sim/run.db"
    xargs -0 -a "$top/arguments" "$@" >"$top/printed" 2>"$top/complained" </dev/null
    echo "exit $?"
    cat "$top/printed"
    grep '^msprobe' "$top/complained"
    find "$top/made" "$top/made.csv" -type f 2>/dev/null | sort | while read -r f; do
        echo "$f"
        case $f in *.vis.db) ;; *) cat "$f" ;; esac
    done
}
same() { sed -e 's/analyze_[0-9]*/analyze_NS/g' -e 's/_[0-9]\{14\}/_TIME/g' -e 's/"seconds": [0-9.e-]*/"seconds": S/' -e 's/ in [0-9.]* [a-z]*s\(, .*\/s\)*$//' -e 's/^exit [1-9].*/exit failed/'; }
for c in $reading; do
    of_command "$c"
    ran "$tool" | same >"$top/$c.want"
    for flavour in openmpi mpich; do
        command -v "mpirun.$flavour" >/dev/null && [ -e "$B/libmsprobe_mpi_$flavour.so" ] || continue
        for k in 2 3; do
            of_command "$c"
            options=
            [ $flavour = openmpi ] && options='--allow-run-as-root --oversubscribe --quiet'
            # shellcheck disable=SC2086
            if ran timeout 120 mpirun.$flavour $options -n $k "$tool" |
                same | cmp -s - "$top/$c.want"; then
                ok "$c-$flavour-$k prints once, and the same"
            else
                bad "$c-$flavour-$k"
                diff "$top/printed" "$top/$c.want" | head -5
                head -5 "$top/complained"
            fi
        done
    done
done
grep -q '"pattern": "nan"' "$top/check_json.want" || bad 'check finds no NaN'
grep -q 'rank3.*left out' "$top/check_cut.want" || bad 'check says nothing of the rank that cannot be read'
grep -q 'rank' "$top/report.want" && grep -q 'exit 0' "$top/report.want" || bad 'a report says nothing'

# A program with an MPI of its own starts a command in one process: that runs alone.
"$tool" report "$top/sim" >"$top/alone.want"
for flavour in openmpi mpich; do
    command -v "mpirun.$flavour" >/dev/null && [ -e "$B/libmsprobe_mpi_$flavour.so" ] || continue
    command -v "mpicc.$flavour" >/dev/null || continue
    options=
    [ $flavour = openmpi ] && options='--allow-run-as-root --oversubscribe --quiet'
    "mpicc.$flavour" -w -O1 -o "$top/asks" tests/programs/mpi_asks.c || { bad "$flavour: mpi_asks"; continue; }
    # shellcheck disable=SC2086
    if timeout 120 mpirun.$flavour $options -n 2 "$top/asks" "'$tool' report '$top/sim'" >"$top/printed" 2>/dev/null &&
        cmp -s "$top/printed" "$top/alone.want"; then
        ok "$flavour: a report that one process of a program asks for"
    else
        bad "$flavour: a report that one process of a program asks for"
        diff "$top/printed" "$top/alone.want" | head -5
    fi
done

# A run recorded under one flavour, analysed by processes of the other: what each says is what one process says.
launch() { # FLAVOUR PROCESSES COMMAND...
    options=
    [ "$1" = openmpi ] && options='--allow-run-as-root --oversubscribe --quiet'
    launcher=mpirun.$1 processes=$2
    shift 2
    # shellcheck disable=SC2086
    timeout 120 "$launcher" $options -n "$processes" "$@"
}
answers_of() { # command and arguments before it...
    rm -f "$top/flavoured/run.db"
    "$@" import "$top/flavoured" >/dev/null || return 1
    "$@" report --format json "$top/flavoured" && "$@" sql "$top/flavoured" \
        'SELECT rank, name, comm_group IS NOT NULL, count(*), sum(bytes) FROM comm_ops GROUP BY 1, 2, 3 ORDER BY 1, 2, 3'
}
crosses() { # RECORDED-WITH ANALYSED-WITH
    rm -rf "$top/flavoured" "$top/one" "$top/several"
    "mpicc.$1" -w -O1 -o "$top/speaks" tests/programs/mpi_app.c -lpthread &&
        launch "$1" 4 "$tool" run -o "$top/flavoured" -- "$top/speaks" all >/dev/null || return 1
    answers_of "$tool" | same >"$top/one" && answers_of launch "$2" 3 "$tool" | same >"$top/several" || return 1
    grep -q '^3.MPI_Allreduce' "$top/one" && diff "$top/one" "$top/several"
}
if command -v mpicc.openmpi >/dev/null && command -v mpicc.mpich >/dev/null &&
    [ -e "$B/libmsprobe_mpi_openmpi.so" ] && [ -e "$B/libmsprobe_mpi_mpich.so" ]; then
    check 'a program of MPICH analysed under Open MPI' crosses mpich openmpi
    check 'a program of Open MPI analysed under MPICH' crosses openmpi mpich
else
    echo 'skip one flavour under the other: both have to be installed'
fi

# One of three processes is killed at its start, while the others wait for it.
killed_at_start() { # flavour command...
    flavour=$1
    shift
    options=
    [ $flavour = openmpi ] && options='--allow-run-as-root --oversubscribe'
    # shellcheck disable=SC2086,SC2016
    timeout 120 mpirun.$flavour $options -n 3 sh -c 'if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 2 ]; then kill -9 $$; fi; exec "$@"' \
        sh "$tool" "$@" >"$top/printed" 2>"$top/complained"
}
for flavour in openmpi mpich; do
    command -v "mpirun.$flavour" >/dev/null && [ -e "$B/libmsprobe_mpi_$flavour.so" ] || continue
    for command in import 'cluster -m all -d'; do
        [ "$command" = import ] || "$tool" import "$top/sim" >/dev/null
        [ "$command" = import ] && rm -f "$top/sim/run.db"
        # shellcheck disable=SC2086
        killed_at_start $flavour $command "$top/sim"
        code=$?
        [ "$command" = import ] || rm -f "$top/sim/run.db"
        left=$(find "$top/sim" -maxdepth 1 -type f)$(find "$top/sim/cluster_analysis_output" -type f 2>/dev/null)
        if [ $code -ne 0 ] && [ $code -ne 124 ] && [ -z "$left" ]; then
            ok "$flavour: ${command%% *}, of which a process dies, fails and leaves nothing half"
        else
            bad "$flavour: ${command%% *}, of which a process died: exit $code, left $left"
        fi
    done
done
exit $rc
