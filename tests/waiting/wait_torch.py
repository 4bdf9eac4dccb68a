# SPDX-License-Identifier: MIT
"""A training over gloo of which one rank, or none, makes the others wait, for a known reason.

    wait_torch.py PATTERN CAUSE[+CAUSE] RANK[+RANK] MS STEPS RANKS RENDEZVOUS-FILE

The process is one rank (environment RANK, or that of mpirun).  PATTERN is the way in which ranks meet; each culprit adds
about MS milliseconds to each step by its cause.  Patterns `mixed-...` use mpi4py as well.  Rank 0 prints the wall time
of its steps in seconds, and each rank for how long it worked.
"""
import gc
import os
import signal
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist
from torch import nn

pattern, cause = sys.argv[1:3]
steps, ranks = int(sys.argv[5]), int(sys.argv[6])
extra = float(sys.argv[4]) / 1000
meet, rank = sys.argv[7], int(os.environ.get("RANK") or os.environ["OMPI_COMM_WORLD_RANK"])
own = [c for c, r in zip(cause.split("+"), sys.argv[3].split("+")) if int(r) == rank]  # the causes of this rank
WIDTH, BATCH, HOGS = 256, 48, 2
torch.set_num_threads(1)
torch.manual_seed(3)
if pattern.startswith("mixed"):
    import numpy
    from mpi4py import MPI
asleep = "WAIT_ASLEEP" in os.environ  # work is sleeping, as far as it can be
if asleep:
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
dist.init_process_group("gloo", init_method=f"file://{meet}", rank=rank, world_size=ranks)


def is_slow(name):
    return name in own


def compute(duration):
    if asleep:
        return time.sleep(duration)
    x = torch.ones(64, 64)
    until = time.thread_time() + duration
    while time.thread_time() < until:
        x = x @ x * 0.01


class Samples(torch.utils.data.Dataset):
    """Random inputs; one of the culprit takes long to read."""

    def __len__(self):
        return 1000 * size

    def __getitem__(self, _):
        if is_slow("loader"):
            time.sleep(extra / size)
        return torch.randn(WIDTH)


def share_cpu():
    """Leaves the process one CPU, and shares it with processes that do nothing but compute."""
    cpu = rank % os.cpu_count()
    os.sched_setaffinity(0, {cpu})
    made = []
    for _ in range(HOGS):
        pid = os.fork()
        if pid == 0:
            while os.getppid() != 1:
                sum(range(10000))
            os._exit(0)
        made.append(pid)
    return made


def save():
    with tempfile.NamedTemporaryFile(dir=os.environ.get("TMPDIR", "/tmp")) as f:
        until = time.monotonic() + extra
        while time.monotonic() < until:
            f.seek(0)
            torch.save(torch.zeros(100000), f)
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


CAUSES = {"compute": lambda step: compute(extra), "sleep": lambda step: time.sleep(extra), "gc": lambda step: collect(),
          "write": lambda step: save(), "read": lambda step: read(),
          "bursts": lambda step: compute(8 * extra if step % 8 == 5 else 0),
          "late": lambda step: compute(extra if step >= steps // 2 else 0)}


def misbehave(step):
    for name in own:
        if name in CAUSES:
            CAUSES[name](step)


slow_pipe = os.pipe()
size = BATCH * (6 if is_slow("batch") else 1)
layers = [part for _ in range(2) for part in (nn.Linear(WIDTH, WIDTH), nn.Tanh())]
if is_slow("gc"):
    kept = [[i] for i in range(30000)]  # what a collection has to look at
net = nn.Sequential(*layers, nn.Linear(WIDTH, WIDTH))
if pattern == "fsdp":
    from torch.distributed.fsdp import fully_shard

    mesh = dist.device_mesh.init_device_mesh("cpu", (ranks,))
    for part in net:
        if isinstance(part, nn.Linear):
            fully_shard(part, mesh=mesh)
    fully_shard(net, mesh=mesh)
model = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.3) if pattern in ("ddp", "mixed-ddp") else net
optimizer = torch.optim.SGD(net.parameters(), 0.01)
more = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(24)]) if is_slow("layers") else None
data = iter(torch.utils.data.DataLoader(Samples(), batch_size=size))


def learn(x):
    h = model(x)
    if more is not None:
        h = more(h)
    h.pow(2).mean().backward()


def reduce_gradients():
    for p in net.parameters():
        dist.all_reduce(p.grad)


def reduce_later():
    works = [dist.all_reduce(p.grad, async_op=True) for p in net.parameters()]
    for work in works:
        work.wait()


def reduce_by_mpi():
    for p in net.parameters():
        total = numpy.empty_like(p.grad.numpy())
        MPI.COMM_WORLD.Allreduce(p.grad.numpy(), total)
        p.grad.copy_(torch.from_numpy(total))


def along_stages(x, step):
    """Each rank is a stage: forward from the first to the last rank, gradients back."""
    if rank > 0:
        dist.recv(x, rank - 1)
    x = x[:BATCH]
    h = net(x) if more is None else more(net(x))
    misbehave(step)
    h.pow(2).mean().backward()
    if rank + 1 < ranks:
        dist.send(torch.ones(BATCH, WIDTH), rank + 1)
    g = torch.ones(BATCH, WIDTH)
    if rank + 1 < ranks:
        dist.recv(g, rank + 1)
    if rank > 0:
        dist.send(g, rank - 1)


def in_parts(x):
    """Tensor parallel: each layer ends in an all-reduce of its partial results."""
    h = x if is_slow("batch") else x[:BATCH]
    for part in net:
        h = part(h)
        if isinstance(part, nn.Linear):
            shared = h.detach()[:BATCH].clone()
            dist.all_reduce(shared)
    if more is not None:
        h = more(h)
    h.pow(2).mean().backward()


def ready():
    """Returns for how long this thread ran or was ready to run, in seconds."""
    with open("/proc/thread-self/schedstat") as f:
        return sum(map(int, f.read().split()[:2])) / 1e9


hogs, ready_before = [], 0
since = time.monotonic()
for step in range(steps):
    if step == 1:
        since, ready_before = time.monotonic(), ready()
        if is_slow("cpu"):
            hogs = share_cpu()
    x = next(data)
    optimizer.zero_grad()
    if pattern == "pipeline":
        along_stages(torch.ones(BATCH, WIDTH) if rank > 0 else x, step)
    else:
        misbehave(step)
        in_parts(x) if pattern == "tensor" else learn(x)
        if pattern == "manual":
            reduce_gradients()
        elif pattern == "async":
            reduce_later()
        elif pattern == "tensor":
            dist.all_reduce(torch.ones(8))
        elif pattern == "mixed-ddp":  # gradients by gloo, figures by MPI
            MPI.COMM_WORLD.allreduce(step)
        elif pattern == "mixed-mpi":
            reduce_by_mpi()
    optimizer.step()
worked = ready() - ready_before
dist.barrier()
if rank == 0:
    print(f"seconds {time.monotonic() - since:.4f}", flush=True)
print(f"work {rank} {worked:.4f}", flush=True)
for pid in hogs:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
dist.destroy_process_group()
