# SPDX-License-Identifier: MIT
"""The section "load" of config.json beside the official tool: what modules compute on another run's inputs.

    load_oracle.py BUILD        PYTHON is one with PyTorch and mindstudio-probe
"""
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = """
import json, sys, torch
from msprobe.pytorch import PrecisionDebugger
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
    def forward(self, x, scale=None):
        return self.lin(x) * (1 if scale is None else scale)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Block(), Block()
    def forward(self, x):
        return self.b(self.b(self.a(x)), scale=x.mean())
torch.manual_seed(0)
net = Net()
debugger = PrecisionDebugger(config_path=sys.argv[1])
out = []
for step in range(3):
    x = torch.full((2, 4), float(sys.argv[2]) + step, requires_grad=True)
    debugger.start(net)
    y = net(x)
    y.sum().backward()
    debugger.stop()
    debugger.step()
    out.append([v for row in y.tolist() for v in row] + [0.0 if net.a.lin.weight.grad is None else float(net.a.lin.weight.grad.sum())])
print("\\n" + json.dumps(out))
"""


def run(path, config, value):
    done = subprocess.run([sys.executable, "-c", PROGRAM, config, str(value)], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=path))
    if done.returncode != 0:
        print(done.stderr)
        sys.exit(1)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main(build):
    rc = 0
    packages = {"official": "", "ours": os.path.join(build, "python")}
    with tempfile.TemporaryDirectory() as at:
        def written(name, **config):
            path = os.path.join(at, name + ".json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(config, f)
            return path

        source = os.path.join(at, "source")
        run("", written("source", task="tensor", level="L0", dump_path=source, tensor={}), 1)
        plain = run("", written("plain", task="statistics", level="L0", dump_path=os.path.join(at, "plain"), statistics={}), 5)
        cases = [({"modules": ["Module.b.Block.forward.0"]}, "L0"), ({"modules": ["Module.b.Block.forward.1"]}, "L0"),
                 ({"modules": ["Module.a.Block.forward.0", "Module.b.lin.Linear.forward.1"]}, "L1"),
                 ({"modules": ["Module.Net.forward.0"], "step": [1]}, "mix"),
                 ({"modules": ["Module.b.Block.forward.0"], "rank": [3]}, "L0"),
                 ({"modules": ["Module.none.Block.forward.0"]}, "L0"),
                 ({"modules": ["Module.b.Block.forward.0"], "dump_after_load": True}, "L0")]
        for number, (load, level) in enumerate(cases):
            made = {}
            for who, package in packages.items():
                folder = os.path.join(at, f"{who}{number}")
                config = written(f"{who}{number}", task="tensor", level=level, dump_path=folder, tensor={}, load=dict(load, path=source))
                made[who] = run(package, config, 5), os.path.isdir(folder) and any("dump.json" in f for _, _, f in os.walk(folder))
            same = made["official"] == made["ours"]
            rc |= not same
            print(f"{'ok' if same else 'FAIL'} load {load} at {level}: as the official tool"
                  f"{', unlike the plain run' if made['ours'][0] != plain else ''}")
            if not same:
                print(made, plain)
    return rc


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
