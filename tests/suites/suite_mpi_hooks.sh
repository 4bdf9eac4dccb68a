#!/bin/sh
# SPDX-License-Identifier: MIT
# The MPI hooks, once for each flavour that is installed: programs run with and without them and
# must do and say the same; every call must be in the capture.
#   B=build        what to test
suite=mpi
. tests/support/checks.sh
here=$(pwd)
export MSTX_QUIET=2
sql() { "$msprobe" sql "$1" "$2" | tail -n +2 | tr '\t' ','; }

if ! can_preload; then
    echo "skip mpi: a sanitizer must come first in a process"
    exit 0
fi

# ---- coverage: every prototype that the spec of the hooks speaks of is in the library ------------

# What communicates, completes, makes or frees; not files, attributes, errors, types and queries.
communicates='^MPIX?_(I?(barrier|bcast|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|reduce|allreduce|reduce_scatter(_block)?|scan|exscan|neighbor_(allgatherv?|alltoall[vw]?))(_init)?|(I?[bsr]?send|[bsr]?send_init|I?recv|recv_init|I?sendrecv(_replace)?|I?m?probe|I?mrecv|psend_init|precv_init|pready(_range|_list)?|parrived)|(wait|test)(all|any|some)?|request_(free|get_status)|cancel|start|startall|init|init_thread|finalize|abort|pcontrol|session_(init|finalize)|comm_(i?dup(_with_info)?|split|split_type|create|create_group|create_from_group|free|disconnect|set_name|spawn|spawn_multiple|accept|connect|join|get_parent|shrink)|intercomm_(create|create_from_groups|merge)|cart_(create|sub)|graph_create|dist_graph_create(_adjacent)?|r?(put|get|accumulate|get_accumulate)|fetch_and_op|compare_and_swap|win_(create|allocate|allocate_shared|create_dynamic|free|fence|lock|lock_all|unlock|unlock_all|flush|flush_all|flush_local|flush_local_all|sync|post|start|complete|wait|test))(_c)?$'

covers() { # FLAVOUR
    sed -n 's/^#define HAVE_\([A-Za-z0-9_]*\) ,$/\1/p' "$build/mpi_$1/mpi_have.h" |
        grep -iE "$communicates" | grep -vE '^MPI_[A-Z]+$' | sort >"$scratch/wanted"
    nm -D --defined-only "$build/libmstx_mpi_$1.so" | awk '{print $3}' | sort >"$scratch/there"
    n=$(wc -l <"$scratch/wanted")
    missing=$(comm -23 "$scratch/wanted" "$scratch/there")
    [ "$n" -gt 100 ] || { echo "only $n prototypes found"; return 1; }
    [ -z "$missing" ] || { echo "of $n prototypes these are not hooked: $missing"; return 1; }
}
# ... and nothing else is interposed but types and what MPI has.
adds_nothing() { # FLAVOUR
    nm -D --defined-only "$build/libmstx_mpi_$1.so" | awk '{print $3}' | grep '^MPIX\?_[A-Z][a-z]' |
        sort >"$scratch/there"
    sed -n 's/^#define HAVE_\([A-Za-z0-9_]*\) ,$/\1/p' "$build/mpi_$1/mpi_have.h" | sort >"$scratch/has"
    is "$(comm -23 "$scratch/there" "$scratch/has")" ''
}

# ---- programs ---------------------------------------------------------------------------------------

launch() { # RANKS COMMAND...: with the launcher of the flavour at hand, for a minute at most
    n=$1
    shift
    timeout 100 "mpirun.$flavour" -n "$n" "$@"
}
same_with_and_without() { # MODE RANKS
    launch "$2" "$scratch/app" "$1" >"$scratch/bare" 2>/dev/null
    bare=$?
    rm -rf "$scratch/run"
    launch "$2" "$msprobe" run -o "$scratch/run" -- "$scratch/app" "$1" >"$scratch/hooked" 2>"$scratch/err"
    hooked=$?
    cat "$scratch/err"
    # those who are spawned speak when they like
    is "$hooked" "$bare" && is "$(sort "$scratch/hooked")" "$(sort "$scratch/bare")"
}
# Both end it, whatever the status.  MPICH's launcher calls it an abort when it sees the program's socket
# closed before the end of the process it started, 1 time in 100 on a busy machine.
fails_alike() { # MODE
    fails_alike_once "$1" || fails_alike_once "$1" || fails_alike_once "$1"
}
fails_alike_once() {
    launch 1 "$scratch/app" "$1" >/dev/null 2>&1
    bare=$?
    rm -rf "$scratch/run"
    launch 1 "$msprobe" run -o "$scratch/run" -- "$scratch/app" "$1" >/dev/null 2>&1
    hooked=$?
    is $((hooked != 0)) $((bare != 0))
}
counts_are_those_of() { # COUNTER-LIBRARY RANKS COMMAND...
    counter=$1
    ranks=$2
    shift 2
    rm -rf "$scratch/run"
    export MPI_COUNT="$scratch/count"
    launch "$ranks" env LD_PRELOAD="$sanitizer$counter" "$msprobe" run -o "$scratch/run" -- "$@" >"$scratch/out" 2>&1 ||
        { tail -5 "$scratch/out"; return 1; }
    for r in $(seq 0 $((ranks - 1))); do
        names=$(awk '{printf "%s\047%s\047", n++ ? "," : "", $1}' "$scratch/count.$r")
        sql "$scratch/run" "SELECT name, sum(polls) FROM comm_ops WHERE rank = $r AND name IN ($names)
            GROUP BY name ORDER BY name" | tr ',' ' ' >"$scratch/recorded"
        LC_ALL=C sort "$scratch/count.$r" | diff - "$scratch/recorded" || return 1
    done
}

watched() {
    rm -rf "$scratch/run"
    for mode in all threads bad; do
        ASAN_OPTIONS=detect_leaks=0 launch 2 "$msprobe" run -o "$scratch/run" -- "$scratch/watched" "$mode" >"$scratch/out" 2>&1 ||
            { grep -A12 ERROR "$scratch/out"; return 1; }
    done
    [ "$(sql "$scratch/run" 'SELECT count(*) FROM comm_ops')" -gt 1000 ]
}
# A program that is not linked to MPI: the same results, and its calls where the lookup is hooked.
opened_by_the_program() { # OPTION ALL-REDUCES
    lib=$(ldd "$scratch/app" | awk '/libmpi(ch)?\.so/ {print $3; exit}')
    "$mpicc" -w -O1 -c -o "$scratch/dlopen.o" "$here/tests/programs/mpi_dlopen.c" &&
        cc -o "$scratch/dlopen" "$scratch/dlopen.o" -ldl || return 1
    launch 2 "$scratch/dlopen" "$lib" 2>"$scratch/err" | sort >"$scratch/bare"
    rm -rf "$scratch/run"
    launch 2 "$msprobe" run $1 -o "$scratch/run" -- "$scratch/dlopen" "$lib" 2>"$scratch/err" | sort >"$scratch/hooked"
    cat "$scratch/err"
    is "$(cat "$scratch/bare")" "good 0 2 1
good 1 2 1" && diff "$scratch/bare" "$scratch/hooked" || return 1
    [ -e "$scratch/run" ] || mkdir -p "$scratch/run"
    found=$([ "$2" = 0 ] && [ -z "$(ls "$scratch/run")" ] && echo 0 ||
        sql "$scratch/run" "SELECT count(*) FROM comm_ops WHERE name = 'MPI_Allreduce' AND comm_group IS NOT NULL AND count = 1")
    is "$found" "$2"
}
records_nothing() {
    rm -rf "$scratch/run"
    launch 2 "$msprobe" run --comm none -o "$scratch/run" -- "$scratch/app" all && [ ! -e "$scratch/run" ]
}

test_flavour() {
    mpicc=mpicc.$flavour
    if ! command -v "$mpicc" >/dev/null || ! command -v "mpirun.$flavour" >/dev/null ||
        [ ! -e "$build/libmstx_mpi_$flavour.so" ]; then
        echo "skip $flavour: it is not installed"
        return
    fi
    # mpi.h of some versions stumbles over warnings of newer compilers in its own macros
    "$mpicc" -w -O1 -o "$scratch/app" "$here/tests/programs/mpi_app.c" -lpthread &&
        "$mpicc" -w -O1 -shared -fPIC -o "$scratch/count.so" "$here/tests/programs/mpi_count.c" || {
        echo "not ok $flavour-compiler"
        rc=1
        return
    }
    check "$flavour-covers-every-prototype" covers "$flavour"
    check "$flavour-interposes-nothing-else" adds_nothing "$flavour"
    check "$flavour-results-are-the-same" same_with_and_without all 4
    check "$flavour-nothing-is-left-open" is "$(sql "$scratch/run" 'SELECT sum(unfinished), sum(dropped) FROM processes')" 0,0
    check "$flavour-communicators-meet" is "$(sql "$scratch/run" "SELECT count(*) FROM (SELECT comm_group, seq
        FROM comm_ops o JOIN comm_groups g ON g.id = comm_group WHERE class = 0 AND o.name <> 'MPI_Barrier'
        GROUP BY comm_group, seq HAVING count(*) <> g.size OR count(DISTINCT op) > 1)")" 0
    check "$flavour-names-of-communicators" is "$(sql "$scratch/run" "SELECT count(*) FROM comm_groups WHERE name = 'a name' AND size = 4")" 1
    check "$flavour-source-and-bytes-of-a-receive" is "$(sql "$scratch/run" "SELECT received, peer, tag FROM comm_ops
        WHERE rank = 1 AND name = 'MPI_Irecv' ORDER BY id LIMIT 1")" 24,0,5
    check "$flavour-ends-and-bytes-of-an-exchange" is "$(sql "$scratch/run" "SELECT name, peer, sent, received FROM comm_ops
        WHERE rank = 0 AND op = 'SendRecv' GROUP BY name" | tr '\n' ' ')" 'MPI_Sendrecv,1,24,24 MPI_Sendrecv_replace,1,24,24 '
    check "$flavour-nothing-arrived-at-a-cancelled-receive" is "$(sql "$scratch/run" "SELECT count(*), sum(received), count(peer)
        FROM comm_ops WHERE name = 'MPI_Irecv' AND tag = 77")" 4,0,0
    check "$flavour-peer-across-an-intercommunicator" is "$(sql "$scratch/run" "SELECT peer FROM comm_ops
        WHERE name = 'MPI_Irecv' AND tag = 79")" 1
    check "$flavour-counts-are-right" counts_are_those_of "$scratch/count.so" 2 "$scratch/app" all
    # a loop that asks is a few rows, and each way to ask completes its request
    check "$flavour-asking-again-is-no-new-row" is "$(sql "$scratch/run" "SELECT name, count(*) * 2 < sum(polls) FROM comm_ops
        WHERE name LIKE 'MPI_Test%' GROUP BY name ORDER BY name" | tr '\n' ' ')" 'MPI_Test,1 MPI_Testall,1 MPI_Testany,1 MPI_Testsome,1 '
    check "$flavour-asking-completes-requests" is "$(sql "$scratch/run" "SELECT count(*), sum(received), min(peer), max(peer), sum(end_ns > start_ns)
        FROM comm_ops WHERE name = 'MPI_Irecv' AND tag BETWEEN 80 AND 83")" 8,32,0,0,8
    check "$flavour-many-threads" same_with_and_without threads 2
    check "$flavour-threads-lose-nothing" is "$(sql "$scratch/run" "SELECT count(*) FROM comm_ops WHERE name IN ('MPI_Isend', 'MPI_Irecv')")" 16000
    check "$flavour-errors-pass-through" same_with_and_without bad 2
    check "$flavour-signal-handlers" same_with_and_without handler 2
    check "$flavour-what-mpi-4-added" same_with_and_without new 3
    if grep -q 'HAVE_MPI_Session_init ' "$build/mpi_$flavour/mpi_have.h"; then
        check "$flavour-is-recorded" is "$(sql "$scratch/run" "SELECT group_concat(name || ' ' || n, ', ') FROM (SELECT name, count(*) AS n
            FROM comm_ops WHERE rank = 0 AND (name GLOB '*_c' OR name GLOB 'MPI_P*' OR name GLOB '*ession*' OR name GLOB '*started'
            OR name IN ('MPI_Isendrecv', 'MPI_Comm_create_from_group')) GROUP BY name ORDER BY name)")" \
            'MPI_Allgatherv_c 1, MPI_Allreduce_c 1, MPI_Allreduce_init started 2, MPI_Comm_create_from_group 1, MPI_Irecv_c 1, MPI_Isend_c 1, MPI_Isendrecv 1, MPI_Parrived 1, MPI_Pready 1, MPI_Pready_range 1, MPI_Precv_init 1, MPI_Precv_init started 1, MPI_Psend_init 1, MPI_Psend_init started 1, MPI_Session_finalize 1, MPI_Session_init 1'
    fi
    if launch 1 "$scratch/app" spawn >/dev/null 2>&1; then
        check "$flavour-processes-that-are-spawned" same_with_and_without spawn 1
        # the launcher does not give a child what was set for its parent, so the parent alone is recorded
        check "$flavour-are-members-of-what-is-made-with-them" is "$(sql "$scratch/run" "SELECT size FROM comm_ops o JOIN comm_groups g
            ON g.id = comm_group WHERE o.name = 'MPI_Allreduce'")" 2
    else
        echo "skip $flavour-processes-that-are-spawned: it does not spawn here"
    fi
    check "$flavour-abort" fails_alike abort
    check "$flavour-abort-is-recorded" is "$(sql "$scratch/run" "SELECT count(*) FROM comm_ops WHERE name = 'MPI_Abort'")" 1
    check "$flavour-before-init" fails_alike early
    check "$flavour-after-finalize" fails_alike late
    check "$flavour-never-finalized" fails_alike unfinished
    check "$flavour-none-is-none" records_nothing
    check "$flavour-opened-by-the-program" opened_by_the_program '' 0
    check "$flavour-looked-up-by-the-program" opened_by_the_program --hook_dlsym 2
    # a program that watches its memory, with the hooks in it; what MPI itself leaks does not matter
    if "$mpicc" -w -O1 -g -fsanitize=address -o "$scratch/watched" "$here/tests/programs/mpi_app.c" -lpthread 2>/dev/null &&
        ASAN_OPTIONS=detect_leaks=0 launch 1 "$scratch/watched" bad >/dev/null 2>&1; then
        check "$flavour-under-a-sanitizer" watched
    else
        echo "skip $flavour-under-a-sanitizer: no program with one runs here"
    fi
    test_fortran
    test_clocks
}

# Every call of a binding that goes past the hooks of C is hooked itself: the functions of Open MPI's
# mpif.h, those of its mpi_f08 that call these, and those of MPICH's mpi_f08 that call PMPI.
fortran_covers() { # PROGRAM OF mpif.h AND OF mpi_f08
    libs=$(ldd "$@" | awk '/libmpi.*(fh|f08|fort)\.so/ {print $3}' | sort -u)
    nm -D --defined-only "$build/libmstx_mpi_$flavour.so" | awk '{print $3}' | sort >"$scratch/there"
    for lib in $libs; do
        nm -D --defined-only "$lib" | awk '{print $3}' >"$scratch/defined"
        nm -D --undefined-only "$lib" | awk '{print $2}' | grep -iE '^pmpix?_' | sed 's/^[pP]//; s/_$//' |
            grep -iE "$communicates" | tr 'A-Z' 'a-z' | sed 's/$/_f08_/' | grep -Fx -f - "$scratch/defined"
        case $lib in
        *mpifh*) grep -E '^mpix?_[a-z_]*[a-z]_$' "$scratch/defined" | sed 's/_$//' | grep -iE "$communicates" | grep -v '_$' |
            awk '{print $0; print $0 "_"; print $0 "__"; print toupper($0); print "o" $0 "_f"}' ;;
        esac
    done | sort -u >"$scratch/wanted"
    n=$(wc -l <"$scratch/wanted")
    [ "$n" -gt 60 ] || { echo "only $n functions found in $libs"; return 1; }
    is "$(comm -23 "$scratch/wanted" "$scratch/there")" ''
}
# What both ranks of the programs in Fortran do, whatever the binding.
fortran_calls="MPI_Accumulate 2 MPI_Allreduce 2 MPI_Barrier 2 MPI_Bcast 2 MPI_Cancel 2 MPI_Comm_free 4 \
MPI_Comm_get_parent 2 MPI_Comm_idup 2 MPI_Comm_set_name 2 MPI_Comm_split 2 MPI_Fetch_and_op 2 MPI_Finalize 2 MPI_Get 2 \
MPI_Imrecv 2 MPI_Init 2 MPI_Irecv 4 MPI_Isend 8 MPI_Mrecv 2 MPI_Put 2 MPI_Recv 2 MPI_Recv_init 2 MPI_Recv_init started 2 \
MPI_Request_free 4 MPI_Request_get_status 2 MPI_Send_init 2 MPI_Send_init started 2 \
MPI_Sendrecv 2 MPI_Sendrecv_replace 2 MPI_Startall 2 MPI_Wait 8 MPI_Waitall 6 \
MPI_Win_create 2 MPI_Win_fence 4 MPI_Win_flush 2 MPI_Win_free 2 MPI_Win_lock 2 MPI_Win_unlock 2 "
test_fortran() {
    fortran=mpif90.$flavour
    if ! command -v "$fortran" >/dev/null; then
        echo "skip $flavour-fortran: no Fortran compiler"
        return
    fi
    for form in mpif f08; do
        if ! (cd "$scratch" && "$fortran" -w -o "fortran_$form" "$here/tests/programs/mpi_$form.f90") >>"$said" 2>&1; then
            echo "skip $flavour-fortran-$form: the compiler does not build it"
            : >"$said"
            continue
        fi
        rm -rf "$scratch/run"
        check "$flavour-fortran-$form-runs" launch 2 "$msprobe" run -o "$scratch/run" -- "$scratch/fortran_$form"
        check "$flavour-fortran-$form-every-call" is "$(sql "$scratch/run" "SELECT name, count(*) FROM comm_ops
            WHERE name NOT LIKE '%robe' GROUP BY name ORDER BY name" | tr '\n,' '  ')" "$fortran_calls"
        check "$flavour-fortran-$form-is-described" is "$(sql "$scratch/run" "SELECT name, count, type, reduce, peer, tag, sent, received
            FROM comm_ops WHERE rank = 0 AND (op IN ('AllReduce', 'Broadcast', 'Put', 'Get', 'Accumulate') OR
            (op IN ('Send', 'Recv', 'SendRecv') AND tag BETWEEN 3 AND 7) OR name = 'MPI_Mrecv') ORDER BY name, tag" | tr '\n' ' ')" \
            "MPI_Accumulate,1,fp64,sum,1,,8,0 MPI_Allreduce,3,fp64,sum,,,, MPI_Bcast,2,int32,na,0,,, \
MPI_Fetch_and_op,1,fp64,sum,1,,8,8 MPI_Get,4,fp64,na,1,,0,32 MPI_Isend,3,fp64,na,1,3,24,0 MPI_Isend,2,fp64,na,1,4,16,0 \
MPI_Mrecv,4,fp64,na,1,,0,32 MPI_Put,4,fp64,na,1,,32,0 MPI_Recv,4,fp64,na,1,4,0,16 MPI_Recv_init started,4,fp64,na,1,5,0,32 \
MPI_Send_init started,4,fp64,na,1,5,32,0 MPI_Sendrecv,2,fp64,na,1,6,16,16 MPI_Sendrecv_replace,3,fp64,na,1,7,24,24 "
        check "$flavour-fortran-$form-communicators" is "$(sql "$scratch/run" "SELECT group_concat(name) FROM (SELECT name FROM comm_groups ORDER BY name)")" \
            "MPI_COMM_WORLD,from Fortran,from Fortran/split.0@0,from Fortran/split.0@1"
    done
    [ ! -e "$scratch/fortran_f08" ] ||
        check "$flavour-fortran-covers-every-function" fortran_covers "$scratch/fortran_mpif" "$scratch/fortran_f08"
}

# ---- clocks --------------------------------------------------------------------------------------------

# Two ranks play two hosts, one second and 50 ppm apart.  Each writes the true clock as a counter; how
# far the times of the run are from it must be the same on both, window by window.
clocks_meet() { # a busy machine gets another try
    clocks_meet_once "$@" || clocks_meet_once "$@" || clocks_meet_once "$@"
}
# By messages within a microsecond, as soon as the machine let some messages through undisturbed: the
# run says itself whether it did.  What it says holds in any case.
clocks_meet_closely() { # OFFSET PPM [together]
    for try in 1 2 3 4 5 6 7 8; do
        unsure=
        clocks_meet_once 1000 "$1" "$2" 1 pings "$3" && [ "$unsure" -le 1000 ] && return 0
    done
    [ "${unsure:-0}" -gt 1000 ] && [ "$apart" -le $((unsure + 1000)) ] && echo 'never undisturbed' >&2
}
clocks_meet_once() { # LIMIT-NS OFFSET PPM SYNC METHOD [together]
    rm -rf "$scratch/run"
    apart=
    MSTX_CLOCK_SYNC=$4 timeout 100 "mpirun.$flavour" \
        -n 1 env MSTX_CLOCK_FAKE=1:0:0 "$msprobe" run -o "$scratch/run" -- "$scratch/clock" 120 $6 : \
        -n 1 env MSTX_CLOCK_FAKE="2:$2:$3" "$msprobe" run -o "$scratch/run" -- "$scratch/clock" 120 $6 || return 1
    apart=$(sql "$scratch/run" "SELECT CAST(max(abs(a.late - b.late)) AS INTEGER) FROM
        (SELECT CAST(value AS INTEGER) / 500000000 AS w, min(start_ns - CAST(value AS INTEGER)) AS late FROM events
         WHERE name = 'true' AND rank = 0 GROUP BY w HAVING count(*) > 25) a JOIN
        (SELECT CAST(value AS INTEGER) / 500000000 AS w, min(start_ns - CAST(value AS INTEGER)) AS late FROM events
         WHERE name = 'true' AND rank = 1 GROUP BY w HAVING count(*) > 25) b USING (w)")
    is "$(sql "$scratch/run" 'SELECT DISTINCT method FROM clock_offsets')" "$5" || return 1
    unsure=$(sql "$scratch/run" 'SELECT max(uncertainty_ns) FROM clock_offsets')
    echo "clocks are $apart ns apart, uncertainty $unsure ns"
    [ -n "$apart" ] && [ "$apart" -le "$1" ] && [ -n "$unsure" ] && [ "$unsure" -ge "$((apart / 3))" ]
}
# Two ranks that say of themselves to be on two hosts: they agree on comparing clocks without being
# told to, and a rank without the hook is not waited for.
clocks_agree() {
    rm -rf "$scratch/run"
    timeout 60 "mpirun.$flavour" -n 2 env OMPI_COMM_WORLD_LOCAL_SIZE=1 MPI_LOCALNRANKS=1 \
        sh -c 'exec env MSTX_CLOCK_FAKE="$((${PMI_RANK:-$OMPI_COMM_WORLD_RANK} + 1)):0:0" "$@"' sh \
        "$msprobe" run -o "$scratch/run" -- "$scratch/clock" 5 || return 1
    is "$(sql "$scratch/run" 'SELECT DISTINCT method FROM clock_offsets')" pings &&
        is "$(find "$scratch/run" -name '.clock*')" ''
}
a_bare_rank_is_not_waited_for() {
    rm -rf "$scratch/run"
    timeout 60 "mpirun.$flavour" \
        -n 1 env OMPI_COMM_WORLD_LOCAL_SIZE=1 MPI_LOCALNRANKS=1 "$msprobe" run -o "$scratch/run" -- "$scratch/app" all : \
        -n 1 "$scratch/app" all >/dev/null || return 1
    is "$(sql "$scratch/run" "SELECT count(*) FROM problems WHERE text LIKE 'clocks of hosts were not compared%'")" 1
}
test_clocks() {
    "$mpicc" -w -O1 -o "$scratch/clock" "$here/tests/programs/mpi_clock.c" -ldl || return
    check "$flavour-clock-a-second-ahead" clocks_meet_closely 1000000000 50 together
    check "$flavour-clock-a-second-behind" clocks_meet_closely -1000000000 -50
    check "$flavour-clocks-without-being-told" clocks_agree
    check "$flavour-clocks-with-a-bare-rank" a_bare_rank_is_not_waited_for
    # nobody measured: what the collectives tell
    check "$flavour-clock-from-collectives" clocks_meet 50000 1000000000 50 0 collectives together
    check "$flavour-clock-from-collectives-behind" clocks_meet 50000 -1000000000 -50 0 collectives together
}

# ---- a real program ------------------------------------------------------------------------------------

test_lammps() {
    lmp=$(command -v lmp)
    flavour=openmpi
    if [ -z "$lmp" ] || [ ! -e "$build/libmstx_mpi_openmpi.so" ] || ! command -v mpicc.openmpi >/dev/null; then
        echo "skip lammps: it is not installed"
        return
    fi
    mpicc.openmpi -w -O1 -shared -fPIC -o "$scratch/count.so" "$here/tests/programs/mpi_count.c"
    cd "$scratch" || exit 1
    for n in 2 4; do
        launch "$n" "$lmp" -log none -in "$here/tests/data/melt.lmp" >bare 2>&1
        check "lammps-$n-runs" counts_are_those_of "$scratch/count.so" "$n" "$lmp" -log none -in "$here/tests/data/melt.lmp"
        # thermodynamic output, without times that differ from run to run
        grep -E '^ +[0-9]+ ' bare >numbers
        grep -E '^ +[0-9]+ ' out | diff numbers - >>"$said" 2>&1
        check "lammps-$n-same-numbers" test $? -eq 0 -a -s numbers
    done
    cd "$here" || exit 1
}

for flavour in openmpi mpich; do
    test_flavour
done
test_lammps
exit $rc
