# SPDX-License-Identifier: MIT
"""Two dumps of one program beside each other, ours and the official tool's: what torch_oracle.py and
mindspore_oracle.py have in common.

Records, their order, keys, types, shapes, texts, stacks and parents must be equal; Mean and Norm may
differ in the last bits, as they are sums made in another order.
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

TOLERANCE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


def tolerance_of(leaf):
    """MindSpore's other numbers are reduced as float32."""
    framework, _, name = leaf.get("dtype", "").rpartition(".")
    return TOLERANCE.get(name.lower(), 0 if framework else 1e-5)


# ---- comparing --------------------------------------------------------------------


def load(root, name, step=1):
    with open(glob.glob(f"{root}/step{step}/*/{name}")[0], encoding="utf-8") as f:
        return json.load(f)


def is_close(a, b, leaf):
    """A sum that cancels is as exact as its largest part."""
    if a != a or b != b or a == b:
        return a == b or (a != a and b != b)
    size = max(abs(leaf.get(key) or 0) for key in ("Max", "Min", "Norm"))
    if max(abs(a), abs(b)) < 1e-18:  # squares below what a float holds
        return True
    return abs(a - b) <= tolerance_of(leaf) * max(abs(a), abs(b), size)


def differences(a, b, path="", leaf=None):
    """Where two documents differ, as text; leaf: the official object around them."""
    if isinstance(a, dict) and isinstance(b, dict):
        if list(a) != list(b):
            yield f"{path}: keys {sorted(set(a) ^ set(b)) or 'in another order'}"
        for key in a:
            if key in b:
                yield from differences(a[key], b[key], f"{path}/{key}", a)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, f"{path}/{i}", leaf)
    elif isinstance(a, float) and isinstance(b, float) and path.endswith(("Mean", "Norm")):
        if not is_close(a, b, leaf):
            yield f"{path}: {a} and {b}"
    elif a != b and not (a != a and b != b) or type(a) is not type(b):
        yield f"{path}: {a!r} and {b!r}"


def without_optimizer(parents):
    names = ("optimizer", "clip_grad")
    return {k: None if v in names else v for k, v in parents.items() if k not in names}


def without_replaced(stacks):
    """The official tool stands in for a function of MindSpore, whose frame it has not."""
    return {key: [names, [f for f in frames if "self._executor.grad(grad, obj" not in f]]
            for key, (names, frames) in stacks.items()}


def without_script(stacks):
    """The script that starts the programs may have other lines than when a dump was recorded."""
    return {key: [names, [f for f in frames if "_oracle.py, line " not in f]]
            for key, (names, frames) in stacks.items()}


def without_tool(stacks, ours):
    """A hook of the official tool is a cell of MindSpore, whose own frames come first in its stacks."""
    return {key: [names, frames[-len(ours[key][1]):] if key in ours and names == ours[key][0] and
                  frames[:1] and "check_jit_forbidden" in frames[0] else frames]
            for key, (names, frames) in stacks.items()}


def compare(ours, official):
    for step in (0, 1):
        a, b = (load(root, "dump.json", step) for root in (official, ours))
        a["dump_data_dir"] = b["dump_data_dir"] = None
        yield from differences(a, b)
        a, b = (without_optimizer(load(root, "construct.json", step)) for root in (official, ours))
        yield from differences(a, b, "construct")
        a, b = (load(root, "stack.json", step) for root in (official, ours))
        yield from differences(without_tool(a, b), b, "stack")


def hold_the_same(path, other):
    """Files are equal to the byte; or, as later versions of PyTorch have more in theirs, as tensors."""
    if open(path, "rb").read() == open(other, "rb").read():
        return True
    if not path.endswith(".pt"):
        return False
    import torch
    a, b = (torch.load(p, weights_only=True).contiguous() for p in (path, other))
    return a.dtype == b.dtype and a.shape == b.shape and \
        a.reshape(-1).view(torch.uint8).equal(b.reshape(-1).view(torch.uint8))


def files_differ(ours, official):
    """Files of tensors must be equal."""
    for path in sorted(glob.glob(f"{official}/step*/*/dump_tensor_data/*")):
        step, name = path.split("/step")[1].split("/")[0], os.path.basename(path)
        mine = glob.glob(f"{ours}/step{step}/*/dump_tensor_data/{name}")
        if not mine or not hold_the_same(path, mine[0]):
            yield f"{name} of step {step}"


def dumped(root):
    """What is in a dump: step/name -> path, whatever the folder of the process is called."""
    paths = (p for p in glob.glob(f"{root}/**/*", recursive=True) if os.path.isfile(p))
    found = {}
    for path in paths:
        step, _, name = os.path.relpath(path, root).partition("/")
        if not name.endswith(".log"):
            found[f"{step}/{name.partition('/')[2]}"] = path
    return found


def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def compare_documents(name, ours, official, is_strict):
    """One .json of both."""
    a, b = read(official), read(ours)
    if name.endswith("construct.json"):
        if not is_strict:
            a, b = without_optimizer(a), without_optimizer(b)
    elif name.endswith("stack.json"):
        a, b = without_script(a), without_script(without_replaced(b))
        a = a if is_strict else without_tool(a, b)
    else:
        a["dump_data_dir"] = b["dump_data_dir"] = None
    yield from differences(a, b, name)


def compare_trees(ours, official, is_strict=False):
    """All files of two dumps, those of tensors to the byte; is_strict: stacks and parents, too."""
    a, b = dumped(official), dumped(ours)
    if set(a) != set(b):
        yield f"files {sorted(set(a) - set(b))} and {sorted(set(b) - set(a))}"
    for name in sorted(set(a) & set(b)):
        if name.endswith(".json"):
            yield from compare_documents(name, b[name], a[name], is_strict)
        elif open(a[name], "rb").read() != open(b[name], "rb").read():
            yield f"the bytes of {name}"


def graph_files(root):
    """What the framework dumped of graphs: name without the time -> contents, in the order of time."""
    found = {}
    for path in sorted(glob.glob(f"{root}/rank_*/**/*", recursive=True)):
        if path.endswith((".npy", ".csv")):
            name = re.sub(r"\.\d{13,}\.", ".", os.path.relpath(path, root))
            found.setdefault(name, []).append(open(path, "rb").read())
    return found


def compare_graphs(ours, official):
    """Dumps of graphs: all files, to the byte."""
    a, b = graph_files(official), graph_files(ours)
    if not a or set(a) != set(b):
        yield f"{len(a)} and {len(b)} files, {sorted(set(a) - set(b))[:3]} and {sorted(set(b) - set(a))[:3]}"
    for name in sorted(set(a) & set(b)):
        if a[name] != b[name]:
            yield f"the bytes of {name}"


# ---- running -------------------------------------------------------------------------


def run(path, *args):
    env = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *args], env=env, capture_output=True, text=True)


def last_line(out):
    lines = out.stdout.strip().splitlines()
    return lines[-1] if lines else ""


def dump(script, path, folder, which, name, keys):
    """Run `script - - NAME CONFIG` with the package at `path`: where it dumped, and what it said last."""
    config, out = os.path.join(folder, f"{which}.json"), os.path.join(folder, which)
    with open(config, "w", encoding="utf-8") as f:
        json.dump({"task": "statistics", "dump_path": out, "rank": [], "step": [], **keys}, f)
    got = run(path, script, "-", "-", name, config)
    if got.returncode != 0:
        raise RuntimeError(f"{which}: {got.stderr[-2000:]}")
    return out, last_line(got)


def check(script, build, official, name, label, keys, known=None):
    """known: a pattern of differences that are not ours to mend."""
    title = f"{name}_{label}_is_as_the_official_tool_writes_it"
    with tempfile.TemporaryDirectory() as folder:
        try:
            ours, loss = dump(script, os.path.join(build, "python"), folder, "ours", name, keys)
            theirs, other = dump(script, official, folder, "official", name, keys)
            wrong = [] if loss == other else [f"loss {loss} and {other}"]
            if keys.get("extra_info", True):
                wrong += compare(ours, theirs)
            else:
                wrong += differences(load(theirs, "dump.json"), load(ours, "dump.json"))
            wrong += files_differ(ours, theirs)
        except RuntimeError as why:
            wrong = [str(why)]
    wrong = [w for w in wrong if known is None or not known.search(w)]
    print(f"not ok {title}" if wrong else f"ok {title}", flush=True)
    for line in wrong[:int(os.environ.get("LINES", "8"))]:
        print("   ", line[:int(os.environ.get("WIDTH", "300"))])
    return not wrong
