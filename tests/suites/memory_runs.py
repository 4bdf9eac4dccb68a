#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a small transformer on the CPU, with a leak or without, and writes what PyTorch itself says of its
memory:

    python3 memory_runs.py NAME STEPS --profile OUT
        OUT.json, a trace; OUT.pickle, a memory snapshot that torch.cuda._memory_viz makes of the profile;
        OUT.raw.json, the profiler's own account by category
    python3 memory_runs.py NAME STEPS
        trains alone and prints the loss

NAME is clean, leak (each step keeps a tensor), leak_third (every third step does), graph (each step keeps what
the backward has not freed), cache (the first steps fill a cache), history (each step keeps one number).
"""
import pickle
import sys

import torch
import torch.nn.functional as F
from torch import nn

KEPT = []


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).chunk(3, -1)
        x = x + self.out(torch.softmax(q @ k.transpose(-1, -2), -1) @ v)
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Model(nn.Module):
    def __init__(self, d=64, layers=2, words=500):
        super().__init__()
        self.embed = nn.Embedding(words, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(layers))
        self.head = nn.Linear(d, words)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def keep(what, step, model, tokens, loss):
    if what == "leak" or (what == "leak_third" and step % 3 == 0):
        KEPT.append(model.embed(tokens).detach().clone())  # the line that leaks
    elif what == "graph":
        KEPT.append(F.gelu(model.embed(tokens)).sum())  # the line whose graph stays
    elif what == "cache" and step < 3:
        KEPT.append(torch.zeros(64, 1024))
    elif what == "history":
        KEPT.append(loss.detach())


def train(what, steps):
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for step in range(steps):
        with torch.profiler.record_function(f"ProfilerStep#{step}"):
            tokens = torch.randint(0, 500, (4, 64))
            loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            keep(what, step, model, tokens, loss)
    return loss.item()


def main():
    what, steps = sys.argv[1], int(sys.argv[2])
    if len(sys.argv) == 3:
        print(f"{train(what, steps):.9f}")
        return
    from torch.cuda._memory_viz import _profile_to_snapshot
    from torch.profiler._memory_profiler import MemoryProfileTimeline
    out = sys.argv[4]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, with_stack=True,
                                record_shapes=True) as p:
        train(what, steps)
    p.export_chrome_trace(out + ".json")
    with open(out + ".pickle", "wb") as f:
        pickle.dump(_profile_to_snapshot(p), f)
    MemoryProfileTimeline(p._memory_profile()).export_memory_timeline_raw(out + ".raw.json", "cpu")


if __name__ == "__main__":
    main()
