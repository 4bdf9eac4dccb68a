#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Do all commands that judge NaN and infinity name the same operator?

    python3 tests/suites/nan_cases.py MSPROBE SCRATCH

Runs a small attention with one mistake that makes a NaN, recorded by tests/gen/torch_record.py, and
asks stat, check, overflow_check, compare, view and serve. Healthy programs with masks of -inf and of
the least finite value must have no finding.
"""
import json
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "gen"))

import torch
from torch import nn
import torch.nn.functional as F

import torch_record
from nan_answers import answers, show


class Net(nn.Module):
    """Attention and a feed-forward layer; `wrong` maps a place in it to a function."""

    def __init__(self):
        super().__init__()
        g = torch.Generator().manual_seed(1)
        self.lines = nn.ModuleList(nn.Linear(8, 8) for _ in range(5))
        for p in self.parameters():
            p.data = torch.randn(p.shape, generator=g) * 0.3

    def line(self, i, x):
        return F.linear(x, self.lines[i].weight, self.lines[i].bias)

    def forward(self, x, mask, wrong, fill=-math.inf):
        at = lambda place, value: wrong.get(place, lambda v: v)(value)
        q, k, v = (self.line(i, x) for i in range(3))
        score = torch.matmul(q, k.transpose(1, 2)) / at("scale", torch.tensor(8 ** 0.5))
        score = score.masked_fill(at("mask", mask), fill)
        y = torch.matmul(F.softmax(score, dim=-1), v)
        y = at("middle", self.line(3, y))
        y = at("before_loss", F.relu(self.line(4, y)) + x)
        return y.pow(2).mean()


def healed(maker):
    """A fault of the recorder that makes what an operator writes finite: the golden side."""
    name, _, direction = maker.rpartition(".")

    def heal(at, phase, value):
        heals = at == name and phase == ("grad" if direction == "backward" else "out")
        return torch.nan_to_num(value, 0.25, 4.0, -4.0) if heals else value
    return heal


def record(folder, wrong, fill=-math.inf, spoil=None, dtype=torch.float32, heal=None):
    torch.manual_seed(2)
    net, x = Net().to(dtype), torch.randn(2, 6, 8).to(dtype)
    if spoil:
        x = spoil(net, x)
    recorder = torch_record.Recorder(fault=heal)
    mask = torch.ones(6, 6, dtype=torch.bool).triu(1)
    with recorder:
        loss = net(x, mask, wrong, fill)
        loss.backward()
    recorder.add_gradients(net)
    torch_record.Writer(folder, "statistics").write(recorder)
    rank = os.path.join(folder, "step0", "rank0")
    for name, value in (("construct", None), ("stack", [])):
        with open(os.path.join(rank, name + ".json"), "w", encoding="utf-8") as f:
            json.dump({e.name: value for e in recorder.entries} if value is None else {}, f)


def nan_weight(net, x):
    net.lines[3].weight.data[2, 1] = math.nan
    return x


def nan_data(net, x):
    x[1, 2, 3] = math.nan
    return x


def hidden_root(y):
    """The forward value is finite; the derivative of the square root of 0, times 0, is not."""
    return y + 0.0 * torch.sqrt(y * 0.0)


# Name: what is wrong, the arguments of record, and the operator that makes the NaN.
CASES = {
    "masked_row": ({"mask": lambda m: torch.ones_like(m)}, {}, "Functional.softmax.0.forward"),
    "zero_by_zero": ({"middle": lambda y: torch.div(y * 0.0, y * 0.0)}, {}, "Torch.div.0.forward"),
    "log_negative": ({"before_loss": lambda y: torch.log(y - 1000.0)}, {}, "Torch.log.0.forward"),
    "root_negative": ({"middle": lambda y: torch.sqrt(y - 100.0)}, {}, "Torch.sqrt.0.forward"),
    "inf_minus_inf": ({"middle": lambda y: torch.sub(torch.exp(y.abs() + 1e4), torch.exp(y.abs() + 1e4))}, {},
                      "Torch.exp.0.forward"),
    "weight": ({}, {"spoil": nan_weight}, "Functional.linear.3.forward"),
    "data": ({}, {"spoil": nan_data}, "Functional.linear.0.forward"),
    "gradient": ({"middle": hidden_root}, {}, "Torch.sqrt.0.backward"),
    "arccosine": ({"before_loss": lambda y: torch.acos(y + 1000.0)}, {}, "Torch.acos.0.forward"),
    "half_overflow": ({"middle": lambda y: torch.exp(torch.relu(y) + 20.0)}, {"dtype": torch.float16}, "Torch.exp.0.forward"),
    "gradient_power": ({"middle": lambda y: y + 0.0 * torch.pow(y * 0.0, 0.5)}, {}, "Torch.pow.0.backward"),
}
HEALTHY = {
    "mask_infinite": ({}, {}),
    "mask_least": ({}, {"fill": torch.finfo(torch.float32).min}),
    "mask_least_bf16": ({}, {"fill": torch.finfo(torch.bfloat16).min}),
    "double": ({}, {"dtype": torch.float64}),
    "half": ({}, {"dtype": torch.float16}),
    "least_value": ({"middle": lambda y: torch.clamp(y, min=torch.finfo(torch.float32).min)}, {}),
}


def can_run(name, keys):
    """Tells whether this PyTorch multiplies the type of a case on a CPU, which old ones do not for half precision."""
    half = torch.ones(2, 2, dtype=keys.get("dtype", torch.float32))
    try:
        F.linear(half, half)
    except RuntimeError as error:
        print(f"skip nan {name}: {error}")
        return False
    return True


def cases_of(table):
    return [(name, case) for name, case in table.items() if can_run(name, case[1])]


def main():
    program, scratch = sys.argv[1:3]
    golden, failed = os.path.join(scratch, "golden"), 0
    record(golden, {})
    for name, (wrong, keys, wanted) in cases_of(CASES):
        record(os.path.join(scratch, name), wrong, **keys)
        golden = os.path.join(scratch, name + ".golden")
        record(golden, wrong, heal=None if "spoil" in keys else healed(wanted))
        failed += show(name, wanted, answers(program, os.path.join(scratch, name), golden))
    for name, (wrong, keys) in cases_of(HEALTHY):
        golden = os.path.join(scratch, name)  # no other program has these values
        record(golden, wrong, **keys)
        failed += show(name, None, answers(program, os.path.join(scratch, name), golden))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
