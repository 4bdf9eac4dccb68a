#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Opening traces of PyTorch's profiler, beside HolisticTraceAnalysis where there is a Python with it.

    bench_traces.py MSPROBE [PYTHON_WITH_HTA]     MANY=64 sets the number of files of the last row

Traces are generated: operators, launches with their flows and kernels with the members that the profiler
writes.  CPU and wall time and the largest resident memory are those of the whole process.
"""
import gzip
import os
import random
import subprocess
import sys
import tempfile
import time

OP = ('{{"ph": "X", "cat": "cpu_op", "name": "aten::op_{name}", "pid": 4242, "tid": {tid},\n'
      '    "ts": {ts}.{part:03d}, "dur": 19.250,\n    "args": {{\n      "External id": {at}, '
      '"Record function id": 0, "Sequence number": {at}, "Fwd thread id": 0, "Ev Idx": {at}, '
      '"Input Dims": [[64, {at}], [128, 64], []], "Input type": ["float", "float", "Scalar"]\n    }}\n  }}')
LAUNCH = ('{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4242, "tid": {tid},\n'
          '    "ts": {ts}.{part:03d}, "dur": 4.125,\n    "args": {{\n      "External id": {at}, "cbid": 211, '
          '"correlation": {at}\n    }}\n  }}')
FLOW = ('{{"ph": "s", "id": {at}, "pid": 4242, "tid": {tid}, "ts": {ts}.{part:03d}, "cat": "ac2g", '
        '"name": "ac2g"}}')
KERNEL = ('{{"ph": "X", "cat": "kernel", "name": "void kernel_{name}<float, 4>(float*, int)", "pid": 0, '
          '"tid": 7,\n    "ts": {ts}.{part:03d}, "dur": 3.500,\n    "args": {{\n      "External id": {at}, '
          '"queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {at}, '
          '"registers per thread": 90, "shared memory": 49152, "blocks per SM": 0.5925926, '
          '"grid": [64, 1, 1], "block": [128, 1, 1]\n    }}\n  }}')
STEP = ('{{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{name}", "pid": 4242, "tid": 4242,\n'
        '    "ts": {ts}.000, "dur": {part}.000, "args": {{"External id": {at}}}\n  }}')
STEPS = 5


def write(path, rank, events):
    draw = random.Random(rank)
    length = events // STEPS * 5
    with gzip.open(path, "wt", compresslevel=1) if path.endswith(".gz") else open(path, "w") as f:
        f.write(f'{{\n  "schemaVersion": 1,\n  "distributedInfo": {{"backend": "nccl", "rank": {rank}, '
                f'"world_size": 2}},\n  "traceEvents": [\n')
        f.write(",\n".join(STEP.format(name=i, ts=10**9 + i * length, part=length, at=i)
                           for i in range(STEPS)))
        for at in range(events - STEPS):
            how = (OP, LAUNCH, FLOW, KERNEL)[at % 4]
            f.write(",\n" + how.format(name=draw.randrange(200), tid=4242, ts=10**9 + at * 5,
                                       part=draw.randrange(1000), at=at // 4 + 1))
        f.write("\n  ]\n}\n")


def measure(name, events, command):
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = child.stderr.read().decode()
    _, status, use = os.wait4(child.pid, 0)
    wall = time.monotonic() - begin
    if status != 0:
        print(f"{name:34} failed: {said.strip()[-300:]}")
        return 1
    cpu = use.ru_utime + use.ru_stime
    print(f"{name:34} {events / cpu / 1e6:6.2f} M events/s  cpu {cpu:7.2f} s  wall {wall:7.2f} s  "
          f"memory {use.ru_maxrss / 1024:6.0f} MiB", flush=True)
    return 0


HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
t = TraceAnalysis(trace_files={int(i): p for i, p in enumerate(sys.argv[1:])})
t.get_temporal_breakdown(visualize=False)
"""


def main():
    msprobe, hta = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
    many, bad = int(os.environ.get("MANY", "64")), 0
    with tempfile.TemporaryDirectory() as folder:
        for end in (".json", ".json.gz"):
            files = [f"{folder}/rank-{rank}{end}" for rank in range(2)]
            for rank, path in enumerate(files):
                write(path, rank, 150000)
            size = sum(os.path.getsize(f) for f in files) >> 20
            bad |= measure(f"2 x 150,000 events, {end} ({size} MiB)", 300000,
                           [msprobe, "import", *files, "-o", f"{folder}/run.db"])
        if hta:
            bad |= measure("  HolisticTraceAnalysis", 300000, [hta, "-c", HTA, *files])
        os.mkdir(f"{folder}/many")
        for rank in range(many):
            write(f"{folder}/many/rank-{rank}.json", rank, 10000)
        bad |= measure(f"{many:,} x 10,000 events", many * 10000,
                       [msprobe, "import", f"{folder}/many", "-o", f"{folder}/run.db"])
    return bad


sys.exit(main())
