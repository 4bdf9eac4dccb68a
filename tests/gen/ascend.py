#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Outputs of Ascend's profilers, made up: a directory per rank as the PyTorch profiler leaves it.

    ascend.py DIR [--ranks N] [--steps N] [--seed N] [--text | --no-comm]

Pipeline, tensor and data parallel groups, steps, kernels, calls of the framework and of CANN, copies,
ranges and marks of mstx, counted operations, point-to-point operations with their tasks.  --text
leaves JSON and CSV instead of databases, --no-comm leaves out what communication was and only the
marks that tell it.  The same arguments give the same bytes of content.
"""
import argparse
import json
import os
import random
import sqlite3

T0 = 1_717_575_960_000_000_000
STEP_NS = 20_000_000
TYPES = {0: "INT8", 1: "INT16", 2: "INT32", 3: "FP16", 4: "FP32", 5: "INT64", 6: "UINT64", 7: "UINT8",
         8: "UINT16", 9: "UINT32", 10: "FP64", 11: "BFP16", 12: "INT128", 65534: "N/A"}

SCHEMA = """
CREATE TABLE META_DATA(name TEXT, value TEXT);
CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE RANK_DEVICE_MAP(rankId INTEGER, deviceId INTEGER);
CREATE TABLE HOST_INFO(hostUid TEXT, hostName TEXT);
CREATE TABLE ENUM_HCCL_DATA_TYPE(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE STEP_TIME(id INTEGER, startNs INTEGER, endNs INTEGER);
CREATE TABLE MSTX_EVENTS(startNs INTEGER, endNs INTEGER, eventType INTEGER, rangeId INTEGER,
 category INTEGER, message INTEGER, globalTid INTEGER, endGlobalTid INTEGER, domainId INTEGER,
 connectionId INTEGER);
CREATE TABLE TASK(startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER,
 globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER,
 taskId INTEGER, modelId INTEGER);
CREATE TABLE COMPUTE_TASK_INFO(name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockNum INTEGER,
 mixBlockNum INTEGER, taskType INTEGER, opType INTEGER, inputFormats INTEGER, inputDataTypes INTEGER,
 inputShapes INTEGER, outputFormats INTEGER, outputDataTypes INTEGER, outputShapes INTEGER,
 attrInfo INTEGER, opState INTEGER, hf32Eligible INTEGER);
CREATE TABLE CANN_API(startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER,
 connectionId INTEGER PRIMARY KEY, name INTEGER);
CREATE TABLE PYTORCH_API(startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER,
 name INTEGER, sequenceNumber INTEGER, fwdThreadId INTEGER, inputDtypes INTEGER, inputShapes INTEGER,
 callchainId INTEGER, type INTEGER);
CREATE TABLE CONNECTION_IDS(id INTEGER, connectionId INTEGER);
CREATE TABLE AICORE_FREQ(deviceId INTEGER, timestampNs INTEGER, freq INTEGER);
"""
COMM_SCHEMA = """
CREATE TABLE COMMUNICATION_OP(opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER,
 groupName INTEGER, opId INTEGER PRIMARY KEY, relay INTEGER, retry INTEGER, dataType INTEGER,
 algType INTEGER, count NUMERIC, opType INTEGER, deviceId INTEGER, rankSize INTEGER);
CREATE TABLE COMMUNICATION_TASK_INFO(name INTEGER, globalTaskId INTEGER, taskType INTEGER,
 planeId INTEGER, groupName INTEGER, notifyId INTEGER, rdmaType INTEGER, srcRank INTEGER,
 dstRank INTEGER, transportType INTEGER, size INTEGER, dataType INTEGER, linkType INTEGER,
 opId INTEGER, isMaster INTEGER, bandwidth NUMERIC);
"""
ANALYSIS_SCHEMA = """
CREATE TABLE CommAnalyzerTime(hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC,
 elapse_time NUMERIC, transit_time NUMERIC, wait_time NUMERIC, synchronization_time NUMERIC,
 idle_time NUMERIC, step TEXT, type TEXT);
CREATE TABLE CommAnalyzerBandwidth(hccl_op_name TEXT, group_name TEXT, transport_type TEXT,
 transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, large_packet_ratio NUMERIC,
 package_size NUMERIC, count NUMERIC, total_duration NUMERIC, step TEXT, type TEXT);
CREATE TABLE CommAnalyzerMatrix(hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT,
 transport_type TEXT, transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, step TEXT,
 type TEXT, op_name TEXT);
CREATE TABLE StepTraceTime(deviceId INTEGER, step TEXT, computing NUMERIC,
 communication_not_overlapped NUMERIC, overlapped NUMERIC, communication NUMERIC, free NUMERIC,
 stage NUMERIC, bubble NUMERIC, communication_not_overlapped_and_exclude_receive NUMERIC,
 preparing NUMERIC);
"""


def double_hash(text):
    h = [0, 0]
    for c in text:
        h = [(h[0] * 29 + ord(c)) & 0xFFFFFFFF, (h[1] * 131 + ord(c)) & 0xFFFFFFFF]
    return h[0] << 32 | h[1]


def group_id(name):
    return str(double_hash(name))[-3:]


class Layout:
    """Ranks in groups as Megatron makes them: tensor parallel ranks are neighbours, pipeline stages
    lie farthest apart."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.tp = 2 if ranks % 2 == 0 else 1
        self.pp = 2 if ranks % (2 * self.tp) == 0 else 1
        self.dp = ranks // self.tp // self.pp
        per_stage = ranks // self.pp
        self.groups = {"world": ("default_group", list(range(ranks)))}
        for i in range(0, ranks, self.tp):
            self.groups[f"tp_{i}"] = ("tp", list(range(i, i + self.tp)))
        for s in range(self.pp):
            for k in range(self.tp):
                members = list(range(s * per_stage + k, (s + 1) * per_stage, self.tp))
                self.groups[f"dp_{s}_{k}"] = ("dp", members)
                self.groups[f"exp_{s}_{k}"] = ("exp", members)
        for p in range(per_stage if self.pp > 1 else 0):
            self.groups[f"pp_{p}"] = ("pp", list(range(p, ranks, per_stage)))

    def of(self, rank):
        return [(g, kind, members) for g, (kind, members) in self.groups.items() if rank in members]

    def metadata(self):
        return {
            "distributed_args": {"world_size": self.ranks, "tensor_model_parallel_size": self.tp,
                                 "pipeline_model_parallel_size": self.pp,
                                 "data_parallel_size": self.dp},
            "parallel_group_info": {g: {"group_name": kind, "group_rank": 0, "global_ranks": members}
                                    for g, (kind, members) in self.groups.items()},
        }


class Profile:
    """The database of one rank."""

    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.db.executescript(SCHEMA)
        self.texts = {}
        self.connection = 0
        self.task = 0

    def text(self, value):
        if value not in self.texts:
            self.texts[value] = len(self.texts) + 1
            self.db.execute("INSERT INTO STRING_IDS VALUES(?,?)", (self.texts[value], value))
        return self.texts[value]

    def put(self, table, *row):
        self.db.execute(f"INSERT INTO {table} VALUES({','.join('?' * len(row))})", row)

    def api(self, start, end, name):
        self.connection += 1
        self.put("CANN_API", start, end, 10000, 1 << 32 | 7, self.connection, self.text(name))
        return self.connection

    def kernel_task(self, start, end, stream, kind, connection):
        self.task += 1
        self.put("TASK", start, end, 0, connection, self.task, 1, self.text(kind), 4294967295, stream,
                 self.task & 0xFFFF, 4294967295)
        return self.task

    def event(self, start, end, kind, message, domain, connection=4294967295):
        self.put("MSTX_EVENTS", start, end, kind, 4294967295, 4294967295, self.text(message),
                 1 << 32 | 7, 1 << 32 | 7, self.text(domain), connection)


class Rank:
    def __init__(self, layout, rank, args, rng):
        self.layout, self.rank, self.args, self.rng = layout, rank, args, rng
        self.op_number = {}
        self.conn_id = 100000
        self.mark_id = 4000000001
        self.ops = []  # what was communicated: (step, group, name, type, start, end, peers)

    # ---- the framework and its kernels

    def framework_call(self, p, name, start, end, connection):
        self.conn_id += 1
        p.put("PYTORCH_API", str(start), str(end), 1 << 32 | 7, self.conn_id, p.text(name), 0, 0, 0, 0,
              0, 50001)
        p.put("CONNECTION_IDS", self.conn_id, connection)
        return self.conn_id

    def kernel(self, p, at, name, kind, shapes, duration):
        """A call of the framework, one of CANN, and the kernel some time later."""
        connection = p.api(at + 2000, at + 6000, "launch")
        start = at + 9000 + self.rng.randrange(3000)
        task = p.kernel_task(start, start + duration, 3, "KERNEL_AICORE", connection)
        p.put("COMPUTE_TASK_INFO", p.text(f"{kind}_{name}"), task, 8, 0, p.text("AI_CORE"), p.text(kind),
              p.text("ND;ND"), p.text("DT_BF16;DT_BF16"), p.text(shapes[0]), p.text("ND"),
              p.text("DT_BF16"), p.text(shapes[1]), 0, 0, 0)
        return self.framework_call(p, f"aten::{name}", at, at + 8000, connection), connection

    def module(self, p, at, depth, name):
        """A module of a kernel or two with children, all in a range of the domain Module."""
        start = at
        at += 1000
        forward = []
        if depth > 0:
            for i in range(2):
                at, inner = self.module(p, at, depth - 1, f"{name}.{i}")
                forward += inner
        for op, kind, shapes, flops in (("linear", "MatMulV2", ('"64,128;128,256"', '"64,256"'),
                                         2 * 64 * 128 * 256),
                                        ("add", "Add", ('"64,256;64,256"', '"64,256"'), 0)):
            if flops:
                p.event(at - 200, at + 8500, 2, f"{flops}-{op}", "mfu_flops")
            api, connection = self.kernel(p, at, op, kind, shapes, 4000 + self.rng.randrange(9000))
            forward.append((op, connection))
            at += 10000
        p.event(start, at + 500, 2, name, "Module")
        return at + 1000, forward

    def backward(self, p, at, forward):
        for op, connection in reversed(forward):
            api, bwd = self.kernel(p, at, f"{op}_backward", "Mul", ('"64,256;64,256"', '"64,256"'),
                                   3000 + self.rng.randrange(9000))
            # forward and backward of one operator share a connection of their own
            flow = 900000 + self.conn_id
            fwd_api = p.db.execute("SELECT id FROM CONNECTION_IDS WHERE connectionId = ?",
                                   (connection,)).fetchone()[0]
            p.put("CONNECTION_IDS", fwd_api, flow)
            p.put("CONNECTION_IDS", api, flow)
            at += 10000
        return at

    # ---- communication

    def communicate(self, p, step, group, kind, what, at, duration, peer=None):
        n = self.op_number.get((group, what), 0)
        self.op_number[group, what] = n + 1
        members = self.layout.groups[group][1]
        name = f"hcom_{what}__{group_id(group)}_{n}_1"
        count, dtype = {"allReduce": (1048576, 4), "allGather": (65536, 11)}.get(what, (4096, 3))
        self.ops.append((step, group, name, what, at, at + duration, members, peer))
        if p is None:
            return
        if self.args.no_comm:
            self.mark_id += 1
            message = json.dumps({"opName": f"Hccl{what[0].upper()}{what[1:]}", "groupName": group,
                                  "dataType": TYPES[dtype].lower(), "count": str(count),
                                  "streamId": str(40 + len(group))}).replace('"', '\\"')
            p.event(at - 5000, at - 4000, 2, message, "communication", self.mark_id)
            p.kernel_task(at, at + duration, 50 + len(group), "MsTx", self.mark_id)
            return
        connection = p.api(at - 9000, at - 5000, f"hccl{what}")
        self.framework_call(p, f"c10d::{what}", at - 9500, at - 4000, connection)
        op = len(self.ops)
        p.put("COMMUNICATION_OP", p.text(name), at, at + duration, connection, p.text(group), op, 0, 0,
              dtype, p.text("RING"), count, p.text(f"hcom_{what}_"), 0, len(members))
        if peer is None:
            return
        local, far = members.index(self.rank), members.index(peer)
        for kind in ("Notify_Wait", "SDMA", "Notify_Record"):
            task = p.kernel_task(at, at + duration, 5, kind, connection)
            p.put("COMMUNICATION_TASK_INFO", p.text(name), task, p.text(kind), 0, p.text(group), 0, 0,
                  local, local if kind == "SDMA" else far, 0, count, dtype, 0, op, 1, 0)

    def communicate_step(self, p, step, at):
        """The same schedule on all ranks; how long a rank waits is its own."""
        for group, kind, members in self.layout.of(self.rank):
            if kind == "pp":
                i = members.index(self.rank)
                for n in range(2):
                    if i + 1 < len(members):
                        self.communicate(p, step, group, kind, "send", at, 30000 + self.rng.randrange(5000),
                                         members[i + 1])
                    if i > 0:
                        self.communicate(p, step, group, kind, "receive", at,
                                         60000 + self.rng.randrange(9000), members[i - 1])
                    at += 100000
                continue
            for n in range(3):
                what = "allGather" if kind == "tp" else "allReduce"
                slow = self.rank == (step * 3 + n) % self.layout.ranks and n != 1
                duration = 100000 + self.rng.randrange(3000) if slow else 400000 + self.rng.randrange(20000)
                if step == 2 and n == 2 and kind == "dp":
                    duration *= 9  # this link was slow
                self.communicate(p, step, group, kind, what, at, duration)
                at += 700000 + self.rng.randrange(50000)
        return at

    # ---- marks

    def marks(self, p, at):
        for i in range(3):
            start = at + i * 40000
            for name, kind, begin, end in (("load", 2, 0, 30000 + self.rng.randrange(4000)),
                                           ("decode", 2, 4000, 12000 + self.rng.randrange(4000))):
                self.mark_id += 1
                p.event(start + begin, start + end, kind, name, "default", self.mark_id)
                if name == "load":
                    p.kernel_task(start + begin + 3000, start + end + 5000, 9, "MsTx", self.mark_id)
                else:
                    p.kernel_task(start + begin + 3500, start + end + 4000, 9, "MsTx", self.mark_id)
        at += 130000
        for suffix, shift in (("start", 0), ("stop", 9000 + self.rng.randrange(900))):
            for name in ("forward_pass", "sync")[::1 if suffix == "start" else -1]:
                self.mark_id += 1
                t = at + shift + (1000 if name == "sync" else 0)
                p.event(t, t, 3, f"{name}_{suffix}", "default", self.mark_id)
                p.kernel_task(t + 4000, t + 4000, 9, "MsTx", self.mark_id)
                self.framework_call(p, f"mstx::{name}", t - 700, t - 100, self.mark_id)
        at += 30000
        for name in ("forward_step", "backward_step", "WeightGradStore_pop"):
            self.mark_id += 1
            p.event(at, at + 9000, 2, name, "default", self.mark_id)
            p.kernel_task(at + 3000, at + 15000, 9, "MsTx", self.mark_id)
            at += 20000
        return at

    def steps(self, p):
        for step in range(1, self.args.steps + 1):
            start = T0 + step * STEP_NS + self.rng.randrange(50000)
            end = T0 + (step + 1) * STEP_NS - 50000 + self.rng.randrange(50000)
            if p is not None:
                p.put("STEP_TIME", step, start, end)
                at = self.marks(p, start + 20000)
                at, forward = self.module(p, at + 5000, 2, "Net")
                at = self.backward(p, at + 20000, forward)
                tokens = 64 * (self.rank + step)
                _, connection = self.kernel(p, at, "experts", "GroupedMatmul",
                                            (f'"{tokens},128;8,128,256;8"', f'"{tokens},256"'), 9000)
                at += 400000 * step + 25000  # a time of which launches are to blame, and no operator
                waits = p.api(at, at + 300000, "launch")
                p.kernel_task(at + 310000, at + 320000, 3, "KERNEL_AIVEC", waits)
                self.framework_call(p, "aten::late", at - 90000, at - 80000, waits)
                at += 400000
                for i in range(4):
                    copy = at + i * 150000
                    connection = p.api(copy - 3000, copy - 1000, "memcpy")
                    p.kernel_task(copy, copy + 90000 + self.rng.randrange(9000), 11, "MEMCPY_ASYNC",
                                  connection)
                p.put("AICORE_FREQ", 0, at, 1800 if self.rank % 4 else 800)
                p.put("AICORE_FREQ", 0, at + 1000, 1800)
            self.communicate_step(p, step, start + 2000000)

    # ---- what the profiler made of communication

    def times_of(self, op):
        rng = random.Random(f"{self.args.seed} {self.rank} {op[2]} {op[0]}")
        elapse = (op[5] - op[4]) / 1e6
        transit, wait = round(elapse * rng.uniform(.2, .5), 5), round(elapse * rng.uniform(.1, .4), 5)
        return {"Start Timestamp(us)": op[4] / 1000, "Elapse Time(ms)": elapse,
                "Transit Time(ms)": transit, "Wait Time(ms)": wait,
                "Synchronization Time(ms)": round(wait * rng.uniform(.2, 1), 5),
                "Idle Time(ms)": round(elapse - transit - wait, 5),
                "Wait Time Ratio": 0.25, "Synchronization Time Ratio": 0.125}

    def bands_of(self, op):
        rng = random.Random(f"band {self.args.seed} {self.rank} {op[2]} {op[0]}")
        out = {}
        for kind in ("RDMA", "HCCS", "PCIE", "SDMA", "SIO"):
            used = kind in ("HCCS", "SDMA")
            size, time = (rng.uniform(1, 60), rng.uniform(.05, .4)) if used else (0, 0)
            sizes = {"16.0": [rng.randrange(1, 5), rng.uniform(.01, .1)],
                     "2.5": [rng.randrange(1, 5), rng.uniform(.01, .1)]} if used else {}
            out[kind] = {"Transit Size(MB)": size, "Transit Time(ms)": time,
                         "Bandwidth(GB/s)": round(size / time, 4) if time else 0,
                         "Large Packet Ratio": 0.5 if used else 0, "Size Distribution": sizes}
        return out

    def links_of(self, op):
        rng = random.Random(f"link {self.args.seed} {self.rank} {op[2]} {op[0]}")
        members, me = op[6], op[6].index(self.rank)
        out = {}
        for far in range(len(members)):
            if op[7] is not None and far != me and members[far] != op[7]:
                continue
            size, time = rng.uniform(.5, 9), rng.choice([0, rng.uniform(.01, .3)]) if far == me \
                else rng.uniform(.01, .3)
            out[f"{me}-{far}"] = {"Transport Type": "LOCAL" if far == me else "HCCS",
                                  "Transit Time(ms)": time, "Transit Size(MB)": size,
                                  "Bandwidth(GB/s)": round(size / time, 4) if time else 0,
                                  "Op Name": f"{op[2]}@{double_hash(op[1])}"}
        return out

    def kind_of(self, op):
        return "p2p" if op[3] in ("send", "receive") else "collective"

    def matrix(self):
        """The first operation of each kind, group and step, and the sum of all."""
        out = {}
        for op in self.ops:
            key = (op[0], self.kind_of(op), f"{op[3]}-top1@{double_hash(op[1])}")
            out.setdefault(key, self.links_of(op))
            total = out.setdefault((*key[:2], f"{op[3]}-total@{double_hash(op[1])}"), {})
            for link, row in self.links_of(op).items():
                sum_row = total.setdefault(link, dict(row, **{"Transit Time(ms)": 0, "Transit Size(MB)": 0}))
                sum_row["Transit Time(ms)"] += row["Transit Time(ms)"]
                sum_row["Transit Size(MB)"] += row["Transit Size(MB)"]
        return out

    def step_trace(self, step):
        rng = random.Random(f"trace {self.args.seed} {self.rank} {step}")
        computing, exposed, overlapped = rng.uniform(5000, 9000), rng.uniform(1000, 3000), rng.uniform(500, 900)
        free, bubble = rng.uniform(4000, 6000), rng.uniform(10, 90)
        values = [computing, exposed, overlapped, exposed + overlapped, free,
                  computing + exposed + free - bubble, bubble, exposed - bubble, rng.uniform(50, 90)]
        return [round(v, 3) for v in values]


def write_analysis(rank, path):
    db = sqlite3.connect(path)
    db.executescript(ANALYSIS_SCHEMA)

    def put(table, *row):
        db.execute(f"INSERT INTO {table} VALUES({','.join('?' * len(row))})", row)

    for op in rank.ops:
        group = str(double_hash(op[1]))
        t = rank.times_of(op)
        put("CommAnalyzerTime", op[2], group, *[t[k] for k in list(t)[:6]], f"step{op[0]}",
            rank.kind_of(op))
        for kind, b in rank.bands_of(op).items():
            for size, (count, total) in b["Size Distribution"].items():
                put("CommAnalyzerBandwidth", op[2], group, kind, *list(b.values())[:4], float(size),
                    count, total, f"step{op[0]}", rank.kind_of(op))
    for (step, kind, name), links in rank.matrix().items():
        for link, row in links.items():
            put("CommAnalyzerMatrix", *name.split("@"), *link.split("-"), row["Transport Type"],
                row["Transit Size(MB)"], row["Transit Time(ms)"], row["Bandwidth(GB/s)"],
                f"step{step}", kind, row["Op Name"].split("@")[0])
    for step in range(1, rank.args.steps + 1):
        put("StepTraceTime", 0, str(step), *rank.step_trace(step))
    db.commit()
    db.close()


def write_text(rank, out):
    times = {}
    for op in rank.ops:
        times.setdefault(f"step{op[0]}", {"p2p": {}, "collective": {}})[rank.kind_of(op)][
            f"{op[2]}@{double_hash(op[1])}"] = {"Communication Time Info": rank.times_of(op),
                                                "Communication Bandwidth Info": rank.bands_of(op)}
    matrix = {}
    for (step, kind, name), links in rank.matrix().items():
        matrix.setdefault(f"step{step}", {"p2p": {}, "collective": {}})[kind][name] = links
    for name, value in (("communication.json", times), ("communication_matrix.json", matrix)):
        with open(f"{out}/{name}", "w") as f:
            json.dump(value, f)
    with open(f"{out}/step_trace_time.csv", "w") as f:
        f.write("Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,"
                "Stage,Bubble,Communication(Not Overlapped and Exclude Receive),Preparing\n")
        for step in range(1, rank.args.steps + 1):
            f.write(f"0,{step}," + ",".join(str(v) for v in rank.step_trace(step)) + "\n")


def write_rank(layout, number, args):
    rank = Rank(layout, number, args, random.Random(f"{args.seed} {number}"))
    top = f"{args.dir}/node0_{20260101000000000 + number}_ascend_pt"
    out = f"{top}/ASCEND_PROFILER_OUTPUT"
    device = f"{top}/PROF_000001_20260101000000_ABCDEF/device_0"
    os.makedirs(out)
    os.makedirs(device)
    metadata = layout.metadata()
    for path, value in ((f"{top}/profiler_info_{number}.json", {}),
                        (f"{top}/profiler_metadata.json", metadata),
                        (f"{device}/info.json.0", {"DeviceInfo": [{"ai_core_num": 24,
                                                                   "aic_frequency": "1800"}]})):
        with open(path, "w") as f:
            json.dump(value, f)
    if args.text:
        rank.steps(None)
        return write_text(rank, out)
    p = Profile(f"{out}/ascend_pytorch_profiler_{number}.db")
    if not args.no_comm:
        p.db.executescript(COMM_SCHEMA)
    for key, value in metadata.items():
        p.put("META_DATA", key, json.dumps(value))
    p.put("RANK_DEVICE_MAP", number, number % 8)
    p.put("HOST_INFO", str(1000 + number // 8), f"node{number // 8}")
    for row in TYPES.items():
        p.put("ENUM_HCCL_DATA_TYPE", *row)
    rank.steps(p)
    p.db.commit()
    p.db.close()
    write_analysis(rank, f"{out}/analysis.db")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--no-comm", dest="no_comm", action="store_true")
    args = parser.parse_args()
    layout = Layout(args.ranks)
    for number in range(args.ranks):
        write_rank(layout, number, args)


if __name__ == "__main__":
    main()
