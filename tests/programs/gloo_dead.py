# SPDX-License-Identifier: MIT
"""One of two ranks over gloo comes seven seconds late; gloo_dead.py RANK RENDEZVOUS-FILE HOW."""
import sys
import time

import torch
import torch.distributed as dist

rank, meet, how = int(sys.argv[1]), sys.argv[2], sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{meet}", rank=rank, world_size=2)
x = torch.ones(16)
if how == "ddp":
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
for _ in range(3):
    dist.all_reduce(x)


def late(who):
    if rank == who:
        time.sleep(7)


if how == "collective":
    late(1)
    dist.all_reduce(x)
elif how == "receive":
    late(0)
    if rank == 0:
        dist.send(x, 1)
    else:
        dist.recv(x, 0)
elif how == "waited":
    late(1)
    dist.all_reduce(x, async_op=True).wait()
elif how == "not-waited":  # nobody hangs: nobody waits
    work = dist.all_reduce(x, async_op=True) if rank == 0 else None
    time.sleep(4)
    work = work or dist.all_reduce(x, async_op=True)
    work.wait()
elif how == "ddp":
    late(1)
    model(x).sum().backward()
dist.barrier()
dist.destroy_process_group()
