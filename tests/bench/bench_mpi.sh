#!/bin/sh
# SPDX-License-Identifier: MIT
# How much faster commands are that two processes share, in seconds of a clock: best to be measured on an
# idle machine.  What a hooked MPI call costs over the bare call, and what lammps pays, both in CPU time; runs with
# and without the hook alternate, those of lammps run beside each other (bench_pairs.py).  Bars: 150 ns
# recording, 10 ns with recording off, 1 % of lammps.
#   B=build        what to measure
#   RUNS=5         how often calls and commands are measured; PARTS='speedup cost lammps'
#   SHARED=256     ranks of the run that commands share; DUMPS=64: those of the dumps
#   RANKS='2 4', SIZES='10:3000 20:400', SECONDS_EACH=60: of lammps, how long each of these runs; cells
#                  along an edge and steps.  20 is lammps' own benchmark; 10 has 60,000 calls a second.
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
    "mpicc.$1" -w -O2 -o "$scratch/cost" tests/programs/mpi_cost.c || return 0
    cost_of "$1" "$scratch/cost" "$("$scratch/cost" names)"
    command -v "mpif90.$1" >/dev/null && "mpif90.$1" -w -O2 -o "$scratch/cost" tests/programs/mpi_cost.f90 || return 0
    cost_of "$1" "$scratch/cost" "Fortran send:1,Fortran allreduce:1,Fortran isend and wait:2"
}

# What a run pays, and what its calls cost at most by the bar of a call.  Ranks that wait give way, since two
# programs run beside each other.  Runs are kept until the end: ext4 looks at every inode that was deleted
# a short while ago before it makes the next file.
added_to_lammps() { # RANKS SECONDS INPUT NAME
    python3 tests/bench/bench_pairs.py "$2" "mpirun.openmpi -n $1 $lmp -log none -in $3" \
        "mpirun.openmpi -n $1 $msprobe run -o $scratch/runs/$4.{} -- $lmp -log none -in $3"
}
cost_of_lammps() { # RANKS CELLS STEPS
    mkdir -p "$scratch/runs"
    name=$1.$2
    what="lammps on $1 ranks, $((4 * $2 * $2 * $2)) atoms"
    sed "s/^run .*/run $3/; s/^thermo .*/thermo 500/; s/0 6 0 6 0 6/0 $2 0 $2 0 $2/" tests/data/melt.lmp >"$scratch/in"
    added_to_lammps "$1" "${SECONDS_EACH:-60}" "$scratch/in" "$name" >"$scratch/found" || return 0
    printf '  %s, CPU time added: %s\n' "$what" "$(cat "$scratch/found")"
    sed 's/^run .*/run 0/' "$scratch/in" >"$scratch/in0"
    added_to_lammps "$1" "$((${SECONDS_EACH:-60} / 6))" "$scratch/in0" "$name.start" |
        awk -v what="$what" -F '; ' '{print "  " what ", of which the start is: " $2}'
    calls=$("$msprobe" sql "$scratch/runs/$name.1" "SELECT count(*) FROM events WHERE domain = 'communication'" | tail -n 1)
    awk -v calls="$calls" -v what="$what" '{for (i = 2; i <= NF; i++) if ($i == "s" && $(i + 1) == "CPU") cpu = $(i - 1)
        printf "  %s: %d calls a run, at 150 ns each %.3f %% of that\n", what, calls, 100 * calls * 150e-9 / cpu}' "$scratch/found"
}

# Commands that read a capture or dumps, by K processes of one thread each; the least of RUNS.
seconds_of() { # K COMMAND...
    k=$1
    shift
    for i in $(seq "${RUNS:-5}"); do
        rm -f "$scratch/shared/run.db"
        from=$(date +%s%N)
        mpirun.openmpi -n "$k" "$msprobe" "$@" --threads 1 >/dev/null 2>&1 || return 1
        echo $(($(date +%s%N) - from))
    done | sort -n | head -1
}
speedup_of() { # NAME COMMAND...
    name=$1
    shift
    one=$(seconds_of 1 "$@") && two=$(seconds_of 2 "$@") && [ -n "$one" ] && [ -n "$two" ] &&
        awk -v what="$name" -v a="$one" -v b="$two" \
            'BEGIN {printf "  %-28s 1 process %6.2f s   2 processes %6.2f s   %.2f times as fast\n", what, a / 1e9, b / 1e9, a / b}'
}
speedup() {
    ranks=${SHARED:-256}
    "$build/tests/tool_sim" "$scratch/shared" straggler 0.2 7 8 4 $((ranks / 32)) 156 4 8 >/dev/null || return 0
    speedup_of "import --summary" import --summary "$scratch/shared"
    speedup_of import import "$scratch/shared"
    speedup_of "import and report" report "$scratch/shared"
    speedup_of "import and whatif" whatif "$scratch/shared"
    speedup_of "import and slow_rank" cluster -m slow_rank -d "$scratch/shared" -o "$scratch/made"
    rm -rf "$scratch/shared" "$scratch/made"
    python3 tests/bench/rank_dumps.py "$scratch/target" "${DUMPS:-64}" 4000 1.01 &&
        python3 tests/bench/rank_dumps.py "$scratch/golden" "${DUMPS:-64}" 4000 || return 0
    speedup_of check check "$scratch/target"
    speedup_of compare compare -tp "$scratch/target/step0" -gp "$scratch/golden/step0" -o "$scratch/made"
    speedup_of graph_visualize graph_visualize -tp "$scratch/target/step0" -o "$scratch/made"
    rm -rf "$scratch/target" "$scratch/golden" "$scratch/made"
}

case ${PARTS:=speedup cost lammps} in *speedup*)
    [ ! -e "$build/libmsprobe_mpi_openmpi.so" ] || speedup
    ;;
esac
case $PARTS in *cost*)
    cost_of_calls openmpi
    cost_of_calls mpich
    ;;
esac
lmp=$(command -v lmp) || exit 0
case $PARTS in *lammps*) ;; *) exit 0 ;; esac
[ -e "$build/libmstx_mpi_openmpi.so" ] || exit 0
export OMPI_MCA_mpi_yield_when_idle=1
for n in ${RANKS:-2 4}; do
    for of in ${SIZES:-10:3000 20:400}; do
        cost_of_lammps "$n" "${of%:*}" "${of#*:}"
    done
done
