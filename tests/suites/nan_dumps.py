# SPDX-License-Identifier: MIT
"""Small dumps written here, one NaN or infinity in each: do all commands that judge them name the same operator?

    nan_dumps.py MSPROBE SCRATCH

They are of several ranks and steps, of PyTorch and MindSpore, of modules alone, operators alone and both, and the value
stands where real dumps have it: in a parameter, a gradient, one of several results, an argument by keyword, nested, in
Max alone.  Healthy ones have masks, empty tensors, tensors without figures and numbers that are no tensors.
Prints "ok nan CASE" or "not ok nan CASE".
"""
import copy
import json
import math
import os
import sys

import nan_answers

NAN, INF = math.nan, math.inf


def tensor(value=1.0, dtype="torch.float32", shape=(2, 4), kind="torch.Tensor"):
    """Figures of a tensor whose largest value this is."""
    small = value if math.isnan(value) else -1.0
    mean = value if not math.isfinite(value) else value / 2
    return {"type": kind, "dtype": dtype, "shape": list(shape), "Max": value, "Min": small, "Mean": mean,
            "Norm": abs(mean) * 2, "requires_grad": False}


def masked():
    return dict(tensor(), Min=-INF, Mean=-INF, Norm=INF)


def call(inputs, outputs, **keywords):
    return {"input_args": inputs, "input_kwargs": keywords, "output": outputs}


def chain(names, first=None, value=NAN, result=0):
    """Calls in a row, each with two results; from `first` on the values are not finite, of `first` itself its one result."""
    data, bad = {}, False
    for name in names:
        makes = name == first
        outputs = [tensor(value if bad or makes and i == result else 1.0) for i in range(2)]
        data[name] = call([tensor(value if bad else 1.0)], outputs)
        bad = bad or makes
    return data


FORWARD = ["Functional.embedding.0.forward", "Functional.linear.0.forward", "Torch.exp.0.forward", "Functional.softmax.0.forward",
           "Tensor.matmul.0.forward", "Functional.mse_loss.0.forward"]
MODULES = ["Module.net.emb.Embedding.forward.0", "Module.net.layers.0.attn.Attention.forward.0", "Module.net.layers.0.Layer.forward.0",
           "Module.net.layers.1.attn.Attention.forward.0", "Module.net.layers.1.Layer.forward.0", "Module.net.Net.forward.0"]
CELLS = ["Functional.embedding.0.forward", "Mint.matmul.0.forward", "Primitive.softmax.0.forward", "Cell.net.dense.Dense.forward.0"]
TREE = {m: (MODULES[2] if "0.attn" in m else MODULES[4] if "1.attn" in m else None if m == MODULES[5] else MODULES[5]) for m in MODULES}


def backward(first=None):
    """Operators forward and backward, and gradients of a parameter."""
    data = chain(FORWARD)
    bad = False
    for name in ("Functional.mse_loss.0.backward", "Tensor.matmul.0.backward", "Functional.linear.0.backward"):
        makes = name == first
        data[name] = {"input": [tensor(NAN if bad else 1.0)], "output": [tensor(NAN if bad or makes else 1.0)]}
        bad = bad or makes
    data["Module.net.fc.Linear.parameters_grad"] = {"weight": [tensor(NAN if bad else 1.0)]}
    return data


def of_modules(first=None):
    """Nested modules: what surrounds the one that makes the value has it in its own results too."""
    data, bad = {}, False
    for name in MODULES:
        around = first is not None and (name == first or TREE.get(first) == name or name == MODULES[5])
        data[name] = dict(call([tensor(NAN if bad and not around else 1.0)], [tensor(NAN if bad or around else 1.0)]),
                          parameters={"weight": tensor()})
        bad = bad or name == first
    return data


def with_parameter():
    data = of_modules(MODULES[1])
    data[MODULES[1]]["parameters"]["weight"] = tensor(NAN)
    return data


def in_max_alone():
    data = chain(FORWARD, "Tensor.matmul.0.forward")
    data["Tensor.matmul.0.forward"]["output"][0].update(Min=-1.0, Mean=0.5, Norm=2.0)
    return data


def from_data():
    data = chain(FORWARD, FORWARD[0])
    data[FORWARD[0]]["input_args"] = [tensor(NAN)]
    return data


def nested(first=None):
    data = chain(FORWARD, first)
    data["Functional.linear.0.forward"]["output"] = [{"hidden": [tensor(), [tensor(), tensor(NAN if first else 1.0)]], "past": None}, 3]
    return data


def by_keyword():
    """The first operator gets it by keyword."""
    data = chain(FORWARD, FORWARD[0])
    data[FORWARD[0]]["input_kwargs"] = {"weight": tensor(NAN)}
    return data


def masks(softmax=FORWARD[3]):
    data = chain(FORWARD)
    data[softmax]["input_args"] = [masked()]
    data["Tensor.masked_fill.0.forward"] = call([tensor(), tensor(1.0, "torch.bool")], [masked()])
    return data


def odd_but_healthy():
    data = chain(FORWARD)
    ids = dict(tensor(7.0, "torch.int64"), Mean=None, Norm=None)
    empty = dict(tensor(shape=(0,)), Max=None, Min=None, Mean=None, Norm=None)
    data[FORWARD[0]]["input_args"] = [ids, empty, {"type": "float", "value": -INF}, {"type": "NoneType", "value": None}, None]
    data[FORWARD[1]]["input_kwargs"] = {"inf": {"type": "float", "value": INF}, "text": {"type": "str", "value": "nan"}}
    return data


def place(step, rank):
    return os.path.join(f"step{step}", f"rank{rank}" if rank is not None else "rank")


# Name: framework, level, where the dumps lie, which of them has the value, its records, those without, and the operator.
ONE = [(0, 0)]
MANY = [(step, rank) for step in range(3) for rank in range(4)]
CASES = {
    "one rank of four in the second step": ("pytorch", "L1", MANY, (1, 2), lambda f: chain(FORWARD, f), "Torch.exp.0.forward"),
    "the last step of one process": ("pytorch", "L1", [(s, None) for s in (0, 5, 10)], (10, None), lambda f: chain(FORWARD, f), "Functional.linear.0.forward"),
    "MindSpore, one rank of two": ("mindspore", "mix", [(0, 0), (0, 1)], (0, 1), lambda f: chain(CELLS, f), "Mint.matmul.0.forward"),
    "a cell of MindSpore": ("mindspore", "L0", ONE, (0, 0), lambda f: chain([CELLS[3], "Cell.net.act.ReLU.forward.0"], f), CELLS[3]),
    "an inner module": ("pytorch", "L0", ONE, (0, 0), of_modules, MODULES[3]),
    "a parameter of a module": ("pytorch", "L0", ONE, (0, 0), lambda f: with_parameter() if f else of_modules(), MODULES[1]),
    "a gradient": ("pytorch", "L1", ONE, (0, 0), backward, "Tensor.matmul.0.backward"),
    "infinity first": ("pytorch", "mix", ONE, (0, 0), lambda f: chain(FORWARD, f, INF), "Torch.exp.0.forward"),
    "minus infinity first": ("pytorch", "L1", ONE, (0, 0), lambda f: chain(FORWARD, f, -INF), "Tensor.matmul.0.forward"),
    "the second result": ("pytorch", "L1", ONE, (0, 0), lambda f: chain(FORWARD, f, NAN, 1), "Functional.softmax.0.forward"),
    "Max alone": ("pytorch", "L1", ONE, (0, 0), lambda f: in_max_alone() if f else chain(FORWARD), "Tensor.matmul.0.forward"),
    "nested in a result": ("pytorch", "L1", ONE, (0, 0), nested, "Functional.linear.0.forward"),
    "from the data": ("pytorch", "L1", ONE, (0, 0), lambda f: from_data() if f else chain(FORWARD), FORWARD[0]),
    "by keyword": ("pytorch", "L1", ONE, (0, 0), lambda f: by_keyword() if f else chain(FORWARD), FORWARD[0]),
    "masks": ("pytorch", "L1", [(0, 0), (1, 0)], (1, 0), lambda f: masks(), None),
    "empty, absent and numbers": ("pytorch", "L1", ONE, (0, 0), lambda f: odd_but_healthy(), None),
    "modules in order": ("pytorch", "L0", ONE, (0, 0), lambda f: of_modules(), None),
    "gradients in order": ("pytorch", "L1", ONE, (0, 0), lambda f: backward(), None),
}


def write(folder, framework, level, records):
    os.makedirs(folder)
    data = copy.deepcopy(records)
    tree = {name: TREE.get(name) for name in data if not name.endswith("parameters_grad")} if level != "L1" else {}
    if framework == "mindspore":
        data = json.loads(json.dumps(data).replace("torch.Tensor", "mindspore.Tensor").replace("torch.float32", "Float32"))
    for name, value in (("dump", {"task": "statistics", "level": level, "framework": framework, "dump_data_dir": None, "data": data}),
                        ("construct", tree), ("stack", {})):
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as f:
            json.dump(value, f)


def main():
    program, scratch = sys.argv[1:]
    failed = 0
    for number, (name, (framework, level, places, bad, make, wanted)) in enumerate(CASES.items()):
        dump, golden = (os.path.join(scratch, f"written_{number}{end}") for end in ("", "_golden"))
        for where in places:
            write(os.path.join(dump, place(*where)), framework, level, make(wanted if where == bad else None))
            write(os.path.join(golden, place(*where)), framework, level, make(None))
        failed += nan_answers.show(name, wanted, nan_answers.answers(program, dump, golden))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
