# SPDX-License-Identifier: MIT
"""Why is a run slower than another one?  Pairs of generated traces with a planted change, and without.

    python3 tests/suites/against.py MSPROBE FOLDER [--pairs N] [--equal N] [--seed N]

A trace is what PyTorch's profiler writes of a training: operators that hold operators on one thread,
loading of data, and, where the kind has a device, launches, kernels and a synchronisation at the end
of a step.  Each duration scatters; now and then another program stops the thread for a while.
A planted change makes a step longer by 2 % or more; hidden ones make something longer for which
nobody waits.  One line for each pair that is wrong, then the sums.
"""
import argparse
import json
import os
import random
import subprocess
import sys

LAYERS = 6
OPERATORS = [("aten::linear", "aten::addmm", 300), ("aten::gelu", None, 120), ("aten::layer_norm", "aten::native_layer_norm", 90),
             ("aten::softmax", "aten::_softmax", 60), ("aten::dropout", None, 40)]


class Trace:
    """One process: a thread, and a stream of a device that runs behind it."""

    def __init__(self, rng, busy, rank=0):
        self.rng, self.busy, self.rank = rng, busy, rank
        self.t, self.free, self.link, self.events = 1000.0, 0.0, 0, []

    def add(self, name, start, end, category, tid=1, args=None):
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": 100, "tid": tid, "ts": round(start, 3),
                            "dur": round(round(end, 3) - round(start, 3), 3), **({"args": args} if args else {})})

    def spend(self, us):
        """Works that long, more or less; a busy host makes it longer now and then."""
        self.t += us * self.rng.lognormvariate(0, 0.03)
        if self.rng.random() < self.busy * us / 1000:
            self.t += self.rng.uniform(500, 4000)

    def op(self, name, inner, us, category="cpu_op"):
        start = self.t
        self.spend(us * 0.1)
        if inner:
            within = self.t
            self.spend(us * 0.8)
            self.add(inner, within, self.t, category)
        else:
            self.spend(us * 0.8)
        self.spend(us * 0.1)
        self.add(name, start, self.t, category)

    def kernel(self, op, name, us, stream=7, after=None):
        """Launches a kernel within an operator; it runs when its stream is free."""
        start = self.t
        self.spend(4)
        launch = self.t
        self.spend(6)
        self.link += 1
        args = {"correlation": self.link}
        self.add("cudaLaunchKernel", launch, self.t, "cuda_runtime", args=args)
        begin = max(self.t + 3, self.free if stream == 7 else after or 0)
        end = begin + us * self.rng.lognormvariate(0, 0.01)
        if stream == 7:
            self.free = end
        self.add(name, begin, end, "kernel", stream, {**args, "stream": stream, "device": 0})
        self.spend(3)
        self.add(op, start, self.t, "cpu_op")
        return end

    def synchronize(self):
        start = self.t
        self.t = max(self.t + 2, self.free + 2)
        self.add("cudaDeviceSynchronize", start, self.t, "cuda_runtime")

    def write(self, path):
        self.add("PyTorch Profiler (0)", 0, self.t, "Trace")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"schemaVersion": 1, "distributedInfo": {"rank": self.rank}, "traceEvents": self.events}, f)


def cpu_step(t, plant, scale):
    t.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", None, 300 + (scale if plant == "loader" else 0), "user_annotation")
    for layer in range(LAYERS):
        for name, inner, us in OPERATORS:
            more = scale / LAYERS if plant == "operator" and name == "aten::gelu" else scale if plant == "layer" and layer == 3 and \
                name == "aten::layer_norm" else 0
            t.op(name, inner, us + more)
        if plant == "extra" and layer == 2:
            t.op("aten::sort", None, scale)
    start = t.t
    t.op("aten::_foreach_add_", None, 200 + (scale if plant == "optimizer" else 0))
    t.op("aten::_foreach_sqrt", None, 150)
    t.add("Optimizer.step#AdamW.step", start, t.t, "cpu_op")
    t.spend(200 + (scale if plant == "python" else 0))


def device_step(t, plant, scale):
    t.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", None, 50, "user_annotation")
    for layer in range(LAYERS):
        for name, _, us in OPERATORS:
            more = scale / LAYERS if plant == "kernel" and name == "aten::gelu" else 0
            t.kernel(name, name.replace("aten::", "void ") + "_kernel", us + more)
        if plant == "hidden":  # on a stream for which nobody waits
            t.kernel("aten::copy_", "void side_kernel", scale, stream=9)
        if plant == "extra" and layer == 2:
            t.kernel("aten::sort", "void sort_kernel", scale)
        if plant == "gap" and layer == 4:  # the device runs dry while the thread does something
            t.spend(sum(us for *_, us in OPERATORS) * LAYERS + scale)
    t.synchronize()


NAMES = {"loader": "DataLoader", "operator": "aten::gelu", "layer": "layer_norm", "extra": "sort", "optimizer": "_foreach_add_", "python": "",
         "kernel": "gelu_kernel"}
CPU = ["loader", "operator", "layer", "extra", "optimizer", "python"]
DEVICE = ["kernel", "extra"]


def trace(path, seed, has_device, plant=None, share=0.0, busy=0.0, steps=30):
    t = Trace(random.Random(seed), busy)
    usual = LAYERS * sum(us for *_, us in OPERATORS) + (850 if not has_device else 60)
    for number in range(steps):
        start = t.t
        (device_step if has_device else cpu_step)(t, plant, share * usual)
        t.add(f"ProfilerStep#{number + 5}", start, t.t, "user_annotation")
    t.write(path)


def causes(msprobe, new, old):
    out = subprocess.run([msprobe, "report", new, "--against", old, "--format", "json"], capture_output=True, text=True, check=False)
    for path in (new, old):
        for end in ("", ".run.db"):
            if os.path.exists(path + end):
                os.remove(path + end)
    if out.returncode != 0:
        return None, out.stderr
    return json.loads(out.stdout), ""


def is_right(found, plant, share):
    """The first cause is the planted place, its cost is that of the plant, and the parts add up."""
    if not found["causes"]:
        return "no cause"
    first = found["causes"][0]
    if NAMES[plant] not in first["place"] or (plant == "python") != (first["place"] == ""):
        return f"{first['kind']} {first['place']}"
    cost = first["cost_ms"] / found["old"]["undisturbed_ms"]
    return "" if 0.5 * share < cost < 1.6 * share + 0.01 else f"cost {cost:.3f} of {share:.3f}"


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("msprobe")
    parse.add_argument("folder")
    parse.add_argument("--pairs", type=int, default=24)
    parse.add_argument("--equal", type=int, default=12)
    parse.add_argument("--seed", type=int, default=1)
    a = parse.parse_args()
    rng = random.Random(a.seed)
    old, new = os.path.join(a.folder, "old.json"), os.path.join(a.folder, "new.json")
    wrong = accused = unequal = 0
    for i in range(a.pairs + a.equal):
        has_device = rng.random() < 0.4
        plant = rng.choice(DEVICE if has_device else CPU) if i < a.pairs else rng.choice(["hidden", None]) if has_device else None
        share, busy = rng.uniform(0.025, 0.2), rng.choice([0, 0, 0.05, 0.3])
        trace(old, rng.random(), has_device, busy=busy)
        trace(new, rng.random(), has_device, plant, share, busy)
        found, said = causes(a.msprobe, new, old)
        if found is None:
            print("failed", i, plant, said)
            wrong += 1
            continue
        unequal += abs(sum(found["split_ms"].values()) - found["difference_ms"]) > 0.01 * abs(found["difference_ms"]) + 1e-6
        if i < a.pairs:
            why = is_right(found, plant, share)
            wrong += why != ""
            if why:
                print(f"wrong {i}: {plant} {share:.3f} busy {busy} device {has_device}: {why}")
        elif found["causes"] or bool(found["hidden"]) != (plant == "hidden"):
            accused += 1
            print(f"accused {i}: {plant} busy {busy}: {(found['causes'] + found['hidden'])[:1]}")
    print(f"{a.pairs - wrong} of {a.pairs} planted changes are the first cause; {accused} of {a.equal} equal pairs have one; "
          f"{unequal} splits do not add up")
    sys.exit(wrong > 0.02 * a.pairs or accused != 0 or unequal != 0)


if __name__ == "__main__":
    main()
