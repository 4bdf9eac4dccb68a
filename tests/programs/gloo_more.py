# SPDX-License-Identifier: MIT
"""Every kind of call of torch.distributed, over gloo; gloo_more.py RANK RENDEZVOUS-FILE."""
import sys
import time

import torch
import torch.distributed as dist

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
x = torch.ones(1024)


def parts(n=2):
    return [torch.zeros(4) for _ in range(n)]


dist.reduce(x, 0)
dist.broadcast(x, src=1)
dist.all_reduce(x, op=dist.ReduceOp.MAX)
dist.all_gather(parts(), torch.ones(4))
dist.gather(torch.ones(4), parts() if rank == 0 else None, 0)
dist.scatter(torch.ones(4), parts() if rank == 0 else None, 0)
try:
    dist.all_reduce("no tensor")
    sys.exit("a wrong argument was accepted")
except (TypeError, AttributeError, RuntimeError, ValueError):
    pass
# asynchronous: lasts until it was waited for; one that nobody waits for
work = dist.all_reduce(x, async_op=True)
time.sleep(0.2)
assert work.wait() is not False
work = dist.all_reduce(x, async_op=True)
del work
# a group by its place among the arguments
group = dist.new_group([0, 1])
dist.all_reduce(x, dist.ReduceOp.SUM, group)
dist.barrier(group)
# between two, at once and by batches
if rank == 0:
    dist.send(x, 1)
    dist.isend(x, 1).wait()
else:
    dist.recv(x, 0)
    dist.irecv(x, 0).wait()
got = torch.zeros(1024)
batch = [dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, got, 1 - rank)]
for work in dist.batch_isend_irecv(batch):
    work.wait()
assert torch.equal(got, x) or rank == 1
# objects
objects = [None, None]
dist.all_gather_object(objects, {"rank": rank})
assert objects[1] == {"rank": 1}
objects = [rank]
dist.broadcast_object_list(objects, 0)
assert objects == [0]
objects = [None]
dist.scatter_object_list(objects, ["a", "b"], 0)
assert objects == ["ab"[rank]]
dist.barrier()
dist.destroy_process_group()
print("good")
