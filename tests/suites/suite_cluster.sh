#!/bin/sh
# SPDX-License-Identifier: MIT
# `mpirun -n K msprobe import` writes the same database for every K and every flavour of MPI, also
# when a rank's file is damaged; what `msprobe report` makes of ranks together.
suite=cluster
. tests/support/checks.sh
tool=$msprobe
top=$scratch
check() { # name expected got
    if [ "$2" = "$3" ]; then ok "$1"; else
        bad "$1"
        printf '  expected: %s\n  got:      %s\n' "$2" "$3"
    fi
}

# All rows of all tables, read by somebody else; and what one query answers.
rows() {
    "$PYTHON" -c 'import sqlite3, sys
for line in sqlite3.connect(sys.argv[1]).iterdump(): print(line)' "$1"
}
ask() { # database query
    "$PYTHON" -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])' "$1" "$2"
}
# The same of what is packed, which only msprobe shows as rows.
tell() { "$tool" sql "$1" "$2" | tail -n +2; }
start() { # flavour K args..
    flavour=$1 k=$2
    shift 2
    case $flavour in
    openmpi) mpirun.openmpi --oversubscribe -n "$k" "$@" ;;
    *) mpirun.mpich -n "$k" "$@" ;;
    esac
}

# Hosts whose clocks differ, ranks with their communicators, and one rank whose file is damaged.
"$B/tests/tool_sim" "$top/run" straggler 0.1 7 >/dev/null
damaged=$(find "$top/run" -name 'r0001*.seg' | sort | sed -n 5p)
printf 'XXXXXXXX' | dd of="$damaged" conv=notrunc 2>/dev/null

for mode in whole summary; do
    flag=
    [ $mode = summary ] && flag=--summary
    # shellcheck disable=SC2086
    "$tool" import $flag -o "$top/$mode.db" "$top/run" >/dev/null
    rows "$top/$mode.db" >"$top/$mode.rows"
    check "damaged-file-is-a-problem-of-the-$mode" 1 \
        "$(ask "$top/$mode.db" "SELECT count(*) FROM problems WHERE text LIKE '%MSTXSEG%'")"
    for flavour in openmpi mpich; do
        if [ ! -e "$B/libmsprobe_mpi_$flavour.so" ] || ! command -v "mpirun.$flavour" >/dev/null; then
            echo "skip $mode-$flavour: not installed"
            continue
        fi
        for k in 1 2 4; do
            # shellcheck disable=SC2086
            start $flavour $k "$tool" import $flag -o "$top/k.db" "$top/run" >"$top/out" 2>&1
            said=$?
            rows "$top/k.db" >"$top/k.rows"
            if [ $said -eq 0 ] && [ -s "$top/k.rows" ] && cmp -s "$top/$mode.db" "$top/k.db"; then
                ok "$mode-$flavour-$k-gives-the-same-bytes"
            else
                bad "$mode-$flavour-$k-gives-the-same-bytes"
                sed 's/^/  /' "$top/out"
                diff "$top/$mode.rows" "$top/k.rows" | head -5
            fi
            rm -f "$top/k.db"
        done
        mkdir -p "$top/nothing"
        start $flavour 2 "$tool" import "$top/nothing" >"$top/out" 2>&1
        check "$mode-$flavour-failure-is-told-once" "3 1" "$? $(grep -c 'holds no capture' "$top/out")"
    done
done

# Sums that the import stores for the page are those of the calls themselves.
"$B/tests/tool_sim" "$top/sums" straggler 0.2 7 2 2 2 4 >/dev/null
"$tool" import "$top/sums" >/dev/null
joined="FROM comm_ops c JOIN joins j ON c.comm_group = j.comm_group AND c.seq = j.seq WHERE c.class = 0 AND j.last_rank >= 0"
waited="max(0, c.end_ns - c.start_ns - j.transfer_ns)"
check stored-waits "$(tell "$top/sums" "SELECT c.rank, j.last_rank, sum($waited), count(*) $joined GROUP BY 1, 2 ORDER BY 1, 2")" \
    "$(tell "$top/sums" 'SELECT rank, other, ns, calls FROM rank_pairs WHERE kind = 0 ORDER BY 1, 2')"
check stored-blame "$(tell "$top/sums" "SELECT j.last_rank, sum($waited) $joined AND c.rank <> j.last_rank GROUP BY 1 ORDER BY 1")" \
    "$(tell "$top/sums" 'SELECT rank, blame_ns FROM rank_comm WHERE blame_ns > 0 ORDER BY 1')"
check stored-sizes "$(tell "$top/sums" 'SELECT op, bytes, count(*), sum(end_ns - start_ns) FROM comm_ops WHERE bytes > 0 GROUP BY 1, 2 ORDER BY 1, 2')" \
    "$(tell "$top/sums" 'SELECT * FROM call_sizes ORDER BY op, bytes')"
check stored-sends "$(tell "$top/sums" "SELECT sum(bytes), count(*) FROM comm_ops WHERE op = 'Send'")" \
    "$(tell "$top/sums" 'SELECT sum(bytes), sum(calls) FROM rank_pairs WHERE kind = 1')"
check stored-use "$(tell "$top/sums" 'SELECT rank, count(*), avg(waiting_ns) FROM rank_steps GROUP BY 1 ORDER BY 1')" \
    "$(tell "$top/sums" 'SELECT rank, steps, waiting_ns FROM rank_use ORDER BY 1')"

# Pairs of stages, who is missing, and where programs part do not depend on who joined what.
for fault in hang mismatch slow_pair; do
    "$B/tests/tool_sim" "$top/$fault" $fault 0.2 3 2 4 2 10 2 2 >/dev/null
    "$tool" import --summary -o "$top/$fault.db" "$top/$fault" >/dev/null
    rows "$top/$fault.db" >"$top/$fault.rows"
    for flavour in openmpi mpich; do
        [ -e "$B/libmsprobe_mpi_$flavour.so" ] && command -v "mpirun.$flavour" >/dev/null || continue
        start $flavour 3 "$tool" import --summary -o "$top/k.db" "$top/$fault" >"$top/out" 2>&1
        rows "$top/k.db" >"$top/k.rows"
        if [ -s "$top/k.rows" ] && cmp -s "$top/$fault.db" "$top/k.db"; then
            ok "$fault-$flavour-3-gives-the-same-bytes"
        else
            bad "$fault-$flavour-3-gives-the-same-bytes"
            diff "$top/$fault.rows" "$top/k.rows" | head -5
        fi
        rm -f "$top/k.db"
    done
done
check no-part-is-left "" "$(find "$top" -name '*.tmp*')"

# What ranks did, with figures that follow from the capture.
cat >"$top/dump.json" <<'END'
{"task": "structure", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": {
"Functional.linear.0.forward": {"input_args": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 8]}, {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [16, 8]}], "input_kwargs": {}, "output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 16]}]},
"Functional.linear.0.backward": {"input": [{"type": "torch.Tensor", "shape": [4, 16]}], "output": [{"type": "torch.Tensor", "shape": [4, 8]}]},
"Functional.relu.0.forward": {"input_args": [{"type": "torch.Tensor", "shape": [4, 16]}], "output": [{"type": "torch.Tensor", "shape": [4, 16]}]}}}
END
"$tool" report --format json --structure "$top/dump.json" --peak 1e6 "$top/whole.db" >"$top/report.json"
"$tool" report --format json --flops 3072 --peak 1e6 "$top/whole.db" >"$top/told.json"
if "$PYTHON" - "$top" <<'END'; then ok figures-of-a-report; else bad figures-of-a-report; fi
import json, sqlite3, sys
top = sys.argv[1]
r, told = (json.load(open(f"{top}/{n}.json")) for n in ("report", "told"))
db = sqlite3.connect(f"{top}/whole.db")
assert r["use"] == told["use"], "2 * 64 * 8 forward and twice that backward"
assert len(r["use"]) == 15, len(r["use"])
for b in r["use"]:
    step, n = db.execute("SELECT avg(end_ns - start_ns), count(*) FROM rank_steps WHERE rank = ?",
                         (b["rank"],)).fetchone()
    assert n == b["steps"] and abs(b["step_ns"] - step) < 1, b
    assert abs(b["mfu"] - 3072 / (step / 1e9 * 1e6)) < 1e-9, b
    assert abs(b["computing_ns"] + b["communication_ns"] - b["overlapped_ns"] + b["free_ns"] - step) < 2, b
slow = [f for f in r["findings"] if f["kind"] == "straggler"]
assert len(slow) == 1 and slow[0]["where"].startswith(f"timeline?rank={slow[0]['ranks'][0]}&from="), slow
assert db.execute(slow[0]["evidence"]).fetchone() is not None
start, end = db.execute("SELECT from_ns, to_ns FROM findings WHERE kind = 'straggler'").fetchone()
assert slow[0]["where"].endswith(f"&from={start - 1000000}&to={end + 1000000}"), slow
END
check peak-without-flops 3 "$("$tool" report --peak 1e6 "$top/whole.db" >/dev/null 2>&1; echo $?)"
"$tool" report --format prometheus --flops 3072 --peak 1e6 "$top/whole.db" >"$top/prom"
check prometheus-lines-are-well-formed 0 "$(grep -cvE '^(# (HELP|TYPE) msprobe_[a-z_]+ .+|msprobe_[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.e+-]+)$' "$top/prom")"
cp "$top/whole.db" "$top/odd.db"
"$PYTHON" -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE comm_groups SET name = CAST(? AS TEXT)", (b"a\"b\\c\n\xff\xc3 \xc3\xa9}",))
db.commit()' "$top/odd.db"
"$tool" report --format prometheus "$top/odd.db" >"$top/odd.prom"
check prometheus-labels-are-unicode-whatever-names-are 2 \
    "$(iconv -f UTF-8 -t UTF-8 "$top/odd.prom" | grep -m1 -o 'a\\"b\\\\c\\n[^ ]* é}' | grep -o � | wc -l)"
if command -v promtool >/dev/null; then
    check promtool-finds-nothing-wrong "0 0" \
        "$(for f in prom odd.prom; do promtool check metrics <"$top/$f" >/dev/null 2>&1; echo $?; done | xargs)"
else
    echo "skip promtool-finds-nothing-wrong: promtool is not installed"
fi
check prometheus-calls-are-those-of-the-database \
    "$(tell "$top/whole.db" "SELECT count(*) FROM comm_ops WHERE class < 2")" \
    "$(awk '/^msprobe_comm_calls_total/ {n += $NF} END {print n}' "$top/prom")"

# Dumps of PyTorch's Flight Recorder, pickled by Python in the structure that it documents.
"$PYTHON" - "$top" <<'END'
import json, os, pickle, sys
top = sys.argv[1]

def entry(rank, i, kind):
    made = 1720000000000000000 + i * 10_000_000
    start, end = made + (3_000_000 if rank == 2 else 0), made + 3_400_000
    if kind == "crowded":  # more processes than processors: calls take all the time
        start, end = made + (80_000 if rank == 2 else 0), made + 9_800_000
    hung = kind == "hang" and i == 19
    size = 2048 if kind == "mismatch" and rank == 1 and i == 7 else 1024
    return {"record_id": i, "pg_id": 0, "process_group": ["0", "default_pg"],
            "collective_seq_id": 1000000 + i, "p2p_seq_id": 0, "op_id": 1000000 + i,
            "profiling_name": "nccl:all_reduce", "time_created_ns": start,
            "duration_ms": None if hung else (end - start) / 1e6,
            "input_sizes": [[size]], "input_dtypes": ["Float"], "output_sizes": [[size]],
            "output_dtypes": ["Float"], "state": "started" if hung else "completed",
            "time_discovered_started_ns": start,
            "time_discovered_completed_ns": None if hung else end, "retired": not hung,
            "timeout_ms": 600000, "is_p2p": False, "frames": [{"name": "f", "line": 3}]}

def dump(rank, kind):
    n = 19 if kind == "hang" and rank == 3 else 20
    return {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg",
            "ranks": "[0, 1, 2, 3]"}}, "entries": [entry(rank, i, kind) for i in range(n)]}

for kind in ("slow", "mismatch", "hang", "crowded"):
    for form in ("json", "2", "4", "5"):
        where = f"{top}/flight-{kind}-{form}"
        os.mkdir(where)
        for rank in range(4):
            with open(f"{where}/nccl_trace_rank_{rank}", "wb") as f:
                d = dump(rank, kind)
                f.write(json.dumps(d).encode() if form == "json" else pickle.dumps(d, protocol=int(form)))
END
flight() { # name directory headline
    check "$1" "$3" "$("$tool" report "$2" 2>&1 | head -1)"
}
slow='rank 2 makes the others wait: it computes 3.00 ms longer a step than its partners, 30.0 % of the step'
mismatch='ranks 0 and 1 do not run the same program: call 1000007 of default_pg is AllReduce of 4096 bytes of fp32 on the one, AllReduce of 8192 bytes of fp32 on the other'
hang='rank 3 is missing from AllReduce (call 1000019 of default_pg), in which 3 ranks waited at the end'
for form in json 2 4 5; do
    flight "flight-recorder-$form-slow-rank" "$top/flight-slow-$form" "$slow"
    flight "flight-recorder-$form-mismatch" "$top/flight-mismatch-$form" "$mismatch"
    flight "flight-recorder-$form-hang" "$top/flight-hang-$form" "$hang"
done
flight a-slow-rank-is-named-though-calls-take-all-the-time "$top/flight-crowded-2" \
    "rank 2 makes the others wait: it computes 80.0 us longer a step than its partners, 0.8 % of the step"
for kind in slow mismatch hang; do
    "$tool" export -f flight-recorder -o "$top/again-$kind" "$top/flight-$kind-2" >/dev/null
    eval "said=\$$kind"
    # shellcheck disable=SC2154
    flight "flight-recorder-$kind-written-and-read" "$top/again-$kind" "$said"
done
# What PyTorch's analyser insists on: plain pickles whose names are of NCCL and of operations it knows, with
# places within the group at both ends of a transfer.
"$B/tests/tool_sim" "$top/stages" clean 0 3 2 2 2 6 2 2 >/dev/null
"$tool" export -f flight-recorder -o "$top/stages-flight" "$top/stages" >/dev/null
check flight-recorder-files-are-as-the-analyser-wants-them "8 0" "$("$PYTHON" - "$top/stages-flight" <<'EOF'
import ast, glob, pickle, re, sys
files, wrong = glob.glob(sys.argv[1] + "/nccl_trace_rank_*"), 0
for path in files:
    rank = int(path.rsplit("_", 1)[1])
    with open(path, "rb") as f:
        d = pickle.load(f)
    for e in d["entries"]:
        group, _ = e["process_group"]
        ranks = ast.literal_eval(d["pg_config"][group]["ranks"])
        name = re.fullmatch(r"nccl:(all_reduce|all_to_all|(?:send (\d+)->|recv (\d+)<-)(\d+))", e["profiling_name"])
        own = name and (name[2] or name[3])
        wrong += not name or (own is not None and (ranks[int(own)] != rank or int(name[4]) >= len(ranks)))
        wrong += e["input_dtypes"] != ["Half"] or e["state"] != "completed"
print(len(files), wrong)
EOF
)"
printf 'no' >"$top/flight-slow-4/nccl_trace_rank_1"
rm -f "$top/flight-slow-4/run.db"
cp "$top/flight-slow-2/nccl_trace_rank_3" "$top/whole_trace_3"
head -c 900 "$top/whole_trace_3" >"$top/flight-slow-4/nccl_trace_rank_3"
"$tool" import "$top/flight-slow-4" >/dev/null
check flight-recorder-cut-file-is-a-problem 1 \
    "$(ask "$top/flight-slow-4/run.db" "SELECT count(*) FROM problems WHERE text LIKE '%byte % in the pickle%'")"

# Databases of an Ascend profiler, one a rank: joined as the capture that they were made from.
"$tool" export -f ascend-db -o "$top/ascend" "$top/whole.db" >/dev/null
said=$("$tool" report "$top/ascend" 2>&1 | head -1)
check ascend-databases-name-the-slow-rank "$("$tool" report "$top/whole.db" 2>&1 | head -1)" "$said"
for q in 'SELECT count(*) || " " || sum(waited_ns) || " " || sum(transfer_ns) FROM joins' \
    'SELECT count(*) || " " || sum(waiting_ns) || " " || sum(blame_ns) FROM rank_steps' \
    'SELECT count(*) || " " || sum(calls) || " " || sum(transfer_ns) FROM links'; do
    check "ascend-${q##* FROM }-are-those-of-the-capture" "$(tell "$top/whole.db" "$q")" \
        "$(tell "$top/ascend/run.db" "$q")"
done
# The recipes read a run without the databases that export makes of it, and say the same.
cp -r "$top/run" "$top/of_run"
for mode in slow_rank hccl_sum slow_link communication_group_map; do
    for from in of_run ascend; do
        "$tool" cluster -m $mode -d "$top/$from" -o "$top/$from.$mode" >/dev/null 2>&1
        rows "$top/$from.$mode/cluster_analysis_output/cluster_analysis.db" | sort | grep -v ImportProblem \
            >"$top/$from.rows"
    done
    check "$mode-of-a-run-has-rows" 1 "$(($(grep -c INSERT "$top/of_run.rows") > 4))"
    check "$mode-of-a-run-is-that-of-its-databases" "" "$(diff "$top/of_run.rows" "$top/ascend.rows" | head -5)"
done
# Hosts and steps of "all", which it reads from the run as well.
"$tool" cluster -m all -d "$top/of_run" -o "$top/of_run.all" >/dev/null 2>&1
whole=$top/of_run.all/cluster_analysis_output/cluster_analysis.db
hosts() { ask "$1" "SELECT group_concat(h) FROM (SELECT DISTINCT hostUid || hostName AS h FROM $2 ORDER BY 1)"; }
for db in "$top"/ascend/*profiler_*.db; do
    hosts "$db" HOST_INFO
done | sort -u >"$top/hosts"
check hosts-of-a-run-are-those-of-its-databases "$(paste -sd, "$top/hosts")" "$(hosts "$whole" HostInfo)"
check steps-of-a-run-are-those-of-run.db \
    "$(ask "$top/of_run/run.db" 'SELECT count(*) || " " || sum(computing_ns) || " " || sum(free_ns) FROM rank_steps')" \
    "$(ask "$whole" 'SELECT count(*) || " " || CAST(round(sum(computing) * 1000) AS INTEGER) || " " ||
        CAST(round(sum(free) * 1000) AS INTEGER) FROM ClusterStepTraceTime WHERE type = "rank"')"
# The directory of a run is searched once for what is known of chips, not once for each rank.
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    strace -f -e trace=getdents64 -o "$top/listed" "$tool" cluster -m operator_mfu -d "$top/of_run" \
        -o "$top/of_run.mfu" >/dev/null 2>&1
    dirs=$(find "$top/of_run" -type d | wc -l)
    check operator_mfu-lists-each-directory-a-few-times 1 "$(($(wc -l <"$top/listed") < 10 * dirs))"
fi
"$B/tests/tool_big_run" "$top/ranges" 4 2000
"$tool" export -f ascend-db -o "$top/ranges_ascend" "$top/ranges" >/dev/null 2>&1
for from in ranges ranges_ascend; do
    "$tool" cluster -m mstx_sum -d "$top/$from" -o "$top/$from.out" >/dev/null 2>&1
    rows "$top/$from.out/cluster_analysis_output/cluster_analysis.db" | sort >"$top/$from.rows"
done
check "mstx_sum-of-a-run-has-rows" 1 "$(($(grep -c INSERT "$top/ranges.rows") > 1000))"
check "mstx_sum-of-a-run-is-that-of-its-databases" "" "$(diff "$top/ranges.rows" "$top/ranges_ascend.rows" | head -5)"
ranks=$(ask "$top/ascend/run.db" 'SELECT count(DISTINCT rank) FROM processes')
rm "$top/ascend/run.db"
set -- "$top"/ascend/*profiler_1*.db
head -c 9000 "$1" >"$top/cut" && mv "$top/cut" "$1"
echo 'no database' >"$2"
"$tool" import "$top/ascend" >/dev/null
check ascend-files-that-cannot-be-read-are-problems "2 $((ranks - 2))" \
    "$(ask "$top/ascend/run.db" "SELECT count(*) || ' ' || (SELECT count(DISTINCT rank) FROM processes) FROM problems")"
"$PYTHON" "tests/gen/ascend.py" "$top/marked" --ranks 4 --steps 3 --no-comm >/dev/null
"$tool" import "$top/marked" >/dev/null
check ascend-marks-tell-of-communication-that-was-not-profiled 1 \
    "$(tell "$top/marked/run.db" "SELECT count(*) > 20 AND min(agrees) AND max(missing) = 0 AND max(ranks) = 4 FROM joins")"

# What a profiler tells of communication in texts says the same as its databases, but for rounding.
for form in texts databases; do
    [ $form = texts ] && how=--text || how=
    # shellcheck disable=SC2086
    "$PYTHON" "tests/gen/ascend.py" "$top/$form" --ranks 8 --steps 5 --seed 77 $how >/dev/null
    "$tool" report "$top/$form" >/dev/null
    tell "$top/$form/run.db" "SELECT op, count(*), sum(ranks), sum(seq), sum(missing), min(agrees),
        sum(step), max(last_rank), sum(waited_ns), sum(transfer_ns)
        FROM joins GROUP BY op" >"$top/$form.joins"
    tell "$top/$form/run.db" "SELECT name, size, ranks FROM comm_groups ORDER BY name" >>"$top/$form.joins"
done
check texts-of-a-profiler-are-joined-as-its-databases 19 "$(wc -l <"$top/texts.joins" | tr -d ' ')"
# Times of texts are rounded: those of all calls of a kind may differ by 2 %.
check texts-of-a-profiler-say-what-its-databases-say "" "$("$PYTHON" - "$top/texts.joins" "$top/databases.joins" <<'PY'
import sys
rows = [[line.split() for line in open(path)] for path in sys.argv[1:]]
def same(a, b):
    return a == b or (len(a) > 6 and a.isdigit() and b.isdigit() and abs(int(a) - int(b)) <= 0.02 * int(b))
for a, b in zip(*rows):
    if len(a) != len(b) or not all(map(same, a, b)):
        print(*a, "against", *b)
PY
)"
set -- "$top"/texts/*/ASCEND_PROFILER_OUTPUT/communication.json
echo '{"step1": {"collective": {"hcom_allReduce__1_0_1@1": {' >"$1"
"$tool" import "$top/texts" >/dev/null
check a-damaged-text-is-a-problem-and-the-others-count "1 7" \
    "$(ask "$top/texts/run.db" "SELECT count(*) || ' ' || (SELECT count(DISTINCT rank) FROM processes) FROM problems")"

# Foreign and damaged files among those of the ranks: each a problem, and the others count.
cp -r "$top/run" "$top/mixed"
files=$(find "$top/mixed" -name 'r0001*.seg' | sort | grep -v "$(basename "$(dirname "$damaged")")")
# shellcheck disable=SC2086
set -- $files
head -c 100 "$1" >"$top/cut" && mv "$top/cut" "$1"
printf '\004\003\002\001' | dd of="$2" bs=1 seek=8 conv=notrunc 2>/dev/null
echo 'a note of somebody' >"$3"
"$tool" import --summary -o "$top/mixed.db" "$top/mixed" >/dev/null
check each-bad-file-of-a-rank-is-a-problem 1 \
    "$(ask "$top/mixed.db" "SELECT count(DISTINCT file) >= 3 AND (SELECT count(DISTINCT rank) FROM rank_steps) > 8 FROM problems")"

# Interrupted at any moment nothing half-written is left.  Once: of two signals the second ends it at once,
# and without --foreground timeout sends two.
mkdir "$top/stopped"
for wait in 0.01 0.03 0.06 0.1 0.2; do
    timeout --foreground -s INT $wait "$tool" import -o "$top/stopped/run.db" "$top/run" >/dev/null 2>&1
    timeout --foreground -s INT $wait "$tool" cluster -m slow_rank -d "$top/whole.db" -o "$top/stopped/out" >/dev/null 2>&1
    timeout --foreground -s INT $wait "$tool" export -f ascend-db -o "$top/stopped/dbs" "$top/whole.db" >/dev/null 2>&1
done
check interrupted-imports-leave-nothing-half-written "" \
    "$(find "$top/stopped" -name '*.tmp*' -o -name '*-journal' -o -name '*.part*')"
broken=
for db in $(find "$top/stopped" -name '*.db'); do
    [ "$(ask "$db" 'PRAGMA integrity_check')" = ok ] || broken=$db
done
check what-an-interrupted-import-has-published-is-whole "" "$broken"

# The same of a report that imports, and of processes of mpirun, at moments of chance: all die by the
# signal, or had finished.  What a launcher kills at once is removed by a later import.
"$B/tests/tool_sim" "$top/long" clean 0 5 8 1 4 96 4 16 >/dev/null
said=$("$PYTHON" - "$tool" "$top/long" "$B" <<'EOF'
import glob, os, random, shutil, signal, subprocess, sys, time
tool, run, build = sys.argv[1:]
def own():
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
def left():
    return [f for f in os.listdir(run) if not f.startswith("rank_") and f != "run.db"]
commands = {"import": [tool, "import", run], "report": [tool, "report", run]}
for flavour, more in (("mpich", []), ("openmpi", ["--oversubscribe"])):
    start = shutil.which("mpirun." + flavour)
    if start and os.path.exists(f"{build}/libmsprobe_mpi_{flavour}.so"):
        commands[flavour] = [start, *more, "-n", "2", tool, "import", run]
for name, command in commands.items():
    for _ in range(3):
        for old in glob.glob(run + "/*.db*"):
            os.remove(old)
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=own)
        time.sleep(random.uniform(0, 0.6))
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGINT)
        # mpirun of MPICH loses a signal while its processes begin, and may lose another
        for last in (signal.SIGINT, signal.SIGINT, signal.SIGKILL):
            try:
                p.communicate(timeout=30)
                break
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, last)
        for _ in range(100):  # those that mpirun started may outlive it a little
            if left():
                time.sleep(0.1)
        if left() and name not in ("import", "report"):  # a launcher's SIGKILL was there before us
            for f in left():
                os.utime(f"{run}/{f}", (0, 0))
            subprocess.run(commands["import"], capture_output=True, check=True)
        if left():
            print(name, "leaves", left())
        if name in ("import", "report") and p.returncode not in (0, -signal.SIGINT):
            print(name, "ends with", p.returncode)
EOF
)
check an-interrupt-at-any-moment-leaves-nothing "" "$said"

# An export that was interrupted has written nothing, also no folder with the files of some ranks.
said=$("$PYTHON" - "$tool" "$top/long" "$top/exported" <<'EOF'
import os, random, shutil, signal, subprocess, sys, time
tool, run, out = sys.argv[1:]
ended = 0
for form in ("chrome", "perfetto", "csv", "ascend-db", "flight-recorder"):
    for _ in range(6):
        shutil.rmtree(out, ignore_errors=True)
        os.mkdir(out)
        p = subprocess.Popen([tool, "export", "-f", form, "-o", out + "/x", run], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0, 0.4))
        p.send_signal(signal.SIGINT)
        p.wait(timeout=30)
        ended += p.returncode == -signal.SIGINT
        if p.returncode != 0 and os.listdir(out):
            print(form, "leaves", os.listdir(out))
if ended == 0:
    print("no export was interrupted")
EOF
)
check an-interrupted-export-leaves-nothing "" "$said"
exit $rc
