# SPDX-License-Identifier: MIT
"""Two processes of torch.distributed over gloo; gloo_app.py RANK RENDEZVOUS-FILE."""
import sys

import torch
import torch.distributed as dist

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
x = torch.full((1024,), float(rank + 1))
for _ in range(3):
    dist.all_reduce(x)
assert x[0] == 12
y = torch.zeros(16, dtype=torch.int64)
if rank == 0:
    dist.send(y + 7, dst=1)
else:
    dist.recv(y, src=0)
    assert y[3] == 7
dist.broadcast(y, 0)
dist.all_gather([torch.zeros(4), torch.zeros(4)], torch.ones(4))
work = dist.all_reduce(x, async_op=True)
work.wait()
dist.barrier()
dist.destroy_process_group()
print("good")
