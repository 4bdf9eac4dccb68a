# SPDX-License-Identifier: MIT
"""request_id and scheduled_tokens beside the official tool: the tokens of one request in a batch, as vLLM asks.

    request_oracle.py BUILD        PYTHON is one with PyTorch and mindstudio-probe
"""
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = """
import sys, torch
from msprobe.pytorch import PrecisionDebugger
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))
debugger = PrecisionDebugger(config_path=sys.argv[1])
if debugger.config.level not in ("L0", "L1", "mix"):
    raise SystemExit("no level")
batches = [{"a": 3, "b": 2, "c": 4}, {"a": 1, "c": 2}, {"b": 5}, None, {"b": 0}, {"c": 1, "b": 3}]
for tokens in batches:
    count = sum(tokens.values()) if tokens else 4
    debugger.start(net, scheduled_tokens=tokens)
    net(torch.arange(max(count, 1) * 4).float().reshape(-1, 4))
    debugger.stop()
    debugger.step()
"""


def dumps(folder):
    out = {}
    for base, _, names in os.walk(folder):
        if "dump.json" in names:
            step = os.path.relpath(base, folder).split(os.sep)[0]
            with open(os.path.join(base, "dump.json"), encoding="utf-8") as f:
                data = json.load(f)["data"]
            out[step] = {name: leaves(record) for name, record in data.items()}
    return out


def leaves(value):
    """Shapes and figures of a record, rounded as both tools write them."""
    if isinstance(value, dict):
        return {k: leaves(v) for k, v in value.items() if k not in ("data_name", "requires_grad")}
    if isinstance(value, list):
        return [leaves(v) for v in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def main(build):
    rc = 0
    for level in ("L0", "L1", "mix"):
        with tempfile.TemporaryDirectory() as at:
            made = {}
            for who, path in (("official", ""), ("ours", os.path.join(build, "python"))):
                config = {"task": "statistics", "dump_path": os.path.join(at, who), "rank": [], "step": [], "level": level,
                          "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics", "request_id": "b"}}
                file = os.path.join(at, who + ".json")
                with open(file, "w", encoding="utf-8") as f:
                    json.dump(config, f)
                done = subprocess.run([sys.executable, "-c", PROGRAM, file], capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=path))
                if done.returncode != 0:
                    print(done.stderr)
                    return 1
                made[who] = dumps(os.path.join(at, who))
            same = made["official"] == made["ours"]
            rc |= not same
            print(f"{'ok' if same else 'FAIL'} request_id at {level}: {len(made['ours'])} steps as the official tool's")
            if not same:
                for step in sorted(set(made["official"]) | set(made["ours"])):
                    a, b = (made[w].get(step) for w in ("official", "ours"))
                    if a != b:
                        print(step, json.dumps(a)[:600], "\n  ours", json.dumps(b)[:600])
    return rc


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
