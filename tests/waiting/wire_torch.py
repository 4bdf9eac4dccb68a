# SPDX-License-Identifier: MIT
"""Ranks that compute and reduce over gloo:  wire_torch.py STEPS FLOATS"""
import sys
import time

import torch
import torch.distributed as dist

steps, floats = map(int, sys.argv[1:])
dist.init_process_group("gloo")
data = torch.ones(floats)
for step in range(steps):
    until = time.monotonic() + 0.01
    while time.monotonic() < until:
        pass
    dist.all_reduce(data)
    data /= dist.get_world_size()
dist.destroy_process_group()
