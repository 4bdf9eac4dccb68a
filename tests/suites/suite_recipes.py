#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recipes of msprobe cluster against others' values.

    suite_recipes.py MSPROBE DIR                     the suite, in an empty directory
    suite_recipes.py --official TOOL DIR > golden    what the official tool makes of the same input

Two measures.  tests/data/recipes/official.json.xz holds what msprof-analyze 26.2.0 wrote for the input
that tests/gen/ascend.py makes; of long tables every seventh row.  And slow_rank, mstx_sum and
cluster_time_summary are worked out here from their published formulas, for inputs of other seeds.
"""
import csv
import glob
import json
import lzma
import math
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GOLDEN = f"{HERE}/data/recipes/official.json.xz"
DB = "cluster_analysis_output/cluster_analysis.db"
MODES = ["all", "slow_rank", "slow_link", "hccl_sum", "mstx_sum", "communication_group_map",
         "cluster_time_summary", "computational_op_masking", "p2p_pairing", "pp_chart",
         "module_statistic", "operator_mfu", "cann_api_sum", "compute_op_sum", "freq_analysis",
         "free_analysis", "ep_load_balance"]
# Rows that tie may name either rank; a path and a running number are the machine's own.
NOT_COMPARED = {"SlowLinkSum": {"maxRank", "minRank"}, "RankDeviceMap": {"profilePath"},
                "MSTXMarkStats": {"index"}}
LISTS = {"Ranks", "minRank", "maxRank", "SlowRank"}
failed = 0


def tell(name, why):
    global failed
    print(f"not ok {name}\n{why}" if why else f"ok {name}")
    failed += bool(why)


def generate(directory, *args):
    subprocess.run([sys.executable, f"{HERE}/gen/ascend.py", directory, *args], check=True)
    return directory


def profiler(directory, rank):
    return glob.glob(f"{directory}/**/ascend_pytorch_profiler_{rank}.db", recursive=True)[0]


# ---- tables

def plain(column, value):
    """What two tools may write differently is written in one way."""
    if column in LISTS and isinstance(value, str):
        return ",".join(sorted(value.replace(";", ",").replace(" ", "").split(",")))
    if column == "value" and isinstance(value, str) and value.startswith("{"):
        return json.dumps(json.loads(value), sort_keys=True)
    return value


def table(db, name):
    rows = db.execute(f'SELECT * FROM "{name}"')
    columns = [c[0] for c in rows.description]
    kept = [i for i, c in enumerate(columns) if c not in NOT_COMPARED.get(name, ())]
    values = [[plain(columns[i], r[i]) for i in kept] for r in rows]
    key = lambda r: ["" if v is None else f"{v:.9g}" if isinstance(v, (int, float)) else v for v in r]
    return [columns[i] for i in kept], sorted(values, key=key)


def same(a, b):
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(a, str) and isinstance(b, str) and a != b and a[:1] + b[:1] == "[[" and a[1].isdigit():
        return len(json.loads(a)) == len(json.loads(b)) and all(map(same, json.loads(a), json.loads(b)))
    return a == b or (a is not None and b is not None and str(a) == str(b))


def sample(rows):
    return rows[::7] if len(rows) > 150 else rows


def compare_rows(expected, got):
    for want, have in zip(expected, got):
        if len(want) != len(have) or not all(map(same, want, have)):
            return f"expected {want}\n     got {have}"
    return f"{len(got)} rows, expected {len(expected)}" if len(expected) != len(got) else None


def collect(directory):
    """Everything that recipes wrote, in a form for JSON."""
    out = {}
    db = sqlite3.connect(f"{directory}/{DB}")
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"):
        columns, rows = table(db, name)
        if rows:
            out[name] = {"columns": columns, "count": len(rows), "rows": sample(rows)}
    for rank in (0, 5):
        p = sqlite3.connect(profiler(directory, rank))
        for name, sql in (("opConnectionId", "SELECT opId, opConnectionId FROM COMMUNICATION_OP"),
                          ("StepTaskInfo", "SELECT name, startNs, endNs, type FROM StepTaskInfo")):
            rows = sorted(list(r) for r in p.execute(f"{sql} ORDER BY 1, 2"))
            out[f"{name} of {rank}"] = {"columns": [], "count": len(rows), "rows": rows}
    return out


def collect_commop(directory):
    rows = sqlite3.connect(profiler(directory, 3)).execute(
        "SELECT n.value, c.startNs, c.endNs, connectionId, g.value, dataType, CAST(count AS INTEGER),"
        " t.value FROM COMMUNICATION_OP c JOIN STRING_IDS n ON n.id = opName JOIN STRING_IDS g"
        " ON g.id = groupName JOIN STRING_IDS t ON t.id = opType ORDER BY 2, 1")
    return [list(r) for r in rows]


def collect_texts(directory):
    out = {}
    for name in ("cluster_communication.json", "cluster_communication_matrix.json",
                 "communication_group.json"):
        with open(f"{directory}/cluster_analysis_output/{name}") as f:
            flat = sorted(flatten(json.load(f)))
            out[name] = {"count": len(flat), "rows": flat[::19] if len(flat) > 500 else flat}
    with open(f"{directory}/cluster_analysis_output/cluster_step_trace_time.csv") as f:
        out["csv"] = sorted(line.strip() for line in f)
    return out


def flatten(value, path=""):
    if isinstance(value, dict):
        for k, v in value.items():
            yield from flatten(v, f"{path}/{k}")
    elif isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        for v in sorted(value, key=lambda v: json.dumps(v, sort_keys=True)):
            yield from flatten(v, f"{path}/" + (v.get("group_name", "") if isinstance(v, dict) else "[]"))
    else:
        yield [path, json.dumps(value) if not isinstance(value, (int, float)) else value]


# ---- the official tool

def run_official(tool, work):
    def run(directory, *modes):
        for mode in modes:
            subprocess.run([tool, "cluster", "-m", mode, "-d", directory, "--force"], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    db = generate(f"{work}/db", "--steps", "2")
    text = generate(f"{work}/text", "--steps", "2", "--text")
    marks = generate(f"{work}/marks", "--steps", "2", "--no-comm")
    run(db, *MODES)
    run(text, "all")
    run(marks, "mstx2commop")
    commop = glob.glob(f"{marks}/cluster_analysis_output/*ommop")[0]
    json.dump({"tables": collect(db), "texts": collect_texts(text), "commop": collect_commop(commop)},
              sys.stdout)


# ---- ours against it

class Msprobe:
    def __init__(self, program):
        self.program = program

    def __call__(self, mode, directory, *args):
        return subprocess.run([self.program, "cluster", "-m", mode, "-d", directory, *args],
                              capture_output=True, text=True)


def check_tables(run, work, golden):
    db = generate(f"{work}/db", "--steps", "2")
    for mode in MODES:
        done = run(mode, db, "--compat", "strict")
        if done.returncode != 0 or done.stderr:
            tell(f"cluster -m {mode}", f"exit {done.returncode}: {done.stderr}")
    ours = collect(db)
    for name, want in golden.items():
        have = ours.get(name)
        why = "is missing" if have is None else None
        if have and have["columns"] != want["columns"]:
            why = f"columns {have['columns']}, expected {want['columns']}"
        elif have and have["count"] != want["count"]:
            why = f"{have['count']} rows, expected {want['count']}"
        tell(f"official {name}", why or compare_rows(want["rows"], have["rows"]))


def check_texts(run, work, golden):
    text = generate(f"{work}/text", "--steps", "2", "--text")
    done = run("all", text)
    if done.returncode != 0:
        return tell("text", done.stderr)
    ours = collect_texts(text)
    for name in golden:
        if name == "csv":
            tell("official cluster_step_trace_time.csv",
                 None if golden[name] == ours[name] else "\n".join(ours[name][:5]))
        else:
            why = compare_rows(golden[name]["rows"], ours[name]["rows"])
            tell(f"official {name}", why if golden[name]["count"] == ours[name]["count"] else
                 f"{ours[name]['count']} values, expected {golden[name]['count']}")
    done = run("slow_rank", text)
    tell("databases are asked for where they are needed",
         None if done.returncode == 3 and "JSON and CSV" in done.stderr else done.stderr)


def check_commop(run, work, golden):
    marks = generate(f"{work}/marks", "--steps", "2", "--no-comm")
    before = open(profiler(marks, 3), "rb").read()
    done = run("mstx2commop", marks)
    if done.returncode != 0:
        return tell("mstx2commop", done.stderr)
    copy = f"{marks}/cluster_analysis_output/mstx2commop"
    tell("official mstx2commop", compare_rows(golden, collect_commop(copy)))
    ours = [p for p in glob.glob(f"{marks}/*_ascend_pt/**/ascend_pytorch_profiler_3.db", recursive=True)]
    tell("mstx2commop leaves its input alone",
         None if open(ours[0], "rb").read() == before else "it was changed")


def check_csv(run, work):
    """Text is the table, in microseconds."""
    for mode, name, column in (("hccl_sum", "all_stats.csv", "MeanNs"), ("slow_rank", "slow_op_stats.csv",
                                                                     "SumNs")):
        done = run(mode, f"{work}/db", "--export_type", "text", "-o", f"{work}/csv")
        with open(f"{work}/csv/cluster_analysis_output/{mode}/{name}") as f:
            head, first = f.readline().strip().split(","), f.readline()
        title = column.replace("Ns", "(Us)")
        run(mode, f"{work}/db")
        db = sqlite3.connect(f"{work}/db/{DB}")
        tables = {"hccl_sum": "HcclAllRankStats", "slow_rank": "SlowOpStats"}
        want = db.execute(f"SELECT {column} FROM {tables[mode]} ORDER BY rowid LIMIT 1").fetchone()[0]
        have = float(first.strip().split(",")[head.index(title) - len(head)]) if title in head else None
        tell(f"csv of {mode}", None if have is not None and same(have, want / 1000)
             else f"{done.stderr} {head} {first}")


# ---- formulas

DIXON = [float(x) for x in """
.994 .920 .823 .744 .680 .723 .676 .638 .707 .675 .649 .672 .649 .629 .611 .595 .580 .568 .556 .545 .536
.526 .519 .510 .503 .496 .489 .484 .478 .473 .468 .463 .458 .454 .450 .446 .442 .439 .435 .432 .429 .425
.423 .420 .417 .414 .412 .409 .407 .405 .402 .400 .398 .396 .394 .392 .391 .388 .387 .385 .383 .382 .380
.379 .377 .376 .374 .372 .371 .370 .368 .368 .366 .365 .364 .363 .361 .360 .359 .358 .356 .356 .355 .353
.352 .352 .351 .350 .349 .348 .347 .346 .345 .344 .344 .343 .341 .341""".split()]


def quantile(x, q):
    x = sorted(x)
    at = q * (len(x) - 1)
    low = int(at)
    return x[low] + (at - low) * (x[min(low + 1, len(x) - 1)] - x[low])


def describe(x):
    return [len(x), sum(x) / len(x), statistics.stdev(x) if len(x) > 1 else None, min(x),
            quantile(x, .25), quantile(x, .5), quantile(x, .75), max(x), sum(x)]


def slow_of(x):
    """Places in x that made the others wait."""
    n, s = len(x), sorted(x)
    if n > 100:
        mean, deviation = statistics.fmean(x), statistics.pstdev(x)
        slow = [i for i, v in enumerate(x) if v < mean - 3 * deviation]
        if max(x) > mean + 3 * deviation and x.index(s[0]) not in slow:
            slow.append(x.index(s[0]))
        return slow
    if n < 3 or len(set(x)) <= 3:
        return []
    near, far = (1, -1) if n <= 7 else (1, -2) if n <= 10 else (2, -2) if n <= 13 else (2, -3)
    return [x.index(s[0])] if (s[near] - s[0]) / (s[far] - s[0]) > DIXON[n - 3] else []


def operations(directory, ranks):
    for rank in range(ranks):
        db = sqlite3.connect(profiler(directory, rank))
        yield from ((rank, *r) for r in db.execute(
            "SELECT g.value, n.value, o.startNs, o.endNs - o.startNs, a.startNs FROM COMMUNICATION_OP o"
            " JOIN STRING_IDS g ON g.id = groupName JOIN STRING_IDS n ON n.id = opName"
            " JOIN CANN_API a ON a.connectionId = o.connectionId"))


def slow_rank(directory, ranks):
    groups = {}
    for rank, group, name, start, duration, _ in operations(directory, ranks):
        if "send" not in name and "receive" not in name:
            groups.setdefault(group, {}).setdefault(name, []).append((rank, start, duration))
    votes, ops = {}, []
    for group, names in groups.items():
        if len({len(v) for v in names.values()}) > 1:
            continue
        for name, rows in names.items():
            slow = [rows[i] for i in slow_of([r[2] for r in rows])]
            for row in slow:
                votes[row[0]] = votes.get(row[0], 0) + 1
            if slow:
                ops.append([",".join(sorted(str(r[0]) for r in slow)), name, group,
                            min(r[1] for r in slow), *describe([r[2] for r in rows])])
    return sorted(map(list, votes.items())), ops


def mstx_rows(directory, ranks):
    """name, framework, cann, device, rank, step of each pair of marks and each range."""
    for rank in range(ranks):
        db = sqlite3.connect(profiler(directory, rank))
        steps = db.execute("SELECT id, startNs, endNs FROM STEP_TIME ORDER BY startNs").fetchall()
        api = {c: int(s) for s, c in db.execute(
            "SELECT p.startNs, c.connectionId FROM PYTORCH_API p JOIN CONNECTION_IDS c"
            " ON c.id = p.connectionId")}
        task = {c: (s, e) for c, s, e in db.execute("SELECT connectionId, startNs, endNs FROM TASK")}
        events = db.execute(
            "SELECT m.value, e.startNs, e.endNs, e.eventType, e.connectionId, e.globalTid"
            " FROM MSTX_EVENTS e JOIN STRING_IDS m ON m.id = e.message ORDER BY e.startNs").fetchall()
        rows, begun = [], {}
        for name, start, _, kind, connection, tid in events:
            if kind != 3:
                continue
            times = (api.get(connection, 0), start, task.get(connection, (0, 0))[0])
            if name.endswith("_start"):
                begun.setdefault((tid, name[:-6]), []).append(times)
            elif begun.get((tid, name[:-5])):
                first = begun[tid, name[:-5]].pop()
                rows.append([name[:-5], *(b - a for a, b in zip(first, times)), first[1]])
        ranges = [e for e in events if e[3] == 2 and e[4] != 4294967295]
        inside = {}
        chain = []
        for name, start, end, *_ in sorted(ranges, key=lambda e: (e[1], -e[2])):
            while chain and chain[-1][1] < end:
                chain.pop()
            chain.append((chain[-1][0] + "::" + name if chain else name, end))
            inside[start, end] = chain[-1][0]
        for name, start, end, _, connection, _ in ranges:
            device = task[connection]
            rows.append([inside[start, end], 0, end - start, device[1] - device[0], start])
        stepped = [(next((s[0] for s in steps if s[1] <= r[4] <= s[2]), 0), r) for r in rows]
        names = [(s, r[0]) for s, r in stepped]
        seen = {}
        for step, (name, framework, cann, device, _) in stepped:
            if names.count((step, name)) > 1:
                n = seen[step, name] = seen.get((step, name), -1) + 1
                name = f"{name}_{n}"
            yield name, framework, cann, device, rank, step


def mstx_sum(directory, ranks, column):
    """Of equal values the one with the greatest share of its rank's time in CANN is the first."""
    rows, whole, groups = list(mstx_rows(directory, ranks)), {}, {}
    for row in rows:
        whole[row[4]] = whole.get(row[4], 0) + row[2]
    for row in sorted(rows, key=lambda row: -row[2] / whole[row[4]]):
        groups.setdefault((row[5], row[0]), []).append((row[column], row[4]))
    out = []
    for (step, name), values in groups.items():
        x = [v for v, _ in values]
        n, mean, deviation, low, q1, q2, q3, high, total = describe(x)
        zero = low == 0 and high == 0
        out.append([name, n, mean, deviation, low, 0 if zero else min(values, key=lambda v: v[0])[1], q1, q2, q3, high,
                    0 if zero else max(values, key=lambda v: v[0])[1], total,
                    (high - q3) / total * 100 if total else 0, step])
    return out


def bare_copies(intervals):
    """Time of copies under which nothing else began or went on, by the official sweep."""
    start = end = intervals[0][0]
    kind, bare = -1, 0
    for s, e, k in intervals:
        if kind == 4:
            bare += max(0, min(s, end) - start)
        if s > end:
            start, end, kind = s, e, k
        elif e > end:
            start, end, kind = end, e, k
        else:
            start = e
    return bare + (end - start if kind == 4 else 0)


def time_summary(directory, ranks):
    out, shortest, ops, members = [], {}, [], {}
    for rank, group, name, _, duration, api in operations(directory, ranks):
        db = sqlite3.connect(profiler(directory, rank))
        ops.append((rank, group, name, duration / 1000, api))
        members.setdefault(group, set()).add(rank)
    steps = {r: sqlite3.connect(profiler(directory, r)).execute(
        "SELECT id, startNs, endNs FROM STEP_TIME").fetchall() for r in range(ranks)}
    step_of = lambda rank, at: next((s[0] for s in steps[rank] if s[1] <= at <= s[2]), None)
    ops = [(r, (g, n, step_of(r, api)), t) for r, g, n, t, api in ops]
    seen = {}
    for rank, key, t in ops:
        shortest[key] = min(t, shortest.get(key, t))
        seen.setdefault(key, set()).add(rank)
    for rank in range(ranks):
        db = sqlite3.connect(profiler(directory, rank))
        busy = db.execute(
            "SELECT t.startNs, t.endNs, 0, a.startNs FROM COMPUTE_TASK_INFO i JOIN TASK t"
            " USING(globalTaskId) JOIN CANN_API a ON a.connectionId = t.connectionId"
            " WHERE t.startNs != t.endNs UNION ALL SELECT o.startNs, o.endNs, 1, a.startNs"
            " FROM COMMUNICATION_OP o JOIN CANN_API a ON a.connectionId = o.connectionId"
            " UNION ALL SELECT startNs, endNs, 4, startNs FROM TASK JOIN STRING_IDS s"
            " ON s.id = taskType WHERE s.value = 'MEMCPY_ASYNC' ORDER BY 1, 2").fetchall()
        trace = sqlite3.connect(os.path.join(os.path.dirname(profiler(directory, rank)), "analysis.db"))
        for step, start, end in steps[rank]:
            computing, exposed, overlapped, communication, free = trace.execute(
                "SELECT computing, communication_not_overlapped, overlapped, communication, free"
                " FROM StepTraceTime WHERE step = ?", (str(step),)).fetchone()
            mine = [b[:3] for b in busy if start <= b[3] <= end]
            memory = sum(b[1] - b[0] for b in mine if b[2] == 4) / 1000
            bare = bare_copies(mine) / 1000
            met = [(k, t) for r, k, t in ops if r == rank and k[2] == step and
                   seen[k] >= members[k[0]]]
            out.append([rank, step, (end - start) / 1000, computing, exposed, overlapped, communication,
                        free - bare, sum(t - shortest[k] for k, t in met),
                        sum(shortest[k] for k, _ in met), memory, bare])
    return out


def check_formula(db, name, columns, expected):
    rows = [list(r) for r in db.execute(f'SELECT {columns} FROM "{name}"')]
    if name == "SlowOpStats":
        rows = [[",".join(sorted(r[0].split(","))), *r[1:]] for r in rows]
    key = lambda r: [str(v) if not isinstance(v, float) else f"{v:.9g}" for v in r[:2]] + [str(r[-1])]
    return compare_rows(sorted(expected, key=key), sorted(rows, key=key))


def check_formulas(run, work):
    for ranks, steps in ((8, 2), (12, 1), (104, 1)):
        seed = str(random.SystemRandom().randrange(1 << 30))
        name = f"{ranks} ranks"
        data = generate(f"{work}/{ranks}", "--ranks", str(ranks), "--steps", str(steps), "--seed", seed)
        for mode in ("slow_rank", "mstx_sum", "cluster_time_summary"):
            done = run(mode, data)
            if done.returncode != 0 or done.stderr:
                tell(f"{mode} of {name}, seed {seed}", done.stderr)
        db = sqlite3.connect(f"{data}/{DB}")
        votes, ops = slow_rank(data, ranks)
        tell(f"votes of {name}, seed {seed}: {len(votes)}",
             check_formula(db, "SlowRank", "rankId, slowAffectCount", votes))
        tell(f"slow operations of {name}, seed {seed}: {len(ops)}", check_formula(db, "SlowOpStats", "*", ops))
        for table_name, column in (("MSTXAllFrameworkStats", 1), ("MSTXAllCannStats", 2),
                                   ("MSTXAllDeviceStats", 3)):
            tell(f"{table_name} of {name}, seed {seed}",
                 check_formula(db, table_name, "*", mstx_sum(data, ranks, column)))
        if ranks < 100:
            tell(f"ClusterTimeSummary of {name}, seed {seed}",
                 check_formula(db, "ClusterTimeSummary", "*", time_summary(data, ranks)))
        shutil.rmtree(data)


# ---- input that nobody wants

def hostile(path, sql):
    db = sqlite3.connect(path)
    db.executescript(sql)
    db.commit()
    db.close()


BAD = {
    0: None,  # no database at all
    1: "DROP TABLE STRING_IDS; DROP TABLE CANN_API;",
    2: "UPDATE COMMUNICATION_OP SET startNs = 'soon', endNs = NULL; UPDATE TASK SET startNs = x'00ff';",
    3: "DELETE FROM COMMUNICATION_OP; DELETE FROM TASK; DELETE FROM MSTX_EVENTS; DELETE FROM STEP_TIME;",
    4: "UPDATE META_DATA SET value = '{\"dp'; UPDATE STRING_IDS SET value = NULL WHERE id % 3 = 0;",
    5: "ALTER TABLE COMMUNICATION_OP RENAME COLUMN groupName TO grp; DROP TABLE MSTX_EVENTS;",
    6: "UPDATE STRING_IDS SET value = ''' -- \" %s' WHERE id % 5 = 0;"
       "UPDATE PYTORCH_API SET startNs = 'x'; UPDATE STEP_TIME SET id = 'one', endNs = startNs - 1;",
}


def check_hostile(run, work):
    data = generate(f"{work}/bad", "--steps", "1")
    for rank, sql in BAD.items():
        if sql is None:
            with open(profiler(data, rank), "wb") as f:
                f.write(b"no database" * 1000)
        else:
            hostile(profiler(data, rank), sql)
    shutil.copytree(os.path.dirname(os.path.dirname(profiler(data, 7))), f"{data}/node0_1_ascend_pt")
    problems = 0
    for mode in MODES:
        done = run(mode, data)
        db = sqlite3.connect(f"{data}/{DB}")
        noted = db.execute("SELECT count(*) FROM ImportProblem WHERE text != ''").fetchone()[0]
        problems += noted
        tell(f"bad databases: {mode}", None if done.returncode == 0 and noted >= 1 and
             "ImportProblem" in done.stderr else f"exit {done.returncode}, {noted} noted: {done.stderr}")
    db.execute("SELECT 1")
    twice = sqlite3.connect(f"{data}/{DB}").execute(
        "SELECT count(*) FROM ImportProblem WHERE text LIKE '%found elsewhere%'").fetchone()[0]
    tell("a rank that is there twice is a problem", None if twice == 1 else f"{twice}")
    os.makedirs(f"{work}/none")
    done = run("slow_rank", f"{work}/none")
    tell("no rank at all", None if done.returncode == 3 and done.stderr and
         not os.path.exists(f"{work}/none/{DB}") else f"{done.returncode} {done.stderr}")
    with open(f"{data}/{DB}", "wb") as f:
        f.write(b"something else")
    done = run("slow_rank", data)
    tell("an output that is no database is not overwritten",
         None if done.returncode == 3 and open(f"{data}/{DB}", "rb").read() == b"something else"
         else f"{done.returncode} {done.stderr}")


def check_bottlenecks(run, work):
    """Rows of CommunicationBottleneck as msprof-analyze 26.2.0 made them, for profiles with delays."""
    with open(f"{HERE}/data/recipes/bottlenecks.json") as f:
        golden = json.load(f)
    for seed, want in golden.items():
        folder = generate(f"{work}/delays{seed}", "--steps", "2")
        subprocess.run([sys.executable, f"{HERE}/gen/ascend_delays.py", folder, seed], check=True)
        run("communication_bottleneck", folder, "--compat", "strict")
        with sqlite3.connect(f"{folder}/{DB}") as db:
            rows = db.execute("SELECT * FROM CommunicationBottleneck").fetchall()
        have = [["" if v is None else str(v) for v in row] for row in rows]
        wrong = [f"{h}\n{w}" for h, w in zip(have, want) if h != w]
        tell(f"bottlenecks of seed {seed}", wrong[0] if wrong else
             "" if len(have) == len(want) > 0 else f"{len(have)} rows instead of {len(want)}")


def check_summaries(run, work):
    """Files that msprof-analyze 26.2.0 wrote for profiles which lack this or that."""
    with lzma.open(f"{HERE}/data/recipes/summaries.json.xz", "rt") as f:
        golden = json.load(f)
    folder = generate(f"{work}/kernels", "--steps", "2")
    subprocess.run([sys.executable, f"{HERE}/gen/ascend_kernels.py", folder], check=True)
    shutil.copytree(folder, f"{work}/kernels_plain")
    run("export_summary", folder, "--compat", "strict")
    for name, want in golden.items():
        rank, file = name.split("/")
        path = f"{os.path.dirname(profiler(folder, rank))}/{file}"
        have = open(path, newline="").read() if os.path.exists(path) else "no file"
        wrong = [f"{h}\n{w}" for h, w in zip(have.splitlines(), want.splitlines()) if h != w]
        tell(f"{file} of rank {rank}", wrong[0] if wrong else "" if have == want else "another length")
    path = f"{os.path.dirname(profiler(folder, 0))}/api_statistic.csv"
    with open(path, "w") as f:
        f.write("mine")
    done = run("export_summary", folder)
    tell("a summary that is there is kept", None if done.returncode == 0 and open(path).read() == "mine" else done.stderr)
    folder = f"{work}/kernels_plain"
    run("export_summary", folder)
    with open(f"{os.path.dirname(profiler(folder, 7))}/kernel_details.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    ends = [float(r["task_start_time"]) + float(r["task_duration"]) for r in rows]
    waits = [float(r["task_wait_time"]) for r in rows]
    far = [w for w, b, e in zip(waits[1:], rows[1:], ends) if abs(float(b["task_start_time"]) - e - w) > 0.6]
    tell("the default waits from the end of the kernel before", None if waits[0] == 0 and not far else f"{far[:3]}")


def check_options(run, work):
    db = f"{work}/db"
    run("hccl_sum", db, "--rank_list", "1,2", "--top_num", "3")
    q = lambda sql: sqlite3.connect(f"{db}/{DB}").execute(sql).fetchall()
    tell("--rank_list", None if q("SELECT DISTINCT Rank FROM HcclPerRankStats ORDER BY 1") == [(1,), (2,)]
         else "other ranks")
    tell("--top_num", None if q("SELECT count(*) FROM HcclTopOpStats") == [(3,)] else "other rows")
    run("cluster_time_summary", db, "--step_id", "2")
    tell("--step_id", None if q("SELECT DISTINCT step FROM ClusterTimeSummary") == [(2,)] else "other steps")
    shutil.copytree(db, f"{work}/base")
    done = run("cluster_time_compare_summary", db, "--bp", f"{work}/base")
    tell("--bp", None if q("SELECT count(*), max(abs(stepTimeDiff)) FROM ClusterTimeCompareSummary")
         == [(8, 0.0)] else done.stderr)
    done = run("cluster_time_compare_summary", db)
    tell("without --bp", None if done.returncode == 2 and "--bp" in done.stderr else done.stderr)
    run("computational_op_masking", db, "--parallel_types", "dp,tp;pp")
    kinds = q("SELECT DISTINCT parallelType FROM ComputationalOperatorMaskingLinearity ORDER BY 1")
    tell("--parallel_types", None if kinds == [("dp+tp",), ("pp",)] else f"{kinds}")


def main():
    if sys.argv[1] == "--official":
        return run_official(*sys.argv[2:4])
    run, work = Msprobe(sys.argv[1]), sys.argv[2]
    with lzma.open(GOLDEN, "rt") as f:
        golden = json.load(f)
    check_tables(run, work, golden["tables"])
    check_texts(run, work, golden["texts"])
    check_commop(run, work, golden["commop"])
    check_csv(run, work)
    check_bottlenecks(run, work)
    check_summaries(run, work)
    check_options(run, work)
    check_formulas(run, work)
    check_hostile(run, work)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
