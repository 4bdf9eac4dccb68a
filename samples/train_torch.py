# SPDX-License-Identifier: MIT
"""The model of samples/train in PyTorch: the same numbers in, the same losses out.

    train_mpi      --steps 3 --save weights --dump in_c
    train_torch.py --steps 3 --weights start --dump in_torch

Without --weights both begin with the same weights of their own making; with it they are
read from a folder of NAME.npy files, one for each parameter, as --save writes them and
numpy.load reads them.  --fault makes a mistake that ports make, so that
`msprobe compare` and `msprobe check` have something to find:

    train_torch.py --steps 1 --dump clean
    train_torch.py --steps 1 --dump faulty --fault layer1.scale
    msprobe compare -tp faulty/step0 -gp clean/step0 -o compared
"""
import argparse
import os
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

VOCAB, HEADS, LENGTH = 64, 4, 16
FAULTS = {
    "scale": "attention is not divided by the root of the width",
    "sign": "the MLP's output is subtracted from its input",
    "transposed": "the projection's weight is taken transposed",
    "residual": "attention's input is not added to its output",
    "eps": "layer norm has an epsilon of 0.01 instead of 0.00001",
    "mask": "attention sees the tokens behind",
    "half": "the MLP's output passes through half precision",
    "bias": "the MLP's first linear has no bias",
}


# ---- the model --------------------------------------------------------------------


class Attention(nn.Module):
    def __init__(self, dim, fault):
        super().__init__()
        self.qkv, self.proj, self.fault = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), fault

    def forward(self, x):
        rows, length, dim = x.shape
        q, k, v = (part.reshape(rows, length, HEADS, dim // HEADS).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, dim=-1))
        scores = torch.matmul(q, k.transpose(-2, -1))
        if self.fault != "scale":
            scores = scores * (dim // HEADS) ** -0.5
        if self.fault != "mask":
            future = torch.ones(length, length, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, float("-inf"))
        mixed = torch.matmul(torch.softmax(scores, -1), v)
        mixed = mixed.transpose(1, 2).reshape(rows, length, dim)
        if self.fault == "transposed":
            return F.linear(mixed, self.proj.weight.t(), self.proj.bias)
        return self.proj(mixed)


class MLP(nn.Module):
    def __init__(self, dim, fault):
        super().__init__()
        self.up, self.down, self.fault = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim), fault

    def forward(self, x):
        x = F.linear(x, self.up.weight) if self.fault == "bias" else self.up(x)
        x = self.down(F.gelu(x, approximate="tanh"))
        return x.half().float() if self.fault == "half" else x


class Layer(nn.Module):
    def __init__(self, dim, fault):
        super().__init__()
        eps = 1e-2 if fault == "eps" else 1e-5
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps), nn.LayerNorm(dim, eps)
        self.attn, self.mlp, self.fault = Attention(dim, fault), MLP(dim, fault), fault

    def forward(self, x):
        mixed = self.attn(self.norm1(x))
        x = mixed if self.fault == "residual" else x + mixed
        change = self.mlp(self.norm2(x))
        return x - change if self.fault == "sign" else x + change


class Decoder(nn.Module):
    def __init__(self, dim, layers, fault_layer=-1, fault=None):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.position = nn.Parameter(torch.empty(LENGTH, dim))
        self.layers = nn.ModuleList(Layer(dim, fault if i == fault_layer else None)
                                    for i in range(layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, VOCAB, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


# ---- weights ----------------------------------------------------------------------


class Generator:
    """The numbers of the C sample: 64 bits of state, the upper ones used."""

    def __init__(self, seed):
        self.state = (seed * 2654435761 & 0xffffffff) + 1 & 0xffffffff

    def uniform(self, n):
        found = np.empty(n, np.float32)
        for i in range(n):
            self.state = self.state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            found[i] = np.float32(self.state >> 40) / np.float32(1 << 23) - np.float32(1)
        return found


def scale_of(name, parameter):
    """How large a parameter begins; None: at the constant of layer norm."""
    if "norm" in name:
        return None
    if name == "embed.weight":
        return np.float32(0.5)
    if name == "position":
        return np.float32(0.1)
    if name.endswith("bias"):
        return np.float32(0.02)
    return np.float32(1) / np.sqrt(np.float32(parameter.shape[1]))


def in_order(model):
    """Parameters as the C sample makes them: a layer's parts one after the other."""
    parts = ("norm1", "attn.qkv", "attn.proj", "norm2", "mlp.up", "mlp.down")
    names = ["embed.weight", "position"]
    for i in range(len(model.layers)):
        names += [f"layers.{i}.{part}.{kind}" for part in parts for kind in ("weight", "bias")]
    names += ["norm.weight", "norm.bias", "head.weight"]
    parameters = dict(model.named_parameters())
    return [(name, parameters[name]) for name in names]


def initialise(model, seed):
    generator = Generator(seed)
    for name, parameter in in_order(model):
        scale = scale_of(name, parameter)
        values = np.full(parameter.numel(), name.endswith("weight"), np.float32) \
            if scale is None else scale * generator.uniform(parameter.numel())
        parameter.data = torch.from_numpy(values.reshape(parameter.shape))


def load(model, folder):
    for name, parameter in in_order(model):
        values = np.load(os.path.join(folder, name + ".npy"))
        if values.shape != tuple(parameter.shape):
            raise ValueError(f"{name}: shape {values.shape}, not {tuple(parameter.shape)}")
        parameter.data = torch.from_numpy(values.astype(np.float32))


def save(model, folder):
    os.makedirs(folder, exist_ok=True)
    for name, parameter in in_order(model):
        np.save(os.path.join(folder, name + ".npy"), parameter.detach().numpy())


# ---- data -------------------------------------------------------------------------


def make_batch(step, batch, first_seed):
    """A text with a rule to learn, that of the C sample's only rank."""
    tokens, targets = (torch.empty(batch, LENGTH, dtype=torch.long) for _ in range(2))
    for b in range(batch):
        seed = step * 1000003 + b * 7919 + first_seed
        now = seed // 7 % VOCAB
        for i in range(LENGTH):
            seed = seed * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            noise = seed >> 33 & 0x7fffffff
            following = noise % VOCAB if seed >> 60 == 0 else (5 * now + 3) % VOCAB
            tokens[b, i], targets[b, i] = now, following
            now = following
    return tokens, targets


# ---- the run ----------------------------------------------------------------------


def options():
    p = argparse.ArgumentParser(description="train a small language model, as samples/train does")
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--dim", type=int, default=32, help="width, a multiple of 4")
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--seed", type=int, default=1, help="of weights and data")
    p.add_argument("--rate", type=float, default=0.05)
    p.add_argument("--fault", metavar="LAYER.NAME", help="make the model wrong: layer3.scale")
    p.add_argument("--list-faults", action="store_true")
    p.add_argument("--weights", metavar="DIR", help="start from NAME.npy files of this folder")
    p.add_argument("--save", metavar="DIR", help="leave the weights there at the end")
    p.add_argument("--dump", metavar="DIR", help="dump every step")
    p.add_argument("--task", default="statistics", choices=("statistics", "tensor"))
    p.add_argument("--level", default="mix", choices=("L0", "L1", "mix"))
    p.add_argument("--quiet", action="store_true", help="print the last loss alone")
    return p, p.parse_args()


def fault_of(parser, o):
    if o.fault is None:
        return -1, None
    layer, _, name = o.fault.partition(".")
    number = layer[len("layer"):] if layer.startswith("layer") else ""
    if name not in FAULTS or not number.isdigit() or int(number) >= o.layers:
        parser.error(f"there is no fault '{o.fault}'; see --list-faults")
    return int(number), name


def open_debugger(o):
    if o.dump is None:
        return None
    from msprobe.pytorch import PrecisionDebugger
    return PrecisionDebugger(task=o.task, dump_path=o.dump, level=o.level)


def train(model, o):
    debugger = open_debugger(o)
    optimizer = torch.optim.SGD(model.parameters(), lr=o.rate, momentum=0.9)
    for step in range(o.steps):
        tokens, targets = make_batch(step, o.batch, o.seed)
        optimizer.zero_grad()
        if debugger:
            debugger.start(model)
        loss = F.cross_entropy(model(tokens).reshape(-1, VOCAB), targets.reshape(-1))
        loss.backward()
        if debugger:
            debugger.stop()
            debugger.step()
        optimizer.step()
        if not o.quiet or step + 1 == o.steps:
            print(f"step {step} loss {loss.item():.8f}")


def main():
    parser, o = options()
    if o.list_faults:
        for name, text in FAULTS.items():
            print(f"layerN.{name:12} {text}")
        return
    if o.steps < 1 or o.layers < 1 or o.dim < 4 or o.dim % 4 != 0 or o.batch < 1:
        parser.error("an option is out of its range")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    model = Decoder(o.dim, o.layers, *fault_of(parser, o))
    if o.weights:
        try:
            load(model, o.weights)
        except (OSError, ValueError) as why:
            sys.exit(f"train_torch: {why}")
    else:
        initialise(model, o.seed)
    train(model, o)
    if o.save:
        save(model, o.save)


if __name__ == "__main__":
    main()
