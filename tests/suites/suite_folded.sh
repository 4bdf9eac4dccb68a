#!/bin/sh
# SPDX-License-Identifier: MIT
# import --fold: the same rows as without, in a fraction of the bytes; read by a program that follows
# msprobe-run.db(5) alone.
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
msprobe=$PWD/$B/msprobe
ok() { echo "ok $1"; }
bad() { echo "not ok $1"; }
check() { # NAME COMMAND...
    name=$1
    shift
    if "$@" >"$top/log" 2>&1; then ok "$name"; else bad "$name"; head -8 "$top/log"; fi
}
if ! [ -x "$B/tests/tool_sim" ]; then
    echo "skip folded: $B/tests/tool_sim was not built"
    exit 0
fi
tables='events comm_ops joins replay_spans names steps rank_steps tracks findings links conclusions rank_comm rank_use'
rows() { # DB
    for table in $tables; do
        echo "$table"
        "$msprobe" sql "$1" "SELECT * FROM $table" || echo failed
    done
}
says() { # DB
    for command in report whatif; do
        "$msprobe" "$command" "$1"
        "$msprobe" "$command" --format json "$1"
    done 2>&1 | sed "s|$1|DB|g"
}
size() { wc -c <"$1"; }

# Two pipelines of two stages each, and a slow rank; runs whose ranks differ; a hang.
"$B/tests/tool_sim" "$top/straggler" straggler 0.2 3 2 2 2 60 4 4 8 >/dev/null
for fault in missing hang mismatch; do "$B/tests/tool_sim" "$top/$fault" $fault 0.2 2 >/dev/null; done
"$PYTHON" tests/gen/capture.py "$top/capture" >/dev/null 2>&1
for run in straggler missing hang mismatch capture; do
    "$msprobe" import -o "$top/plain.db" "$top/$run" >/dev/null
    "$msprobe" import -o "$top/exact.db" --fold "$top/$run" >/dev/null
    "$msprobe" import -o "$top/near.db" --times 100ns "$top/$run" >/dev/null
    rows "$top/plain.db" >"$top/plain"
    rows "$top/exact.db" >"$top/exact"
    check "$run: folded rows are the same" cmp "$top/plain" "$top/exact"
    says "$top/plain.db" >"$top/plain"
    says "$top/exact.db" >"$top/exact"
    check "$run: reports of a folded database are the same" cmp "$top/plain" "$top/exact"
    for db in exact near; do
        check "$run: a reader that is not ours sees the rows ($db)" \
            "$PYTHON" tests/suites/folded_oracle.py "$msprobe" "$top/$db.db"
    done
    "$msprobe" sql "$top/plain.db" "SELECT kind, severity, text FROM findings" >"$top/plain"
    "$msprobe" sql "$top/near.db" "SELECT kind, severity, text FROM findings" >"$top/near"
    check "$run: findings within 100 ns are the same" cmp "$top/plain" "$top/near"
    for what in "start_ns FROM events" "end_ns FROM events" "start_ns FROM comm_ops" "end_ns FROM comm_ops" \
        "start_ns FROM joins"; do
        for db in plain near; do "$msprobe" sql "$top/$db.db" "SELECT $what" >"$top/$db.times"; done
        # awk counts in doubles, whose steps are 256 here
        check "$run: $what is within 100 ns" \
            awk 'NR == FNR { t[FNR] = $1; n++; next } FNR > 1 { d = $1 - t[FNR]; if (d > 256 || d < -256) bad++ }
                 END { exit bad > 0 || n != FNR }' "$top/plain.times" "$top/near.times"
    done
    [ "$run" = straggler ] || continue
    check "a folded database is a quarter of the size" test "$((4 * $(size "$top/exact.db")))" -lt "$(size "$top/plain.db")"
    check "within 100 ns it is a sixth" test "$((6 * $(size "$top/near.db")))" -lt "$(size "$top/plain.db")"
done

# Recipes see the same run, whose steps of ranks they find by rows.
cp -r "$top/straggler" "$top/as_folded"
"$msprobe" import --fold "$top/as_folded" >/dev/null
for mode in all cluster_time_summary; do
    for run in straggler as_folded; do
        "$msprobe" cluster -m $mode -d "$top/$run" -o "$top/$run.out" >/dev/null 2>&1
        "$PYTHON" -c 'import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).iterdump(), sep="\n")' \
            "$top/$run.out/cluster_analysis_output/cluster_analysis.db" | sed "s|$top/$run|RUN|g" >"$top/$run.rows"
    done
    check "cluster -m $mode of a folded database is the same" cmp "$top/straggler.rows" "$top/as_folded.rows"
    check "cluster -m $mode has rows" grep -q INSERT "$top/as_folded.rows"
done

# What the user chose holds when a viewer imports again.
"$msprobe" import --times 1us "$top/hang" >/dev/null
touch -d '2 days ago' "$top"/hang/rank_*/*/*.seg
"$msprobe" report "$top/hang" >/dev/null 2>&1
check "a database that was folded stays folded" \
    test "$("$msprobe" sql "$top/hang" "SELECT value FROM meta WHERE key = 'times'" | tail -1)" = 1000
for bound in 0ns 1s 101ms fast 100 -1ns; do
    "$msprobe" import -o "$top/no.db" --times "$bound" "$top/hang" >"$top/log" 2>&1
    check "--times $bound is refused" test $? -eq 2 -a ! -e "$top/no.db"
done
for mpi in openmpi mpich; do
    [ -e "$B/libmsprobe_mpi_$mpi.so" ] && command -v "mpirun.$mpi" >/dev/null || continue
    [ $mpi = openmpi ] && set -- --allow-run-as-root --oversubscribe || set --
    "mpirun.$mpi" "$@" -n 3 "$msprobe" import -o "$top/three.db" --fold "$top/straggler" >/dev/null 2>&1
    "$msprobe" import -o "$top/one.db" --fold "$top/straggler" >/dev/null
    check "three processes of $mpi fold to the same bytes" cmp "$top/one.db" "$top/three.db"
done
