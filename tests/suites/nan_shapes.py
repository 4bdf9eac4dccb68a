# SPDX-License-Identifier: MIT
"""One NaN planted in a real dump: do stat, check, overflow_check, compare, view and serve name the same operator?

    nan_shapes.py MSPROBE SCRATCH [DUMP...]

Dumps of ../shared/golden of several ranks, steps, levels and frameworks. An operator in the middle of one of them gets an
output that is not finite, and so does all that comes behind it in that rank and step. A dump whose attention masks with
-inf has no operator to name. Prints "ok nan DUMP" or "not ok nan DUMP".
"""
import glob
import json
import math
import os
import re
import shutil
import sys

import nan_answers

GOLDEN = "../shared/golden"
SHAPES = ["ranks4", "steps2", "stat_L0", "stat_L1", "stat_scale", "cross_a", "cross_b", "stat_attrs", "stat_weight"]
FIGURES = ("Max", "Min", "Mean", "Norm")


def tensors_of(record):
    """Tensors of a record, with whether they are results."""
    def walk(value, is_result):
        if isinstance(value, dict) and "shape" in value and "Max" in value:
            yield value, is_result
        elif isinstance(value, (list, dict)):
            for part in (value.values() if isinstance(value, dict) else value):
                yield from walk(part, is_result)
    if isinstance(record, dict):
        for part, value in record.items():
            yield from walk(value, part == "output")


def is_float(tensor):
    return "float" in tensor.get("dtype", "").lower() and isinstance(tensor["Max"], (int, float))


def spoil(tensor):
    tensor.update({f: float("nan") for f in FIGURES if f in tensor})


def plant(path, share):
    """Makes the dump.json wrong from an operator on; returns the operator."""
    with open(path, encoding="utf-8") as f:
        dump = json.load(f)
    names = [n for n, r in dump["data"].items() if ".forward" in n and not n.startswith("Module.") and not n.startswith("Cell.")
             and any(is_result and is_float(t) for t, is_result in tensors_of(r))]
    names = names or [n for n, r in dump["data"].items() if ".forward" in n and any(is_result and is_float(t) for t, is_result in tensors_of(r))]
    first = names[int(len(names) * share)]
    behind = False
    for name, record in dump["data"].items():
        for tensor, is_result in tensors_of(record):
            if is_float(tensor) and (behind or name == first and is_result):
                spoil(tensor)
        behind = behind or name == first
    with open(path, "w", encoding="utf-8") as f:
        json.dump(dump, f)
    return first


def mask(path):
    """Fills with -inf where attention masks, up to the softmax that reads it; tells whether something was masked."""
    with open(path, encoding="utf-8") as f:
        dump = json.load(f)
    masked = False
    for name, record in dump["data"].items():
        fills, reads = "masked_fill" in name, "softmax" in name
        for tensor, is_result in tensors_of(record):
            if ".forward" in name and is_float(tensor) and (fills and is_result or reads and masked and not is_result):
                tensor.update({"Min": -math.inf, "Mean": -math.inf, "Norm": math.inf})
                masked = True
    with open(path, "w", encoding="utf-8") as f:
        json.dump(dump, f)
    return masked


def copied(golden, dump):
    """A copy that may be changed."""
    shutil.rmtree(dump, ignore_errors=True)
    shutil.copytree(golden, dump)
    for folder, _, files in os.walk(dump):
        for name in [folder] + [os.path.join(folder, f) for f in files]:
            os.chmod(name, 0o755)
    return dump


def main():
    program, scratch, *only = sys.argv[1:]
    failed = 0
    for shape in only or SHAPES:
        golden = os.path.join(GOLDEN, shape, "target")
        paths = sorted(glob.glob(golden + "/**/dump.json", recursive=True))
        if not paths:
            print(f"skip nan in {shape}: no ../shared/golden")
            continue
        for n, share in enumerate((0.3, 0.7)):
            dump = copied(golden, os.path.join(scratch, f"{shape}_{n}"))
            path = os.path.relpath(paths[len(paths) * (n + 1) // 3 if len(paths) > 1 else 0], golden)
            wanted = plant(os.path.join(dump, path), share)
            failed += nan_answers.show(f"{shape} at {re.sub('/dump.json', '', path)} {wanted}", wanted, nan_answers.answers(program, dump, golden))
        dump = copied(golden, os.path.join(scratch, shape + "_masked"))
        if any([mask(path) for path in glob.glob(dump + "/**/dump.json", recursive=True)]):
            failed += nan_answers.show(f"{shape} with masks", None, nan_answers.answers(program, dump, dump))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
