#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Operations of profiled steps against PyTorch's own counter: trace_flops.py MSPROBE FOLDER.

Trainings of several kinds run once under the counter and once under the profiler; the second answer is what
torch.utils.flop_counter counts for one step.  With checkpoints the machine executes more than the model has.
"""
import json
import subprocess
import sys

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

msprobe, folder = sys.argv[1:3]
PEAK, STEPS = 1e12, 3


class Checkpointed(nn.Module):
    def __init__(self, inner, reentrant):
        super().__init__()
        self.inner, self.reentrant = inner, reentrant

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=self.reentrant)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.all = nn.Linear(64, 192)
        self.out = nn.Linear(64, 64)

    def forward(self, x):
        q, k, v = self.all(x).view(*x.shape[:2], 3, 4, 16).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=False)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Products(nn.Module):
    """bmm, matmul of several ranks, and a product without gradient."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(4, 32, 48)), nn.Parameter(torch.randn(48, 24))

    def forward(self, x):
        with torch.no_grad():
            x = x @ x.mT
        return torch.bmm(x, self.a) @ self.b


def mlp():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))


# Without groups: the counter takes a weight gradient of a grouped convolution for one without.
def convolutions():
    return nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, dilation=2),
                         nn.ReLU(), nn.ConvTranspose2d(16, 4, 3, stride=2), nn.Conv2d(4, 4, 3))


image = torch.randn(2, 3, 33, 29, requires_grad=True)
cases = {
    # kind: model, input, the counter's operations over those of the model, over those of the machine
    "mlp": (mlp(), torch.randn(16, 64), 1, 1),
    "mlp of three dimensions": (mlp(), torch.randn(4, 16, 64, requires_grad=True), 1, 1),
    # The backward pass of attention computes the scores again, which the model does not have.
    "attention": (Attention(), torch.randn(2, 20, 64), 3665920 / 3563520, 1),
    "products": (Products(), torch.randn(4, 32, 8), 1, 1),
    "convolutions": (convolutions(), image, 1, 1),
    "reentrant checkpoints": (Checkpointed(mlp(), True), torch.randn(16, 64, requires_grad=True), 4 / 3, 1),
    # A checkpoint stops within its last operator, before that executes; the trace shows it as begun.
    "checkpoints": (Checkpointed(mlp(), False), torch.randn(16, 64, requires_grad=True), 7 / 6, 7 / 8),
}


def step(model, x):
    model(x).sum().backward()


failed = 0
for name, (model, x, of_model, of_machine) in cases.items():
    with FlopCounterMode(display=False) as counter:
        step(model, x)
    want = counter.get_total_flops()
    path = f"{folder}/{name.replace(' ', '_')}.json"
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True,
                 schedule=schedule(wait=0, warmup=1, active=STEPS), on_trace_ready=lambda p: p.export_chrome_trace(path)) as p:
        for _ in range(STEPS + 1):
            step(model, x)
            p.step()
    report = json.loads(subprocess.run([msprobe, "report", "--format", "json", "--peak", str(PEAK), path],
                                       capture_output=True, check=True).stdout)
    seconds = [s["duration_ns"] / 1e9 for s in report["steps"]]
    machine = [s["hfu"] * PEAK * t for s, t in zip(report["steps"], seconds)]
    model_flops = [s["mfu"] * PEAK * t for s, t in zip(report["steps"], seconds)]
    use = report["use"][0]
    mean = use["hfu"] * PEAK * use["step_ns"] / 1e9
    ok = len(machine) == STEPS and all(abs(m * of_machine / want - 1) < 1e-6 for m in machine) and \
        abs(mean * of_machine / want - 1) < 1e-6 and all(abs(m * of_model / want - 1) < 1e-6 for m in model_flops)
    print(f"{'ok  ' if ok else 'FAIL'} {name}: counter {want:,}, machine {machine}, model {model_flops}, mean {mean}")
    failed += not ok
sys.exit(failed != 0)
