# SPDX-License-Identifier: MIT
"""Functional collectives and compiled ones, over gloo; gloo_functional.py RANK RENDEZVOUS-FILE BACKEND."""
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

rank, backend = int(sys.argv[1]), sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
world = dist.group.WORLD
x = torch.full((8,), float(rank + 1))

# the result is waited for when it is looked at
reduced = functional.all_reduce(x, "sum", world)
time.sleep(0.2)
assert (reduced + 0).tolist() == [3.0] * 8
assert (functional.all_gather_tensor(x, 0, world) + 0).tolist() == [1.0] * 8 + [2.0] * 8
assert (functional.reduce_scatter_tensor(x, "max", 0, world) + 0).tolist() == [2.0] * 4
assert (functional.broadcast(x, 1, world) + 0).tolist() == [2.0] * 8
assert (functional.all_to_all_single(x, [4, 4], [4, 4], world) + 0).tolist() == [1.0] * 4 + [2.0] * 4
both = functional.all_reduce_coalesced([x, x], "sum", world)
assert (both[0] + both[1]).tolist() == [6.0] * 8
dist.barrier()


# what a compiler makes of both kinds
@torch.compile(backend=backend)
def step(v):
    v = v * 2
    dist.all_reduce(v)
    return functional.all_reduce(v + 1, "sum", world) * 2


for _ in range(3):
    assert step(x).tolist() == [28.0] * 8
print("good")
