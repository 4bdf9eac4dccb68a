#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that `msprobe reproduce` writes, run without msprobe and without the environment.

    judge_scripts.py MSPROBE FOLDER

Dumps operators of PyTorch, one of them with a fault, writes a program for each, and runs it with an
empty environment in isolated mode.  Where nothing is planted, the recorded results must be those of
this machine but for elements near zero; the fault must be in the recorded results alone."""
import json
import os
import re
import subprocess
import sys

import torch
import torch.nn.functional as F

CASES = [("Functional.layer_norm.0.forward", "minimised"), ("Functional.layer_norm.0.backward", ""),
         ("Functional.conv2d.0.forward", "minimised"), ("Functional.conv2d.0.backward", ""),
         ("Functional.softmax.0.forward", "minimised"), ("Functional.cross_entropy.0.forward", ""),
         ("Tensor.mul_.0.forward", "minimised"), ("Torch.cat.0.forward", ""), ("Functional.embedding.0.forward", "minimised")]
LINE = re.compile(r"recorded (\S+) ulp from float64, here (\S+) ulp")


def dump(folder):
    from msprobe.pytorch import PrecisionDebugger
    config = os.path.join(folder, "config.json")
    with open(config, "w") as f:
        json.dump({"task": "tensor", "dump_path": os.path.join(folder, "out"), "rank": [], "step": [], "level": "L1",
                   "risk_level": "ALL", "tensor": {"scope": [], "list": [], "data_mode": ["all"]}}, f)
    true = F.gelu

    def gelu(x):
        return true(x) * 1.01
    F.gelu = gelu
    debugger = PrecisionDebugger(config_path=config)
    torch.manual_seed(3)

    def r(*shape, dtype=torch.float32):
        return torch.randn(*shape).to(dtype).requires_grad_()
    debugger.start()
    F.layer_norm(r(4, 6, dtype=torch.bfloat16), (6,), r(6, dtype=torch.bfloat16)).sum().backward()
    F.conv2d(r(2, 3, 6, 6), r(4, 3, 3, 3), padding=1).sum().backward()
    F.softmax(r(4, 6), dim=-1)
    F.cross_entropy(r(4, 6), torch.tensor([1, 2, -100, 0]))
    r(4, 6).detach().mul_(0.3)
    torch.cat([r(2, 3), r(2, 3)], dim=1)
    F.embedding(torch.tensor([[1, 2], [0, 3]]), r(5, 4))
    F.gelu(r(4, 6))
    debugger.stop()
    debugger.step()
    top = os.path.join(folder, "out", "step0")
    return os.path.join(top, os.listdir(top)[0], "dump.json")


def run(msprobe, source, name, folder):
    """Writes the program and runs it; what was said, and pairs of distances."""
    out = os.path.join(folder, name or "first")
    words = [msprobe, "reproduce", source, *([name] if name else []), "-o", out, "--format", "json"]
    said = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    line = subprocess.run([sys.executable, "-I", os.path.join(out, "reproduce.py")], env={}, cwd="/", check=True,
                          capture_output=True, text=True, timeout=120).stdout
    assert line.count("\n") == 1, line
    return said, [(float(a), float(b)) for a, b in LINE.findall(line)]


def main():
    msprobe, folder = sys.argv[1:3]
    os.makedirs(folder, exist_ok=True)
    source = dump(folder)
    bad = 0
    for name, want in CASES:
        said, pairs = run(msprobe, source, name, folder)
        if not pairs or any(abs(a - b) > 2000 for a, b in pairs) or (want == "minimised") != said["minimised"]:
            bad += 1
            print(name, said, pairs)
    said, pairs = run(msprobe, source, None, folder)  # the first that errs
    if said["operator"] != "Functional.gelu.0.forward" or not pairs or not pairs[0][0] > 1000 * pairs[0][1]:
        bad += 1
        print("the planted fault", said, pairs)
    print(f"{len(CASES) + 1} programs, {bad} not as they should be")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
