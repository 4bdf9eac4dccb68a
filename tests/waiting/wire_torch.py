# SPDX-License-Identifier: MIT
"""Ranks that compute, then exchange numbers over gloo:  wire_torch.py PATTERN STEPS FLOATS

PATTERN is the way in which they meet: allreduce, halo (both neighbours of a ring) or gather.
"""
import sys
import time

import torch
import torch.distributed as dist

pattern, steps, floats = sys.argv[1], *map(int, sys.argv[2:])
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
data = torch.ones(floats)
parts = [torch.empty(floats // ranks) for _ in range(ranks)]


def allreduce():
    dist.all_reduce(data)
    data.div_(ranks)


def halo():
    following, previous, half = (rank + 1) % ranks, (rank - 1) % ranks, floats // 2
    works = [dist.irecv(data[:half].clone(), previous, tag=1), dist.irecv(data[half:].clone(), following, tag=2),
             dist.isend(data[:half], following, tag=1), dist.isend(data[half:], previous, tag=2)]
    for work in works:
        work.wait()


def gather():
    dist.all_gather(parts, data[:floats // ranks])


meet = {"allreduce": allreduce, "halo": halo, "gather": gather}[pattern]
for step in range(steps):
    until = time.thread_time() + 0.01
    while time.thread_time() < until:
        pass
    meet()
dist.destroy_process_group()
