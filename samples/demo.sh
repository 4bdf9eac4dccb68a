#!/bin/sh
# SPDX-License-Identifier: MIT
# The whole story in two minutes: one small model is trained on two ranks, right and then with a
# fault, then with a slow rank; msprobe names the operator and the rank.  All of it lies in one folder.
#   B=build          what to run
#   samples/demo.sh [FOLDER]     default build/demo
set -e
B=${B:-build}
out=${1:-$B/demo}
PATH=$(cd "$B" && pwd):$PATH
rm -rf "$out"
mkdir -p "$out"

title() { printf '\n== %s\n' "$*"; }
# What a reader would type, then what it prints.
show() {
    printf '\n$ %s\n' "$*"
    "$@"
}
# The same of a command that answers a question: what it found is kept, to be told once more at the end.
answer() { # PATTERN COMMAND...
    pattern=$1
    shift
    show "$@" >"$out/said" || { cat "$out/said"; return 1; }
    cat "$out/said"
    printf '%s\n    $ %s\n' "$(grep -m1 -e "$pattern" "$out/said" | sed 's/^ *//; s/^error *//' | cut -c1-110 | sed 's%^\(.\{90,\}\) [^ ]*$%\1 ...%')" "$*" >>"$out/answers"
    rm -f "$out/said"
}

# The launcher of the MPI that the trainer was built with.
launcher() {
    [ -x "$B/samples/train_mpi" ] || return 0
    if ldd "$B/samples/train_mpi" | grep -q libmpich; then flavour=mpich; else flavour=openmpi; fi
    command -v "mpirun.$flavour" || command -v mpirun || true
}
mpirun=$(launcher)
ranks() { show "$mpirun" -n 2 "$@"; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

train=$B/samples/train_mpi
my_port_diverges() {
    title 'A model is trained on two ranks, then again with a fault in layer 2.'
    ranks "$train" --steps 1 --dump "$out/clean"
    ranks "$train" --steps 1 --dump "$out/faulty" --fault layer2.scale
    title 'Which operator introduces the difference?'
    answer '^suspect 1' msprobe compare -tp "$out/faulty" -gp "$out/clean" -o "$out/compared"
    title 'The same as a graph, for the viewers and for the TensorBoard plugin.'
    show msprobe graph_visualize -tp "$out/faulty/step0" -gp "$out/clean/step0" -o "$out/graph"
}
my_cluster_is_slow() {
    title 'The same training with marks; one of the ranks is slow.'
    ranks msprobe run -o "$out/run" -- "$train" --steps 20 --slow-rank 1 --slow-factor 6 --quiet
    title 'Who makes the others wait?'
    answer 'makes the others wait' msprobe report --most 5 "$out/run"
    show msprobe export "$out/run" --format perfetto -o "$out/trace.perfetto"
}
marks_in_my_program() {
    title 'Marks in a program of your own.'
    show msprobe run -o "$out/marks" -- "$B/samples/mstx_c"
    show msprobe report --most 5 "$out/marks"
}
the_first_nan() {
    title 'A single process divides by zero: which operator made the first NaN?'
    show "$B/samples/two_dumps" "$out/nan"
    show msprobe stat "$out/nan/faulty"
    answer 'makes NaN' msprobe overflow_check -i "$out/nan/faulty/step0" -o "$out/nan/first"
}

if [ -n "$mpirun" ]; then
    my_port_diverges
    my_cluster_is_slow
else
    echo 'no MPI here: the training on two ranks is left out'
fi
marks_in_my_program
the_first_nan

title 'The answers, each with the command that gave it'
printf '\n'
sed 's/^/  /' "$out/answers"
wanted=1
[ -z "$mpirun" ] || wanted=3
[ "$(grep -c '^    \$ msprobe' "$out/answers")" = $wanted ] || { echo "a question has no answer"; exit 1; }
title "Everything lies in $out.  Look further:"
if [ -n "$mpirun" ]; then
    cat <<EOF
  $B/msprobe view $out/run                        the run in this terminal
  $B/msprobe serve $out/run --open                the run in a browser
  $B/msprobe serve $out/faulty/step0/rank0 --golden_path $out/clean/step0/rank0 --open
  $B/msprobe sql $out/run 'select name, count(*) from events group by name'
EOF
fi
cat <<EOF
  $B/msprobe compare -tp $out/nan/faulty -gp $out/nan/clean -o $out/nan/compared
  $B/msprobe help
EOF
