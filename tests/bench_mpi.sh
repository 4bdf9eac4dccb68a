#!/bin/sh
# SPDX-License-Identifier: MIT
# What a hooked MPI call costs over the bare call, and what lammps pays, both in CPU time; runs with
# and without the hook alternate.  Bars: 150 ns recording, 10 ns with recording off, 1 % of lammps.
#   B=build        what to measure
#   RUNS=5         how often calls are measured; PARTS='cost lammps'
#   RANKS='2 4', STEPS=3000, SECONDS_EACH=60: of lammps, which runs in blocks, see bench_pairs.py
B=${B:-build}
build=$(cd "$B" && pwd) || exit 1
msprobe=$build/msprobe
scratch=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-bench-mpi-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
export MSTX_QUIET=2 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
unset LD_PRELOAD MSTX_OUT

best_of() { # NAME LINES: column by column the least
    awk -v name="$1" '{for (i = 1; i <= NF; i++) if (NR == 1 || $i < m[i]) m[i] = $i}
        END {$0 = name; for (i = 1; i in m; i++) $(i + 1) = m[i]; print}' "$2"
}
cost_of() { # FLAVOUR PROGRAM NAMES-AND-CALLS...: as many as the program prints
    for i in $(seq "${RUNS:-5}"); do
        "mpirun.$1" -n 1 "$2" >>"$scratch/bare"
        "mpirun.$1" -n 1 "$msprobe" run -o "$scratch/run" -- "$2" >>"$scratch/on" 2>/dev/null
        "mpirun.$1" -n 1 "$msprobe" run -o "$scratch/run" --domain_exclude communication -- "$2" >>"$scratch/off" 2>/dev/null
        rm -rf "$scratch/run"
    done
    { best_of bare "$scratch/bare"; best_of on "$scratch/on"; best_of off "$scratch/off"; } |
        awk -v f="$1" -v names="$3" '{for (i = 2; i <= NF; i++) v[$1, i - 1] = $i}
            END {n = split(names, what, ",")
                for (i = 1; i <= n; i++) {
                    split(what[i], w, ":")
                    printf "  %-8s %-26s bare %7.1f ns   recording +%6.1f ns   off +%5.1f ns a call\n", f, w[1],
                        v["bare", i] / w[2], (v["on", i] - v["bare", i]) / w[2], (v["off", i] - v["bare", i]) / w[2]
                }}'
    rm -f "$scratch/bare" "$scratch/on" "$scratch/off"
}
cost_of_calls() { # FLAVOUR
    command -v "mpicc.$1" >/dev/null && [ -e "$build/libmstx_mpi_$1.so" ] || return 0
    "mpicc.$1" -w -O2 -o "$scratch/cost" tests/rt/mpi_cost.c || return 0
    cost_of "$1" "$scratch/cost" "$("$scratch/cost" names)"
    command -v "mpif90.$1" >/dev/null && "mpif90.$1" -w -O2 -o "$scratch/cost" tests/rt/mpi_cost.f90 || return 0
    cost_of "$1" "$scratch/cost" "Fortran send:1,Fortran allreduce:1,Fortran isend and wait:2"
}

# What a run pays beside what it takes: measured, and what its calls cost at most by the bar of a call.
# Runs are kept until the end: ext4 looks at every inode that was deleted a short while ago before it makes
# the next file.
cost_of_lammps() { # RANKS
    bare="mpirun.openmpi -n $1 $lmp -log none -in $scratch/in"
    mkdir -p "$scratch/runs"
    runs=$scratch/runs/$1
    python3 tests/bench_pairs.py "${SECONDS_EACH:-60}" "$bare" \
        "mpirun.openmpi -n $1 $msprobe run -o $runs.{} -- $lmp -log none -in $scratch/in" >"$scratch/found" || return 0
    printf '  lammps on %d ranks, CPU time added: %s\n' "$1" "$(cat "$scratch/found")"
    sed 's/^run .*/run 0/' "$scratch/in" >"$scratch/in0"
    python3 tests/bench_pairs.py "$((${SECONDS_EACH:-60} / 6))" "mpirun.openmpi -n $1 $lmp -log none -in $scratch/in0" \
        "mpirun.openmpi -n $1 $msprobe run -o $runs.0.{} -- $lmp -log none -in $scratch/in0" |
        awk -v n="$1" -F '; ' '{print "  lammps on " n " ranks that does nothing: " $2}'
    calls=$("$msprobe" sql "$runs.1" "SELECT count(*) FROM events WHERE domain = 'communication'" | tail -n 1)
    awk -v calls="$calls" -v n="$1" '{for (i = 2; i <= NF; i++) if ($i == "s" && $(i + 1) == "CPU") cpu = $(i - 1)
        printf "  lammps on %d ranks: %d calls a run, at 150 ns each %.3f %% of that\n", n, calls, 100 * calls * 150e-9 / cpu}' "$scratch/found"
}

case ${PARTS:=cost lammps} in *cost*)
    cost_of_calls openmpi
    cost_of_calls mpich
    ;;
esac
lmp=$(command -v lmp) || exit 0
case $PARTS in *lammps*) ;; *) exit 0 ;; esac
[ -e "$build/libmstx_mpi_openmpi.so" ] || exit 0
sed "s/^run .*/run ${STEPS:-3000}/; s/^thermo .*/thermo 500/; s/0 6 0 6 0 6/0 10 0 10 0 10/" tests/data/melt.lmp >"$scratch/in"
for n in ${RANKS:-2 4}; do
    cost_of_lammps "$n"
done
