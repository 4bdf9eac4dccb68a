#!/bin/sh
# SPDX-License-Identifier: MIT
# What a hooked MPI call costs over the bare call, and what lammps pays, both in CPU time; runs with
# and without the hook alternate.  Bars: 150 ns recording, 10 ns with recording off, 1 % of lammps.
#   B=build        what to measure
#   RUNS=9         how often; RANKS='2 4', STEPS=1000: of lammps; PARTS='cost lammps'
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
    cost_of "$1" "$scratch/cost" "send to nobody:1,allreduce of self:1,isend and wait:2,bcast to self:1,four requests and waitall:5"
    command -v "mpif90.$1" >/dev/null && "mpif90.$1" -w -O2 -o "$scratch/cost" tests/rt/mpi_cost.f90 || return 0
    cost_of "$1" "$scratch/cost" "Fortran send:1,Fortran allreduce:1,Fortran isend and wait:2"
}

cpu_of() { # COMMAND...: seconds of CPU time of all its processes
    python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print(u.ru_utime + u.ru_stime)' "$@"
}
# Pairs of runs, in turn one or the other first; the median of the ratios.  Runs are kept until the
# end: ext4 looks at every inode that was deleted a short while ago before it makes the next file.
cost_of_lammps() { # RANKS
    for i in $(seq "$runs"); do
        for what in $([ $((i % 2)) -eq 0 ] && echo bare on || echo on bare); do
            set -- "$1"
            [ "$what" = bare ] || set -- "$1" "$msprobe" run -o "$scratch/runs/$1.$i" --
            n=$1
            shift
            cpu_of mpirun.openmpi -n "$n" "$@" "$lmp" -log none -in "$scratch/in" >"$scratch/$what"
            set -- "$n"
        done
        paste "$scratch/bare" "$scratch/on"
    done | awk '{print $2 / $1, $1, $2}' | sort -n | awk -v n="$1" '
        {ratio[NR] = $1; if (NR == 1 || $2 < bare) bare = $2; if (NR == 1 || $3 < on) on = $3}
        END {printf "  lammps on %d ranks: median of %d pairs %+.2f %% (%+.1f to %+.1f); least %.3f s CPU bare, %.3f s recorded: %+.2f %%\n",
                 n, NR, 100 * (ratio[int((NR + 1) / 2)] - 1), 100 * (ratio[1] - 1), 100 * (ratio[NR] - 1), bare, on, 100 * (on / bare - 1)}'
}

runs=${RUNS:-9}
case ${PARTS:=cost lammps} in *cost*)
    cost_of_calls openmpi
    cost_of_calls mpich
    ;;
esac
lmp=$(command -v lmp) || exit 0
case $PARTS in *lammps*) ;; *) exit 0 ;; esac
[ -e "$build/libmstx_mpi_openmpi.so" ] || exit 0
sed "s/^run .*/run ${STEPS:-1000}/; s/^thermo .*/thermo 500/; s/0 6 0 6 0 6/0 10 0 10 0 10/" tests/data/melt.lmp >"$scratch/in"
for n in ${RANKS:-2 4}; do
    cost_of_lammps "$n"
done
