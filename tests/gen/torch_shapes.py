#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Faults in real PyTorch runs of models that are not shaped like the usual ones.

The faults, backgrounds and scores of torch_faults.py on a GAN whose judge runs twice, a mixture of
experts, a U-Net, one layer used five times with tied weights, 120 layers in a row, 40 branches side by
side, a recurrent cell, and two models in one dump.  No constant of the rules was fixed on them.

    torch_shapes.py [--cases N a model] [--first SEED] [--modes LIST] [-v]
"""
import argparse
import multiprocessing
import random
from concurrent.futures import ProcessPoolExecutor

import torch_faults as faults

if faults.torch is not None:
    import torch
    import torch.nn.functional as F


class Maker:
    """Parameters of one model, made in the order of their names."""

    def __init__(self, g):
        self.g = g

    def __call__(self, *shape, scale=0.2, base=0.0):
        return torch.nn.Parameter(base + scale * torch.randn(*shape, generator=self.g))

    def norm(self, n):
        return {"n": self(n, base=1), "nb": self(n)}


def module(**parts):
    m = torch.nn.Module()
    for name, part in parts.items():
        setattr(m, name, part)
    return m


class Shape:
    def __init__(self, rng, wrong):
        pass

    def data(self, g):
        return torch.randn(8, 24, generator=g), torch.randint(0, 6, (8,), generator=g)


class Gan(Shape):
    def build(self, g):
        p = Maker(g)
        return module(make=module(a=p(32, 16), ab=p(32), b=p(24, 32)),
                      judge=module(a=p(32, 24), ab=p(32), b=p(1, 32), **p.norm(32)))

    def data(self, g):
        return torch.randn(8, 16, generator=g), torch.randn(8, 24, generator=g)

    def judge(self, m, x):
        y = F.leaky_relu(F.linear(x, m.a, m.ab), 0.2).to(m.n.dtype)
        return F.linear(F.layer_norm(y, (32,), m.n, m.nb, 1e-5), m.b)

    def forward(self, m, data):
        z, real = data
        fake = torch.tanh(F.linear(F.relu(F.linear(z, m.make.a, m.make.ab)), m.make.b))
        yes, no = self.judge(m.judge, real), self.judge(m.judge, fake)
        return F.softplus(-yes).mean() + F.softplus(no).mean()


class Experts(Shape):
    layers, experts = 3, 4

    def build(self, g):
        p = Maker(g)
        m = module(wte=p(40, 24, scale=0.5))
        for i in range(self.layers):
            layer = module(r=p(self.experts, 24), **p.norm(24))
            for k in range(self.experts):
                setattr(layer, f"u{k}", p(48, 24))
                setattr(layer, f"d{k}", p(24, 48))
            setattr(m, f"l{i}", layer)
        m.head = p(40, 24)
        return m

    def data(self, g):
        return torch.randint(0, 40, (2, 12), generator=g), torch.randint(0, 40, (24,), generator=g)

    def forward(self, m, data):
        x = F.embedding(data[0], m.wte).reshape(24, 24)
        for i in range(self.layers):
            layer = getattr(m, f"l{i}")
            y = F.layer_norm(x, (24,), layer.n, layer.nb, 1e-5)
            share, which = torch.topk(F.softmax(F.linear(y, layer.r), -1), 2, -1)
            out = torch.zeros_like(y)
            for k in range(self.experts):
                weight = (share * (which == k)).sum(-1, keepdim=True)
                out = out + F.linear(F.silu(F.linear(y, getattr(layer, f"u{k}"))), getattr(layer, f"d{k}")) * weight
            x = x + out
        return F.cross_entropy(F.linear(x, m.head), data[1])


class Unet(Shape):
    def build(self, g):
        p = Maker(g)

        def block(out, into):
            return module(w=p(out, into, 3, 3), **p.norm(out))
        return module(a=block(8, 3), b=block(16, 8), c=block(16, 16), up=p(16, 8, 2, 2), d=block(8, 16), o=p(4, 8, 1, 1))

    def data(self, g):
        return torch.randn(2, 3, 12, 12, generator=g), torch.randint(0, 4, (2, 12, 12), generator=g)

    def block(self, m, x):
        return F.relu(F.group_norm(F.conv2d(x, m.w, None, 1, 1).to(m.n.dtype), 4, m.n, m.nb))

    def forward(self, m, data):
        a = self.block(m.a, data[0])
        c = self.block(m.c, self.block(m.b, F.max_pool2d(a, 2)))
        up = F.conv_transpose2d(c, m.up, None, 2)
        return F.cross_entropy(F.conv2d(self.block(m.d, torch.cat([up, a], 1)), m.o), data[1])


class Tied(Shape):
    def build(self, g):
        p = Maker(g)
        return module(wte=p(50, 32, scale=0.3), w=p(32, 32), f=p(64, 32), k=p(32, 64), **p.norm(32))

    def data(self, g):
        return torch.randint(0, 50, (2, 16), generator=g), torch.randint(0, 50, (32,), generator=g)

    def forward(self, m, data):
        x = F.embedding(data[0], m.wte)
        for _ in range(5):
            y = F.layer_norm(x, (32,), m.n, m.nb, 1e-5)
            s = torch.matmul(F.linear(y, m.w), y.transpose(-1, -2)) / 5.6568
            x = x + torch.matmul(F.softmax(s, -1), y)
            x = x + F.linear(F.gelu(F.linear(x, m.f)), m.k)
        return F.cross_entropy(F.linear(x, m.wte).view(-1, 50), data[1])


class Deep(Shape):
    layers = 120

    def build(self, g):
        p = Maker(g)
        m = module(**{f"l{i}": module(w=p(24, 24, scale=0.1), b=p(24, scale=0.05)) for i in range(self.layers)})
        m.head = p(6, 24)
        return m

    def forward(self, m, data):
        x = data[0]
        for i in range(self.layers):
            layer = getattr(m, f"l{i}")
            x = x + torch.tanh(F.linear(x, layer.w, layer.b)) * 0.3
        return F.cross_entropy(F.linear(x, m.head), data[1])


class Wide(Shape):
    branches = 40

    def build(self, g):
        p = Maker(g)
        m = module(**{f"w{i}": module(a=p(16, 24), b=p(16, scale=0.1)) for i in range(self.branches)})
        m.head = p(6, 16 * self.branches, scale=0.05)
        return m

    def forward(self, m, data):
        branches = [getattr(m, f"w{i}") for i in range(self.branches)]
        y = torch.cat([torch.sigmoid(F.linear(data[0], b.a, b.b)) for b in branches], -1)
        return F.cross_entropy(F.linear(y, m.head), data[1])


class Cell(Shape):
    def build(self, g):
        p = Maker(g)
        return module(i=p(64, 24), h=p(64, 16), b=p(64), o=p(6, 16))

    def data(self, g):
        return torch.randn(10, 8, 24, generator=g), torch.randint(0, 6, (8,), generator=g)

    def forward(self, m, data):
        h = c = torch.zeros(8, 16, dtype=m.o.dtype)
        for x in data[0]:
            i, f, o, u = (F.linear(x, m.i, m.b) + F.linear(h, m.h)).chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
            h = torch.sigmoid(o) * torch.tanh(c)
        return F.cross_entropy(F.linear(h, m.o), data[1])


class Two(Shape):
    """One that teaches and one that learns."""

    def build(self, g):
        p = Maker(g)
        parts = {f"{who}{i}": module(w=p(32, 32), b=p(32), **p.norm(32)) for who in "ts" for i in range(3)}
        return module(stem=p(32, 24), ht=p(6, 32), hs=p(6, 32), **parts)

    def net(self, m, who, x):
        for i in range(3):
            layer = getattr(m, f"{who}{i}")
            x = x + F.gelu(F.linear(F.layer_norm(x, (32,), layer.n, layer.nb, 1e-5), layer.w, layer.b))
        return x

    def forward(self, m, data):
        x = F.linear(data[0], m.stem).to(m.stem.dtype)
        teacher = F.linear(self.net(m, "t", x), m.ht)
        student = F.linear(self.net(m, "s", x), m.hs)
        return F.cross_entropy(student, data[1]) + F.mse_loss(student.to(m.stem.dtype), teacher.to(m.stem.dtype))


MODELS = [Gan, Experts, Unet, Tied, Deep, Wide, Cell, Two]


def prepare(make, seed, kind, background):
    """Golden, clean target and faulty target, with the names to blame."""
    rng = random.Random(f"{seed}/{kind}")
    golden, clean = (faults.run(seed, make, how) for how in faults.BACKGROUNDS[background])
    how = faults.BACKGROUNDS[background][1]
    if kind == "none":
        return golden, clean, clean, set()
    if kind in faults.WEIGHT:
        edit = faults.weight_edit(kind, clean, rng)
        rec = faults.run(seed, make, how, edit=edit)
        return golden, clean, rec, faults.readers(clean, edit.before)
    fault = faults.Faulty(kind, rng.choice(faults.floats(clean, backward=kind in faults.GRAD)))
    rec = faults.run(seed, make, how, fault=fault)
    return golden, clean, rec, fault.names


def one(job):
    model, seed, kind, background, modes = job
    return faults.score(seed, kind, background, modes, *prepare(MODELS[model], seed, kind, background))


def jobs_of(first, cases, modes):
    kinds = list(faults.OUT) + list(faults.GRAD) + list(faults.WEIGHT)
    grounds = list(faults.BACKGROUNDS)
    for model in range(len(MODELS)):
        for i in range(cases):
            ground, seed = grounds[(i + model + i // 7) % len(grounds)], first + 1000 * model + i
            yield model, seed, kinds[(7 * i + 3 * model) % len(kinds)], ground, modes
            yield model, seed + 500, "none", ground, modes


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--cases", type=int, default=14)
    ap.add_argument("--first", type=int, default=20_000)
    ap.add_argument("--modes", default="statistics,tensor,md5")
    ap.add_argument("-v", dest="verbose", action="store_true")
    o = ap.parse_args()
    if faults.torch is None:
        print("skip source shapes: no PyTorch")
        return
    modes = o.modes.split(",")
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        results = [r for rs in pool.map(one, jobs_of(o.first, o.cases, modes), chunksize=2) for r in rs]
    for mode in modes:
        faults.report("shapes", mode, [r for r in results if r["mode"] == mode], o.verbose)


if __name__ == "__main__":
    main()
