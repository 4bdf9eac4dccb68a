# SPDX-License-Identifier: MIT
"""A small training under PyTorch's profiler that wastes time in one way or in none.

    wasteful.py CAUSE OUT SEED      clean, data, transform, gc_call, gc_many
"""
import gc
import random
import sys
import time

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

cause, out, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
draw = random.Random(seed)
torch.manual_seed(seed)
torch.set_num_threads(1)
width, depth, batch = draw.choice([256, 384, 512]), draw.choice([2, 3, 4]), draw.choice([64, 128, 256])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(width, 2 * width), nn.Linear(2 * width, width), nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x + self.down(torch.relu(self.up(x))))


class Slow(Dataset):
    """Samples that wait for a disk, or are worked on one by one."""

    def __len__(self):
        return 100000

    def __getitem__(self, i):
        x = torch.randn(width)
        if cause == "data":
            time.sleep(0.0004 * draw.choice([1, 2]))
        for _ in range(12 if cause == "transform" else 0):
            x = torch.roll(x, 1).sort()[0] + 1
        return x, i % 10


class Ready(Dataset):
    """Batches that lie in memory."""
    batches = [(torch.randn(batch, width), torch.randint(0, 10, (batch,))) for _ in range(4)]

    def __len__(self):
        return 1000

    def __getitem__(self, i):
        return self.batches[i % 4]


is_slow = cause in ("data", "transform")
loader = iter(DataLoader(Slow(), batch_size=batch) if is_slow else DataLoader(Ready(), batch_size=None))
model = nn.Sequential(*[Block() for _ in range(depth)], nn.Linear(width, 10))
optimizer = torch.optim.AdamW(model.parameters())
held = [[i, {i: [i]}] for i in range(150000 if cause.startswith("gc") else 0)]
if cause == "gc_many":
    gc.set_threshold(50, 2, 2)
config = torch._C._profiler._ExperimentalConfig
knows_gc = "record_python_gc_info" in (config.__init__.__doc__ or "")
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=schedule(wait=1, warmup=1, active=6),
             on_trace_ready=lambda p: p.export_chrome_trace(out),
             with_stack=cause.startswith("gc") or seed % 2 == 0,
             **({"experimental_config": config(record_python_gc_info=True)} if knows_gc else {})) as p:
    for _ in range(9):
        x, y = next(loader)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if cause == "gc_call":
            gc.collect()
        if cause == "gc_many":
            held.append([[i] for i in range(20000)])
        p.step()
