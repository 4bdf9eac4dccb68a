#!/bin/sh
# SPDX-License-Identifier: MIT
# Traces of PyTorch's profiler as people have them: figures, folders of ranks, damage.
suite=kineto
. tests/support/checks.sh
traces=../shared/traces/kineto
if [ ! -e "$traces" ]; then
    echo "skip kineto: no $traces here"
    exit 0
fi

figures() { "$PYTHON" tests/suites/kineto_figures.py "$msprobe" "$traces" "$scratch" >>"$said" 2>&1; }
check 'seven traces have the figures that were counted from their JSON' figures

# Two ranks of one job, as files of a folder.
mkdir "$scratch/two"
cp "$traces"/sampled_rank-[01].json.gz "$scratch/two/"
sql() { "$msprobe" sql "$1" "$2" | tail -n +2; }
folder() {
    "$msprobe" import "$scratch/two" >>"$said" &&
        is "$(sql "$scratch/two" 'SELECT group_concat(rank) FROM ranks')" 0,1 &&
        is "$(sql "$scratch/two" 'SELECT count(*) FROM processes')" 2 &&
        is "$(sql "$scratch/two" 'SELECT text FROM problems')" '126 of 128 ranks have no trace; the first is rank 2'
}
check 'a folder of traces is one run with their ranks' folder
list() {
    "$msprobe" import "$scratch"/two/sampled_rank-[01].json.gz -o "$scratch/list.db" >>"$said" &&
        is "$(sql "$scratch/list.db" 'SELECT group_concat(rank) FROM ranks')" 0,1
}
check 'a list of traces as well' list
# A second rank is made of the first: its clock is 30 s ahead and drifts by 50 us a second, and it arrives
# up to 40 % of each collective later. Both end a collective within a microsecond.
clocks() {
    mkdir "$scratch/clocks" && "$PYTHON" - "$traces/nccl_data.json.gz" "$scratch/clocks" <<'PY' || return 1
import gzip, json, random, sys
trace, draw = json.load(gzip.open(sys.argv[1])), random.Random(5)
json.dump(trace, open(sys.argv[2] + "/rank0.json", "w"))
first = min(e["ts"] for e in trace["traceEvents"] if "ts" in e)
for e in trace["traceEvents"]:
    if "Collective name" in e.get("args", {}):
        late = max(0, draw.uniform(-0.4, 0.4)) * e["dur"]
        e["ts"] += late
        e["dur"] = max(0.5, e["dur"] - late + draw.uniform(-1, 1))
    if "ts" in e:
        e["ts"] = round(30e6 + first + (e["ts"] - first) * (1 + 50e-6), 3)
trace["distributedInfo"]["rank"] = 1
json.dump(trace, open(sys.argv[2] + "/rank1.json", "w"))
PY
    "$msprobe" import "$scratch/clocks" >>"$said" || return 1
    sql "$scratch/clocks" "SELECT text FROM problems" >>"$said"
    is "$(sql "$scratch/clocks" "SELECT count(*), max(abs(offset_ns + 30000000000)) < 40000,
            min(uncertainty_ns) BETWEEN 1 AND 5000000, method FROM clock_offsets" | tr '\t' ' ')" '1 1 1 collectives' &&
        is "$(sql "$scratch/clocks" "SELECT count(*), max(abs(a.end_ns - b.end_ns)) < 40000 FROM comm_ops a
            JOIN comm_ops b USING (seq, class) WHERE a.rank = 0 AND b.rank = 1" | tr '\t' ' ')" '21 1' &&
        is "$(sql "$scratch/clocks" "SELECT text LIKE '%moved by -30.0000% s%' FROM problems")" 1
}
check 'clocks that are 30 s apart and drift are joined by collectives' clocks
recipes() {
    "$PYTHON" tests/suites/kineto_recipes.py "$msprobe" "$scratch/two" "$traces"/sampled_rank-[01].json.gz \
        >>"$said" 2>&1
}
check 'recipes of cluster answer for traces, as their JSON and as exported databases' recipes
# Modules of the model are ranges, in which operators and their kernels are found.
modules() {
    "$PYTHON" - >"$scratch/modules.json" <<'PY'
import json
def x(cat, name, ts, dur, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": tid, "ts": ts, "dur": dur, "args": args}
events = [x("python_function", "nn.Module: Net_0", 0, 100), x("python_function", "nn.Module: Linear_0", 10, 50),
          x("cpu_op", "aten::linear", 12, 40, **{"Input Dims": [[4, 8], [16, 8]], "Input type": ["float", "float"]}),
          x("cuda_runtime", "cudaLaunchKernel", 20, 5, correlation=9),
          x("kernel", "gemm", 70, 20, 3, device=0, stream=3, correlation=9)]
print(json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": events}))
PY
    mkdir "$scratch/modules" && mv "$scratch/modules.json" "$scratch/modules/" &&
        "$msprobe" cluster -m module_statistic -d "$scratch/modules" >>"$said" &&
        is "$(rows modules 'SELECT "parentModule", module, opName, kernelList, opCount FROM ModuleStatistic')" \
            'Net_0|Linear_0|aten::linear|gemm|1' &&
        "$msprobe" cluster -m compute_op_sum -d "$scratch/modules" >>"$said" &&
        is "$(rows modules 'SELECT OpName, OpType, TaskType, InputShapes FROM ComputeOpPerRankStatsByOpName')" \
            'gemm|aten::linear|KERNEL|4,8;16,8'
}
rows() {
    "$PYTHON" -c 'import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute(sys.argv[2]): print(*row, sep="|")' \
        "$scratch/$1/cluster_analysis_output/cluster_analysis.db" "$2"
}
check 'module_statistic finds the modules of a trace with stacks, compute_op_sum the shapes' modules
# A plain table is a run of all its ranks, also compressed and beside a trace.
table() {
    mkdir -p "$scratch/table" && cat >"$scratch/table/job.csv" <<'CSV'
Name,rank,lane,begin_ns,end_ns,kind,step,peer,bytes,remark
forward,0,main,1000,2000,,0,,,x
gemm,0,7,1500,2500,kernel,0,,,
AllReduce,0,9,2500,3500,comm,0,,4096,
"forward, ""again""",1,main,1000,2100,,0,,,
gemm,1,7,1500,2900,kernel,0,,,
AllReduce,1,9,2900,3500,comm,0,,4096,
Send,0,9,3600,3700,comm,1,1,64,
Recv,1,9,3600,3750,comm,1,0,64,
look,0,main,1200,1200,mark,0,,,
ends before it begins,0,main,9,1,,,,,
of no rank,x,main,9,10,,,,,
CSV
    gzip -c "$scratch/table/job.csv" >"$scratch/table.csv.gz"
    "$msprobe" import "$scratch/table" >>"$said" &&
        "$msprobe" import "$scratch/table.csv.gz" -o "$scratch/packed.db" >>"$said" || return 1
    for run in "$scratch/table" "$scratch/packed.db"; do
        is "$(sql "$run" 'SELECT group_concat(rank) FROM ranks')" 0,1 &&
            is "$(sql "$run" 'SELECT rank, op, bytes, peer FROM comm_ops ORDER BY rank, start_ns' | tr '\t\n' '  ' | tr -s ' ')" \
                '0 AllReduce 4096 0 Send 64 1 1 AllReduce 4096 1 Recv 64 0 ' &&
            is "$(sql "$run" 'SELECT number, start_ns, end_ns FROM steps WHERE process = 1' | tr '\t\n' '  ')" \
                '0 1000 3500 1 3600 3700 ' &&
            is "$(sql "$run" "SELECT count(*) FROM events WHERE name = 'forward, \"again\"'")" 1 &&
            is "$(sql "$run" 'SELECT text FROM problems')" '2 rows cannot be read; the first is line 11' &&
            is "$(sql "$run" 'SELECT wait_ns, last FROM rank_comm ORDER BY rank' | tr '\t\n' '  ')" \
                '400 0 0 1 ' || return 1
    done
    "$msprobe" cluster -m hccl_sum -d "$scratch/table" >>"$said" &&
        is "$(rows table 'SELECT OpType, Count, SumNs FROM HcclAllRankStats ORDER BY 1' | tr '\n' ' ')" \
            'HcclAllreduce_|2|1600.0 HcclRecv_|1|150.0 HcclSend_|1|100.0 '
}
check 'a plain table in CSV is a run with calls, steps and kernels' table
# Perfetto: what export writes comes back, and what other tools write is understood.
perfetto() {
    mkdir -p "$scratch/pf" && "$msprobe" export -f perfetto "$scratch/table" -o "$scratch/pf/back.pftrace" >>"$said" &&
        "$msprobe" import "$scratch/pf" >>"$said" || return 1
    for run in "$scratch/table" "$scratch/pf"; do
        sql "$run" 'SELECT rank, name, start_ns, end_ns FROM events ORDER BY 1, 3, 4, 2' >"$scratch/$(basename "$run").rows"
    done
    "$PYTHON" -c 'import sys; a, b = (open(p).read() for p in sys.argv[1:]); sys.exit(a != b or a.count("\n") != 13)' \
        "$scratch/table.rows" "$scratch/pf.rows" || return 1
    "$PYTHON" tests/suites/perfetto_trace.py "$scratch/other.pftrace" && gzip -k "$scratch/other.pftrace" || return 1
    for end in pftrace pftrace.gz; do
        "$msprobe" import "$scratch/other.$end" -o "$scratch/other.db" >>"$said" &&
            is "$(sql "$scratch/other.db" 'SELECT name, start_ns - 1700000000000000000, end_ns - start_ns, args FROM events ORDER BY 2' | tr '\t\n' '  ')" \
                'forward 6000 2000 {"size": -5} here 8000 0 {"why": "a \"b\""} memory 9000 0  backward 10000 1000  alone 20000 1000  ' &&
            is "$(sql "$scratch/other.db" 'SELECT rank, pid, (SELECT group_concat(tid) FROM tracks), (SELECT to_ns - from_ns FROM flows) FROM processes')" \
                "$(printf '3\t42\t43,12,77\t2000')" &&
            is "$(sql "$scratch/other.db" 'SELECT text FROM problems')" \
                '1 events without a place on a time line were left out' || return 1
    done
}
check 'Perfetto traces are read, our own and those of other tools' perfetto
# Ranks: of the process groups, else as the user says.
ranks() {
    "$PYTHON" - "$scratch/ranks" <<'PY'
import json, os, sys
def trace(name, info, *groups):
    os.makedirs(sys.argv[1], exist_ok=True)
    events = [{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7, "ts": 10 * i,
               "dur": 5, "args": {"device": 0, "stream": 7, "Collective name": "allreduce", "dtype": "Float",
                                  "Process Group Name": str(i), "Process Group Ranks": str(ranks)}}
              for i, ranks in enumerate(groups)]
    events += [] if groups else [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": 2}]
    with open(f"{sys.argv[1]}/{name}", "w") as f:
        json.dump({"schemaVersion": 1, "distributedInfo": info, "traceEvents": events}, f)
trace("a_rank9.json", {"world_size": 5}, [0, 1, 2, 3], [1, 3], [2, 3])  # 3 alone is in all
trace("b_rank9.json", {"rank": 1, "world_size": 5}, [0, 1], [0, 2])     # what it says counts
trace("node7_0002.json", {}, [0, 1, 2, 3])
trace("node7_4.json", {})
PY
    "$msprobe" import --rank-from 'node[0-9]+_0*([0-9]+)' "$scratch/ranks" >>"$said" &&
        is "$(sql "$scratch/ranks" 'SELECT group_concat(rank) FROM ranks')" 1,2,3,4 &&
        is "$(sql "$scratch/ranks" 'SELECT text FROM problems')" '1 of 5 ranks has no trace; the first is rank 0' || return 1
    "$msprobe" import --rank-from '(' "$scratch/ranks" >"$scratch/out" 2>&1
    is $? 2 && grep -q "'(' is no regular expression" "$scratch/out"
}
check 'ranks come from process groups, or as --rank-from says; missing ones are told' ranks
# cluster prints its answer, not only where it lies.
answers() {
    for mode in all slow_rank hccl_sum compute_op_sum cann_api_sum free_analysis cluster_time_summary; do
        "$msprobe" cluster -m $mode -d "$scratch/two" -o "$scratch/answers" >"$scratch/out" 2>>"$said" || return 1
        is "$(grep -c '^  ' "$scratch/out")" "$(case $mode in all | cluster_time_summary) echo 2 ;; slow_rank | hccl_sum) echo 1 ;; *) echo 3 ;; esac)" || return 1
        tail -1 "$scratch/out" | grep -q "^$scratch/answers/.*\.db\$" || return 1
        case $mode in
        compute_op_sum) grep -q '^  aten::mm: 462 kernels take 80.7 ms in all, 175 us on average$' "$scratch/out" || return 1 ;;
        slow_rank) grep -q '^  no rank came last more often than by chance$' "$scratch/out" || return 1 ;;
        esac
    done
}
check 'cluster prints at most three lines of answer, then the path' answers
twice() {
    cp "$scratch/two/sampled_rank-1.json.gz" "$scratch/two/again.json.gz"
    "$msprobe" report "$scratch/two" >"$scratch/out" &&
        grep -q 'rank 1 has another trace too; if they are of two runs, import each alone' "$scratch/out" &&
        "$msprobe" import "$scratch/two" >"$scratch/out" &&
        grep -q '^  1 trace is of a rank that another trace has, too; if they are of two runs' "$scratch/out"
}
check 'a rank that two traces give is told' twice
damaged() {
    head -c 20000 "$traces/sampled_rank-0.json.gz" >"$scratch/two/again.json.gz"
    printf '{"schemaVersion": 1, "traceEvents": 7}' >"$scratch/two/empty.json"
    "$msprobe" report "$scratch/two" >"$scratch/out" && grep -q 'again.*cut off' "$scratch/out"
}
check 'a trace that is cut off keeps its beginning' damaged

calls() {
    is "$(sql "$scratch/nccl_data" 'SELECT op, count(*) FROM comm_ops GROUP BY op ORDER BY op' | tr '\t\n' '  ' | tr -s ' ')" \
        'AllReduce 15 Broadcast 6 ' &&
        is "$(sql "$scratch/nccl_data" "SELECT count(*) FROM flows WHERE name = 'fwdbwd'")" 543
}
check 'collectives of NCCL are calls, and flows from forward to backward are kept' calls
# What is exported has the categories and flows of the trace again.
back() {
    "$msprobe" export -f chrome "$scratch/nccl_data" -o "$scratch/back.json" >>"$said" &&
        "$PYTHON" - "$scratch/back.json" "$traces/nccl_data.json.gz" >>"$said" 2>&1 <<'PY'
import collections, gzip, json, sys
def counts(events):
    return collections.Counter((e["ph"], e.get("cat")) for e in events if e["ph"] in "Xsf")
back = counts(json.load(open(sys.argv[1]))["traceEvents"])
plain = counts(json.loads(gzip.open(sys.argv[2]).read())["traceEvents"])
for key in plain:
    if key[1] != "ac2g":
        assert back[key] == plain[key], (key, back[key], plain[key])
assert back["s", "ac2g"] == back["f", "ac2g"] == 3774, back
PY
}
check 'an export has categories and flows again' back
exit $rc
