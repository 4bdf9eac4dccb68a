#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a small model of a kind on the CPU and prints the greatest use of one step, as PyTorch's profiler
counts it; under `msprobe run --dump` the second step is dumped.

    python3 dryrun_models.py NAME            names: see MODELS
    python3 dryrun_models.py NAME --measure  {"peak": bytes}
"""
import json
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

STEPS = 3


class Attention(nn.Module):
    def __init__(self, d, heads, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = (t.view(b, s, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-1, -2)) * 0.125, -1), v)
        return self.out(y.transpose(1, 2).reshape(b, s, d))


class Block(nn.Module):
    def __init__(self, d, fused):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = Attention(d, 4, fused)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Transformer(nn.Module):
    def __init__(self, d=128, layers=4, vocabulary=1000, fused=False, again=False):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, d)
        self.layers = nn.ModuleList(Block(d, fused) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary)
        self.again = again

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.again else layer(x)
        return self.head(self.norm(x))


class Experts(nn.Module):
    """A mixture of experts, each token through its best one."""

    def __init__(self, d=128, experts=4, classes=64):
        super().__init__()
        self.start = nn.Linear(d, d)
        self.gate = nn.Linear(d, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)) for _ in range(experts))
        self.head = nn.Linear(d, classes)

    def forward(self, x):
        x = self.start(x)
        weight = torch.softmax(self.gate(x), -1)
        y = sum(weight[:, i:i + 1] * e(x) for i, e in enumerate(self.experts))
        return self.head(x + y)


class Cnn(nn.Module):
    def __init__(self, width=32, classes=100):
        super().__init__()
        steps, channels = [], 3
        for out in (width, 2 * width, 4 * width):
            steps += [nn.Conv2d(channels, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2)]
            channels = out
        self.body, self.head = nn.Sequential(*steps), nn.Linear(channels, classes)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


class Unet(nn.Module):
    def __init__(self, w=16):
        super().__init__()
        self.a, self.b, self.c = (nn.Conv2d(i, o, 3, padding=1) for i, o in ((3, w), (w, 2 * w), (2 * w, 2 * w)))
        self.up = nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.d, self.out = nn.Conv2d(2 * w, w, 3, padding=1), nn.Conv2d(w, 3, 1)

    def forward(self, x):
        a = F.relu(self.a(x))
        m = F.relu(self.c(F.relu(self.b(F.max_pool2d(a, 2)))))
        return self.out(F.relu(self.d(torch.cat([self.up(m), a], 1))))


class Mlp(nn.Module):
    def __init__(self, d=256, layers=6):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(d, d) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = F.dropout(F.silu(layer(x)), 0.1)
        return x


# ---- models that no rule was made with ----------------------------------------------------


class Residual(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.a, self.b = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.na, self.nb = nn.BatchNorm2d(o), nn.BatchNorm2d(o)
        self.short = nn.Conv2d(i, o, 1, stride, bias=False)

    def forward(self, x):
        return F.relu(self.nb(self.b(F.relu(self.na(self.a(x))))) + self.short(x))


class Resnet(nn.Module):
    def __init__(self, w=24, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, w, 3, padding=1)
        self.body = nn.Sequential(Residual(w, w, 1), Residual(w, 2 * w, 2), Residual(2 * w, 4 * w, 2))
        self.head = nn.Linear(4 * w, classes)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.body(self.stem(x)), 1).flatten(1))


class Vit(nn.Module):
    def __init__(self, d=96, layers=3, classes=10):
        super().__init__()
        self.patch = nn.Conv2d(3, d, 8, 8)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(d, 4, 2 * d, 0.1, batch_first=True) for _ in range(layers))
        self.head = nn.Linear(d, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


class Recurrent(nn.Module):
    def __init__(self, d=128):
        super().__init__()
        self.cell, self.head = nn.GRUCell(d, d), nn.Linear(d, d)

    def forward(self, x):
        h = torch.zeros(x.shape[0], x.shape[2])
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
        return self.head(h)


class Gated(nn.Module):
    """The feed-forward part of newer language models, without biases and with RMS norms."""

    def __init__(self, d=128, layers=4):
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleDict({
            "gate": nn.Linear(d, 3 * d, bias=False), "up": nn.Linear(d, 3 * d, bias=False),
            "down": nn.Linear(3 * d, d, bias=False)}) for _ in range(layers))
        self.scale = nn.ParameterList(nn.Parameter(torch.ones(d)) for _ in range(layers))

    def forward(self, x):
        for layer, scale in zip(self.layers, self.scale):
            y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * scale
            x = x + layer["down"](F.silu(layer["gate"](y)) * layer["up"](y))
        return x


def tokens(batch=4, length=128):
    return lambda: (torch.randint(0, 1000, (batch, length)),)


def floats(*shape):
    return lambda: (torch.randn(*shape),)


def classify(y, classes):
    y = y.flatten(0, -2)
    return F.cross_entropy(y, torch.arange(y.shape[0]) % classes)


MODELS = {
    "transformer": (lambda: Transformer(), tokens(), lambda y: classify(y, 1000)),
    "transformer-fused": (lambda: Transformer(fused=True), tokens(), lambda y: classify(y, 1000)),
    "transformer-again": (lambda: Transformer(again=True), tokens(), lambda y: classify(y, 1000)),
    "transformer-deep": (lambda: Transformer(96, 8), tokens(8, 64), lambda y: classify(y, 1000)),
    "moe": (Experts, floats(2048, 128), lambda y: classify(y, 64)),
    "cnn": (Cnn, floats(16, 3, 64, 64), lambda y: classify(y, 100)),
    "unet": (Unet, floats(4, 3, 96, 96), lambda y: F.mse_loss(y, torch.zeros_like(y))),
    "resnet": (Resnet, floats(8, 3, 48, 48), lambda y: classify(y, 10)),
    "vit": (Vit, floats(16, 3, 64, 64), lambda y: classify(y, 10)),
    "recurrent": (Recurrent, floats(64, 24, 128), lambda y: (y * y).mean()),
    "gated": (Gated, floats(8, 128, 128), lambda y: (y * y).mean()),
    "mlp": (Mlp, floats(4096, 256), lambda y: (y * y).mean()),
}


def train(name, measured):
    make, batch, loss_of = MODELS[name]
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, foreach=False)

    def step():
        optimizer.zero_grad()
        loss = loss_of(model(*batch()))
        loss.backward()
        optimizer.step()

    for _ in range(STEPS - 1):
        step()
    if not measured:
        return step()
    optimizer.zero_grad()
    # what lives now: parameters and optimizer states
    held = sum(p.numel() * p.element_size() for p in model.parameters())
    held += sum(t.numel() * t.element_size() for s in optimizer.state.values() for t in s.values())
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as p:
        step()
    now = peak = 0
    events = [e for e in p.profiler.kineto_results.events() if e.name() == "[memory]"]
    for e in sorted(events, key=lambda e: e.start_ns()):
        now += e.nbytes()
        peak = max(peak, now)
    return held + peak


if __name__ == "__main__":
    used = train(sys.argv[1], "--measure" in sys.argv)
    if used:
        print(json.dumps({"peak": used}))
