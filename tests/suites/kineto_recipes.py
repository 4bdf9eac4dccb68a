#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recipes of msprobe cluster on profiler's traces, against counts made straight from their JSON.

    kineto_recipes.py MSPROBE DIR TRACE...    DIR has copies of the traces; results go to DIR-out
"""
import collections
import gzip
import json
import os
import sqlite3
import subprocess
import sys

msprobe, work, traces = sys.argv[1], sys.argv[2], sys.argv[3:]
MEMORY = ("memcpy", "memset")
failed = 0


def ask(mode, sql, source=work):
    done = subprocess.run([msprobe, "cluster", "-m", mode, "-d", source, "-o", f"{work}-out"],
                          capture_output=True, text=True)
    if done.returncode:
        return done.stderr
    db = sqlite3.connect(f"{work}-out/cluster_analysis_output/cluster_analysis.db")
    return db.execute(sql).fetchall()


def same(what, have, want):
    global failed
    if have != want:
        print(f"{what}: {have}, expected {want}")
        failed += 1


def events():
    for path in traces:
        yield from (e for e in json.loads(gzip.open(path).read())["traceEvents"] if e["ph"] == "X")


kernels, copies, calls, launched = collections.Counter(), 0, collections.Counter(), []
for e in events():
    name, cat = e["name"], e.get("cat")
    if cat in ("kernel", "gpu_memcpy", "gpu_memset"):
        kind = "memory" if name.lower().startswith(MEMORY) else "comm" if "nccl" in name else "compute"
        kernels[kind] += 1
    elif cat == "cuda_runtime":
        calls[name] += 1
same("kernels", ask("compute_op_sum", "SELECT sum(Count) FROM ComputeOpAllRankStats"),
     [(kernels["compute"],)])
same("calls of the runtime", dict(ask("cann_api_sum", "SELECT name, totalCount FROM CannApiSum")),
     dict(calls))
same("communication", ask("hccl_sum", "SELECT sum(Count) FROM HcclAllRankStats"), [(kernels["comm"],)])
# The longest times without kernels of computation or communication, figured again.
def free_times(path):
    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in json.loads(gzip.open(path).read())["traceEvents"]
                   if e["ph"] == "X" and e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
                   and not e["name"].lower().startswith(MEMORY))
    until, free = spans[0][1], []
    for start, end in spans:
        free += [start - until] if start > until else []
        until = max(until, end)
    return sorted(free, reverse=True)[:10]


same("free times", [r for r, in ask("free_analysis",
                                    'SELECT "duration(us)" FROM FreeAnalysis ORDER BY rankId, 1 DESC')],
     [d for path in traces for d in free_times(path)])
same("free times without a reason", ask("free_analysis",
                                        "SELECT count(*) FROM FreeAnalysis WHERE ifnull(reason, '') = ''"),
     [(0,)])
# The databases that are exported hold the same.
exported = f"{work}-exported"
subprocess.run([msprobe, "export", "-f", "ascend-db", work, "-o", exported], check=True,
               stdout=subprocess.DEVNULL)
for mode, table in (("compute_op_sum", "ComputeOpPerRankStatsByOpName"), ("hccl_sum", "HcclTopOpStats"),
                    ("cann_api_sum", "CannApiSumRank")):
    sql = f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4, 5"
    same(f"{mode} of exported databases", ask(mode, sql, exported), ask(mode, sql))
rank = sqlite3.connect(f"{exported}/ascend_pytorch_profiler_0.db")
same("tasks of rank 0 without a launch", rank.execute(
    "SELECT count(*) FROM TASK WHERE connectionId NOT IN (SELECT connectionId FROM CANN_API)").fetchone(),
     (0,))
# Each mode answers, or says which figure no trace of this profiler has.
for mode in ("all", "slow_rank", "slow_link", "mstx_sum", "communication_group_map",
             "communication_time_sum", "communication_matrix_sum", "cluster_time_summary",
             "computational_op_masking", "module_statistic", "operator_mfu", "ep_load_balance"):
    if isinstance(ask(mode, "SELECT 1"), str):
        same(mode, ask(mode, "SELECT 1"), "an answer")
sys.exit(failed != 0)
