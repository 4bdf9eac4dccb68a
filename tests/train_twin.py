# SPDX-License-Identifier: MIT
"""The model of samples/train in PyTorch: from the same weights and data it must have the same losses.

train_twin.py WEIGHTS STEPS RANKS prints the loss of each step as train_mpi does, so that forward,
backward, the sum over ranks and the update of the sample are checked by another implementation.
"""
import glob
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

VOCAB, DIM, HEADS, LAYERS, SEQ, BATCH, RATE, SEED = 64, 32, 4, 4, 16, 4, 0.05, 1
MASK64 = (1 << 64) - 1


def batch(step, rank, ranks):
    tokens, targets = [], []
    for b in range(BATCH):
        seed = ((step * ranks + rank) * 1000003 + b * 7919 + SEED) & MASK64
        now = seed // 7 % VOCAB
        for _ in range(SEQ):
            seed = (seed * 6364136223846793005 + 1442695040888963407) & MASK64
            noise = (seed >> 33) % VOCAB
            after = noise if seed >> 60 == 0 else (5 * now + 3) % VOCAB
            tokens.append(now)
            targets.append(after)
            now = after
    return torch.tensor(tokens), torch.tensor(targets)


def layer(w, l, x, mask):
    p = lambda name: w[f"layers.{l}.{name}"]
    h = F.layer_norm(x, (DIM,), p("norm1.weight"), p("norm1.bias"))
    qkv = F.linear(h, p("attn.qkv.weight"), p("attn.qkv.bias"))
    q, k, v = (t.view(BATCH, SEQ, HEADS, -1).transpose(1, 2) for t in qkv.split(DIM, -1))
    s = (q @ k.transpose(-1, -2)) / (DIM // HEADS) ** 0.5
    s = s.masked_fill(mask, float("-inf")).softmax(-1) @ v
    s = s.transpose(1, 2).reshape(BATCH, SEQ, DIM)
    x = x + F.linear(s, p("attn.proj.weight"), p("attn.proj.bias"))
    h = F.layer_norm(x, (DIM,), p("norm2.weight"), p("norm2.bias"))
    h = F.gelu(F.linear(h, p("mlp.up.weight"), p("mlp.up.bias")), approximate="tanh")
    return x + F.linear(h, p("mlp.down.weight"), p("mlp.down.bias"))


def loss_of(w, tokens, targets):
    mask = torch.ones(SEQ, SEQ, dtype=torch.bool).triu(1)
    x = w["embed.weight"][tokens].view(BATCH, SEQ, DIM) + w["position"]
    for l in range(LAYERS):
        x = layer(w, l, x, mask)
    x = F.layer_norm(x, (DIM,), w["norm.weight"], w["norm.bias"])
    return F.cross_entropy(F.linear(x, w["head.weight"]).view(-1, VOCAB), targets)


def main():
    folder, steps, ranks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    w = {}
    for path in glob.glob(os.path.join(folder, "*.npy")):
        w[os.path.basename(path)[:-4]] = torch.tensor(np.load(path), requires_grad=True)
    opt = torch.optim.SGD(w.values(), lr=RATE, momentum=0.9)
    for step in range(steps):
        opt.zero_grad()
        loss = sum(loss_of(w, *batch(step, r, ranks)) for r in range(ranks)) / ranks
        loss.backward()
        opt.step()
        print(f"step {step} loss {loss.item():.4f}")


main()
