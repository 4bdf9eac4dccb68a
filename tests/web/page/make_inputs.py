# SPDX-License-Identifier: MIT
"""Small inputs for the tests of the page: a pair of dumps t and g with a layer that
is wrong, and a Chrome trace run.json of four ranks with one slow step.

    make_inputs.py DIRECTORY
"""
import json
import os
import sys

RANKS, STEPS, LAYERS = 2, 2, 6
ODD = ["\u0645\u0635\u0641\u0648\u0641\u0629", "n" * 5000]  # from right to left, and far too long
MARKUP = '<img src=x onerror="window.hacked=1">'


def leaf(x, shape=(2, 3)):
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": list(shape), "Max": x, "Min": -x, "Mean": x / 3, "Norm": x * 2,
            "requires_grad": True}


def put(top, step, rank, wrong):
    d = os.path.join(top, f"step{step}", f"rank{rank}")
    os.makedirs(d)
    data, construct, stacks = {}, {"Module.m.Net.forward.0": None}, {}

    def add(name, parent, a, b):
        data[name] = {"input_args": [leaf(a)], "output": [leaf(b)]}
        construct[name] = parent
        stacks[name] = ["File model.py, line 7, in forward, \n y = f(x)"]
    value = 1.0
    for i in range(LAYERS):
        layer = f"Module.m.layers.{i}.Block.forward.0"
        construct[layer] = "Module.m.Net.forward.0"
        bad = wrong and i >= 3
        data[layer] = {"input_args": [leaf(value * (9 if wrong and i > 3 else 1))], "output": [leaf((value + 1) * (9 if bad else 1))]}
        add(f"Torch.matmul.{i}.forward", layer, value * (9 if wrong and i > 3 else 1), value + 0.5)
        add(f"Functional.softmax.{i}.forward", layer, value + 0.5, (value + 1) * (9 if bad else 1))
        value += 1
    reduce = "Distributed.all_reduce.0.forward"
    data[reduce] = {"input_args": [leaf(2.0)], "output": [leaf(2.0)],
                    "input_kwargs": {"group": {"type": "torch.ProcessGroup", "group_ranks": list(range(RANKS)), "group_id": "1"}}}
    construct[reduce] = "Module.m.Net.forward.0"
    for odd in ODD:
        add(f"Torch.{odd}.0.forward", "Module.m.Net.forward.0", 1.0, 1.0)
    if wrong:
        add(f"Torch.{MARKUP}.0.forward", "Module.m.Net.forward.0", 1.0, 1.0)
    data["Module.m.Net.forward.0"] = {"input_args": [leaf(1.0)], "output": [leaf(value * (9 if wrong else 1))]}
    with open(os.path.join(d, "dump.json"), "w") as f:
        json.dump({"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None, "data": data}, f)
    with open(os.path.join(d, "construct.json"), "w") as f:
        json.dump(construct, f)
    with open(os.path.join(d, "stack.json"), "w") as f:
        json.dump({"0": [list(stacks), list(stacks.values())[0]]}, f)


def trace():
    events = []
    for r in range(4):
        events.append({"name": "process_name", "ph": "M", "pid": r, "args": {"name": f"rank {r}"}})
        t = 0
        for s in range(30):
            d = 1600 if s == 17 else 1000 + (7 * s + 3 * r) % 50
            events.append({"name": f"step {s}", "ph": "X", "pid": r, "tid": 1, "ts": t, "dur": d})
            x = t + 5
            for layer in range(8):
                w = d / 10
                events += [{"name": f"layer{layer}.forward", "ph": "X", "pid": r, "tid": 1, "ts": x, "dur": w * 0.7},
                           {"name": MARKUP if s == 3 else "matmul", "ph": "X", "pid": r, "tid": 1, "ts": x + 1, "dur": w * 0.4},
                           {"name": "AllReduce", "ph": "X", "pid": r, "tid": 2, "ts": x + w * 0.3, "dur": w * 0.5, "cat": "communication"},
                           {"name": "mem", "ph": "C", "pid": r, "ts": x, "args": {"mem": layer * 100 + s}}]
                x += w
            t += d + 10
    return events


top = sys.argv[1]
for step in range(STEPS):
    for rank in range(RANKS):
        put(os.path.join(top, "t"), step, rank, wrong=rank == 1 or step == 0)
        put(os.path.join(top, "g"), step, rank, wrong=False)
with open(os.path.join(top, "run.json"), "w") as f:
    json.dump(trace(), f)
