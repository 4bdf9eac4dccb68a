# SPDX-License-Identifier: MIT
"""A program of mpi4py of which one rank, or two, or none, makes the others wait, for a known reason.

    wait_mpi4py.py PATTERN CAUSE RANK[,CAUSE,RANK] MS STEPS WORK_MS

The arguments and what the program prints are those of wait_mpi.
"""
import gc
import os
import sys
import tempfile
import threading
import time

from mpi4py import MPI

pattern, named = sys.argv[1], [sys.argv[2], *sys.argv[3].split(",")]
extra, steps, work_s = float(sys.argv[4]) / 1000, int(sys.argv[5]), float(sys.argv[6]) / 1000
comm = MPI.COMM_WORLD
rank, ranks = comm.rank, comm.size
own = [c for c, r in zip(named[::2], named[1::2]) if int(r) == rank]  # the causes of this rank
following, previous = (rank + 1) % ranks, (rank + ranks - 1) % ranks
a, b, c, d = (bytearray(4096) for _ in range(4))
slow_pipe = os.pipe()
kept = [[i] for i in range(30000)] if "gc" in own else []


def compute(duration):
    until = time.thread_time() + duration
    while time.thread_time() < until:
        sum(range(200))


def save():
    with tempfile.NamedTemporaryFile(dir=os.environ.get("TMPDIR", "/tmp")) as f:
        until = time.monotonic() + extra
        while time.monotonic() < until:
            f.seek(0)
            f.write(bytes(1 << 20))
            f.flush()
            os.fsync(f.fileno())


def read():
    """Reads a pipe whose other end writes slowly, as a file system far away does."""
    threading.Timer(extra, os.write, (slow_pipe[1], b"x")).start()
    os.read(slow_pipe[0], 1)


def collect():
    until = time.thread_time() + extra
    while time.thread_time() < until:
        gc.collect()


CAUSES = {"compute": lambda step: compute(extra), "sleep": lambda step: time.sleep(extra), "write": lambda step: save(),
          "read": lambda step: read(), "gc": lambda step: collect(),
          "bursts": lambda step: compute(8 * extra if step % 8 == 5 else 0),
          "late": lambda step: compute(extra if step >= steps // 2 else 0)}


def work(step):
    since = time.monotonic()
    compute(work_s)
    for name in own:
        CAUSES.get(name, lambda step: None)(step)
    return time.monotonic() - since


def reduce(step):
    spent = work(step)
    comm.Allreduce(a, b)
    return spent


def exchange(step):
    spent = work(step)
    requests = [comm.Irecv(c, previous, 1), comm.Irecv(d, following, 2), comm.Isend(a, following, 1),
                comm.Isend(b, previous, 2)]
    MPI.Request.Waitall(requests)
    return spent


def objects(step):
    """Lower-case calls pickle their objects."""
    spent = work(step)
    comm.allreduce({"step": step}["step"])
    comm.bcast([step], 0)
    return spent


meet = {"py-reduce": reduce, "py-exchange": exchange, "py-objects": objects}[pattern]
since = time.monotonic()
worked = sum(meet(step) for step in range(steps))
comm.Barrier()
if rank == 0:
    print(f"seconds {time.monotonic() - since:.4f}", flush=True)
print(f"work {rank} {worked:.4f}", flush=True)
