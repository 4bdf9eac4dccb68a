#!/bin/sh
# SPDX-License-Identifier: MIT
# The main job in a minute: sample programs write two dumps, one of a run with a
# fault, and a capture, and msprobe says what is in them.  All of it lies in one folder.
set -e
B=${B:-build}
out=${1:-$B/demo}
rm -rf "$out"

say() { printf '\n$ %s\n' "$*"; }

say "$B/samples/two_dumps $out"
"$B/samples/two_dumps" "$out"
say "msprobe stat $out/clean"
"$B/msprobe" stat "$out/clean"
say "msprobe stat $out/faulty"
"$B/msprobe" stat "$out/faulty"

say "msprobe parse -d $out/faulty -t npy -o $out/npy"
"$B/msprobe" parse -d "$out/faulty" -t npy -o "$out/npy"

say "msprobe overflow_check -i $out/faulty/step0 -o $out/first"
"$B/msprobe" overflow_check -i "$out/faulty/step0" -o "$out/first"
say "msprobe compare -tp $out/faulty -gp $out/clean -o $out/compared"
"$B/msprobe" compare -tp "$out/faulty" -gp "$out/clean" -o "$out/compared"
say "msprobe run -o $out/run -- $B/samples/mstx_c"
"$B/msprobe" run -o "$out/run" -- "$B/samples/mstx_c"
say "msprobe report $out/run"
"$B/msprobe" report "$out/run"
# Data-parallel training, when there is an MPI to build and launch it with.
mpirun=
if [ -x "$B/samples/train_mpi" ]; then
    ldd "$B/samples/train_mpi" | grep -q libmpich && flavour=mpich || flavour=openmpi
    mpirun=$(command -v "mpirun.$flavour" || command -v mpirun || true)
fi
if [ -n "$mpirun" ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    train=$B/samples/train_mpi
    say "mpirun -n 2 $train --steps 1 --dump $out/good"
    "$mpirun" -n 2 "$train" --steps 1 --dump "$out/good"
    say "mpirun -n 2 $train --steps 1 --dump $out/bad --fault layer2.scale"
    "$mpirun" -n 2 "$train" --steps 1 --dump "$out/bad" --fault layer2.scale
    say "msprobe compare -tp $out/bad/step0/rank0/dump.json -gp $out/good/step0/rank0/dump.json -o $out/compared"
    "$B/msprobe" compare -tp "$out/bad/step0/rank0/dump.json" -gp "$out/good/step0/rank0/dump.json" -o "$out/compared"
    say "mpirun -n 3 msprobe run -o $out/ranks -- $train --steps 5 --slow-rank 2"
    "$mpirun" -n 3 "$B/msprobe" run -o "$out/ranks" -- "$train" --steps 5 --slow-rank 2
    say "msprobe report $out/ranks"
    "$B/msprobe" report "$out/ranks"
fi

cat <<EOF

Both runs compute the same network; the second divides by a temperature of zero
before its softmax, and that operator is named as the first one with NaN. The
last program marks 20 steps of which one is slow. Look further:
  $B/msprobe stat --format json $out/faulty
  $B/msprobe graph_visualize -tp $out/faulty -gp $out/clean -o $out
  $B/msprobe export $out/run --format perfetto -o $out/trace.perfetto
  $B/msprobe help
EOF
