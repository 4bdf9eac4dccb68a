# SPDX-License-Identifier: MIT
"""DistributedDataParallel over gloo; gloo_ddp.py RANK RANKS RENDEZVOUS-FILE HOW: says what it learnt."""
import copy
import hashlib
import io
import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

rank, ranks, meet, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
dist.init_process_group("gloo", init_method=f"file://{meet}", rank=rank, world_size=ranks)
torch.manual_seed(7)
torch.set_num_threads(1)
first = torch.nn.Embedding(50, 64, sparse=True) if how == "sparse" else torch.nn.Linear(64, 64)
net = torch.nn.Sequential(first, torch.nn.Tanh(), torch.nn.Linear(64, 3))
model = torch.nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=how == "view")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
random = torch.Generator().manual_seed(rank)
if how == "own":
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)


def train(step):
    if how == "late" and step == 3:
        model.register_comm_hook(None, default_hooks.allreduce_hook)
    optimizer.zero_grad(set_to_none=how != "view")
    if how == "sparse":
        x = torch.randint(0, 50, (4, 5), generator=random)
    else:
        x = torch.randn(4, 64, generator=random)
    model(x).pow(2).sum().backward()
    optimizer.step()


if how.startswith("join"):  # the last rank has less to do, and the others share what is left
    if how == "join-later":
        train(0)
    with model.join(divide_by_initial_world_size=how == "join-all"):
        for step in range(6 - 2 * (rank == ranks - 1)):
            train(step)
else:
    for step in range(6):
        train(step)
if how == "late":
    try:
        model.register_comm_hook(None, default_hooks.allreduce_hook)
        sys.exit("a second hook was accepted")
    except RuntimeError:
        pass
twin = copy.deepcopy(model)  # as programs do to keep the best one
if how != "own":  # its hook is the program's affair
    torch.save(model, io.BytesIO())
assert all(torch.equal(p, q) for p, q in zip(twin.parameters(), model.parameters()))
learnt = b"".join(p.detach().numpy().tobytes() for p in net.parameters())
dist.barrier()
dist.destroy_process_group()
print(how, rank, hashlib.sha256(learnt).hexdigest())
