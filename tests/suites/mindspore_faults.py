# SPDX-License-Identifier: MIT
"""A training of MindSpore that is dumped while its disk is full, may not be written to, or it is
killed: it computes what it does without a dump, one line says what is missing, and what is left behind
can be read.

    mindspore_faults.py BUILD [WORD]      prints "ok NAME" or "not ok NAME"
"""
import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

BUILD = os.path.abspath(sys.argv[1])
WORD = sys.argv[2] if len(sys.argv) > 2 else ""
failed = 0

# Arguments: config.json or "", and how many steps.  Prints a loss for each.
TRAINING = """
import sys
import mindspore
import numpy as np
from mindspore import Tensor, mint, nn
mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
mindspore.set_device("CPU")
net = nn.SequentialCell(mint.nn.Linear(64, 64), nn.ReLU(), mint.nn.Linear(64, 8))
for i, p in enumerate(net.trainable_params()):
    p.set_data(Tensor(np.sin(np.arange(p.size) + i).reshape(p.shape).astype(np.float32) / 8))
step = mindspore.value_and_grad(lambda x: (net(x) ** 2).mean(), None, net.trainable_params())
optimizer = nn.SGD(net.trainable_params(), 0.1)
debugger = None
if sys.argv[1]:
    from msprobe.mindspore import PrecisionDebugger
    debugger = PrecisionDebugger(config_path=sys.argv[1])
print("begins", flush=True)
for i in range(int(sys.argv[2])):
    if debugger:
        debugger.start(net)
    loss, grads = step(Tensor(np.cos(np.arange(32 * 64) + i).reshape(32, 64).astype(np.float32)))
    optimizer(grads)
    if debugger:
        debugger.stop()
        debugger.step()
    print(float(loss.asnumpy()).hex(), flush=True)
"""


def ok(name, problems):
    global failed
    print(("not ok " if problems else "ok ") + name, flush=True)
    for p in problems[:5]:
        print("    " + p)
    failed += bool(problems)


def words(config, steps):
    return [sys.executable, "-c", TRAINING, config, str(steps)]


def environment():
    return {**os.environ, "PYTHONPATH": os.path.join(BUILD, "python")}


def train(config, steps=4):
    return subprocess.run(words(config, steps), env=environment(), capture_output=True, text=True, timeout=200)


def config_for(top, out, task):
    path = os.path.join(top, "config.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"task": task, "dump_path": out, "level": "mix", "rank": [], "step": []}, f)
    return path


def broken_documents(out):
    """Problems with the documents that are there."""
    problems = []
    for path in glob.glob(out + "/step*/*/*.json"):
        try:
            with open(path, encoding="utf-8") as f:
                json.load(f)
        except ValueError as why:
            problems.append(f"{path}: {why}")
    return problems


def told(run, plain, reason):
    """Problems of a training whose dump could not be written."""
    problems = []
    if run.returncode != 0:
        problems += [f"status {run.returncode}", *run.stderr.splitlines()[-4:]]
    if run.stdout != plain.stdout:
        problems.append(f"computed {run.stdout.split()} instead of {plain.stdout.split()}")
    lines = [line for line in run.stderr.splitlines() if reason in line]
    if len(lines) != 1:
        problems.append(f"said {len(lines)} times that '{reason}': {lines[:3]}")
    return problems


class Disk:
    """A small disk of its own."""

    def __init__(self, top, size):
        self.path = os.path.join(top, "disk")
        os.makedirs(self.path, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", self.path], check=True,
                       stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.path], check=False)

    def forbid(self):
        subprocess.run(["mount", "-o", "remount,ro", self.path], check=True)


def full(top, plain):
    for task, size in (("statistics", "16k"), ("tensor", "128k")):
        with Disk(top, size) as disk:
            out = disk.path + "/out"
            run = train(config_for(top, out, task))
            ok(f"a full disk does not stop a training that dumps {task}",
               told(run, plain, "No space left on device") + broken_documents(out))


def read_only(top, plain):
    with Disk(top, "1m") as disk:
        disk.forbid()
        run = train(config_for(top, disk.path + "/out", "statistics"))
        ok("a folder that may not be written does not stop a training", told(run, plain, "Read-only file system"))


def killed(top):
    problems = []
    out = os.path.join(top, "out")
    config = config_for(top, out, "tensor")
    seen = 0
    for _ in range(6):
        with subprocess.Popen(words(config, 100000), env=environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as child:
            child.stdout.readline()
            time.sleep(random.uniform(0.1, 0.8))
            child.kill()
        seen += len(glob.glob(out + "/step*/*/dump.json"))
        problems += broken_documents(out)
        shutil.rmtree(out, ignore_errors=True)
    ok("killed at any moment it leaves whole documents", problems if seen else ["nothing was dumped"])


def may_mount(top):
    try:
        with Disk(top, "64k"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def main():
    with tempfile.TemporaryDirectory(prefix="msprobe-mindspore-") as top:
        plain = train("")
        if not may_mount(top):
            print("skip disks that are full: nothing may be mounted here")
        else:
            for test in (full, read_only):
                if WORD in test.__name__:
                    test(top, plain)
        if WORD in killed.__name__:
            killed(top)
    sys.exit(failed != 0)


main()
