# SPDX-License-Identifier: MIT
"""Functional collectives and compiled regions over gloo; gloo_functional.py RANK RENDEZVOUS-FILE."""
import shutil
import sys
import time
import warnings

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

warnings.simplefilter("ignore")
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
world, x = dist.group.WORLD, torch.full((8,), float(rank + 1))


def equal(got, wanted):
    assert torch.equal(torch.as_tensor(got + 0), torch.tensor(wanted)), (got, wanted)


# eager: each result is waited for where it is read
late = functional.all_reduce(x, "sum", world)
time.sleep(0.3)
equal(late, [3.0] * 8)
equal(functional.all_reduce(x, "max", world), [2.0] * 8)
equal(functional.broadcast(x, 1, world), [2.0] * 8)
equal(functional.all_gather_tensor(x, 0, world), [1.0] * 8 + [2.0] * 8)
equal(functional.reduce_scatter_tensor(x, "sum", 0, world), [3.0] * 4)
equal(functional.all_to_all_single(x, None, None, world), [1.0] * 4 + [2.0] * 4)
both = functional.all_reduce_coalesced([x, x[:2]], "sum", world)
equal(both[0], [3.0] * 8)
equal(both[1], [3.0] * 2)


# compiled: the collective of a region without a break is an operator of its graph
def region(t):
    t = t * 2
    dist.all_reduce(t, op=dist.ReduceOp.MIN)
    return t + 1


# inductor makes machine code and needs a compiler for it
for backend in ["eager", "aot_eager"] + ["inductor"] * (shutil.which("g++") is not None):
    compiled = torch.compile(region, backend=backend, fullgraph=True)
    for _ in range(2):
        equal(compiled(x), [3.0] * 8)
dist.barrier()
dist.destroy_process_group()
print("good")
