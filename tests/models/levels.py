# SPDX-License-Identifier: MIT
"""Dumps of level L0 or L1 made from a dump of level mix, and what is a right answer in them.

A dump of level mix holds the nodes of both levels with the same values, so leaving nodes out makes the dump
that the other level writes. L0 has no operators: right is the module around the change, or a module
directly in it, which reads the changed value; outside of all modules, the first module whose inputs differ.
"""
import json
import os
import re


def is_kept(level, name):
    return name.startswith("Module.") == (level == "L0")


def derive(level, folder, name):
    """Writes FOLDER/.LEVEL/NAME once; returns its path."""
    out = os.path.join(folder, "." + level, name)
    if os.path.exists(out + "/dump.json"):
        return out
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(folder, name, "construct.json"), encoding="utf-8") as f:
        construct = json.load(f)
    with open(os.path.join(folder, name, "dump.json"), encoding="utf-8") as f:
        dump = json.load(f)
    dump["level"] = level
    dump["data"] = {k: v for k, v in dump["data"].items() if is_kept(level, k)}
    kept = {k: v for k, v in construct.items() if is_kept(level, k)} if level == "L0" else {}
    for file, content in (("construct.json", kept), ("dump.json", dump)):
        with open(os.path.join(out, file), "w", encoding="utf-8") as f:
            json.dump(content, f)
    return out


def parent(construct, name):
    found = construct.get(name)
    return found[0] if isinstance(found, list) and found else found


def path_of(name):
    m = re.match(r"Module\.(.*)\.\w+\.(?:forward|backward|parameters_grad)(?:\.\d+)?$", name or "")
    return m.group(1) if m else ""


def modules_of_truth(truth, sides, place):
    """Paths of the modules around what matches the truth; "" is outside of all modules."""
    found = set()
    for construct in sides:
        for name in construct:
            if re.search(truth, f"{name} @ {place(name, construct)}"):
                found.add(path_of(name) or path_of(parent(construct, name)))
    return found


def numbers(entry):
    """All figures of a node, its inputs apart from the rest."""
    def walk(x):
        if isinstance(x, dict):
            for k, v in x.items():
                if k in ("Max", "Min", "Mean", "Norm"):
                    yield v
                else:
                    yield from walk(v)
        elif isinstance(x, list):
            for y in x:
                yield from walk(y)
    inside = ("input", "input_args", "input_kwargs")
    return ([v for k in inside for v in walk(entry.get(k))],
            [v for k, x in entry.items() if k not in inside for v in walk(x)])


def differ(a, b, slack=1e-6):
    def apart(x, y):
        if x is None or y is None or isinstance(x, str) or isinstance(y, str):
            return x != y
        return abs(x - y) > slack * max(abs(x), abs(y)) + 1e-12
    return len(a) != len(b) or any(apart(x, y) for x, y in zip(a, b))


def first_differences(folders):
    """First node whose inputs differ, of each direction; no entry: nothing differs."""
    data = []
    for folder in folders:
        with open(folder + "/dump.json", encoding="utf-8") as f:
            data.append(json.load(f)["data"])
    first = {}
    for name, entry in data[0].items():
        other = data[1].get(name)
        if other is None:
            first.setdefault("alone", name)
            continue
        for kind, x, y in zip(("in", "any"), numbers(entry), numbers(other)):
            if differ(x, y):
                direction = "backward" if ".backward" in name else "forward"
                first.setdefault(direction if kind == "in" else "any", name)
    return first


def is_right_module(name, modules, first):
    path = path_of(name)
    inside = any(path == m or (m and path.rpartition(".")[0] == m) for m in modules if m)
    return inside or ("" in modules and name in (first.get("forward"), first.get("backward")))
