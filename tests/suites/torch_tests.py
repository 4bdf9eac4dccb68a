# SPDX-License-Identifier: MIT
"""What the tests of the PyTorch adapter have in common: a config.json, what was dumped, and running.

    suite_torch_*.py BUILD [WORD]      prints "ok NAME", "not ok NAME" or "skip NAME: why"

Each test is a function in a process of its own, in a folder of its own.
"""
import glob
import json
import os
import shutil
import sys
import tempfile
import traceback

BUILD = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(BUILD, "python"))
import torch  # noqa: E402

torch.set_num_threads(1)
nn = torch.nn
TESTS = []


def test(func):
    TESTS.append(func)
    return func




def debugger(**keys):
    """A debugger with a config.json of these keys in the current folder."""
    from msprobe.pytorch import PrecisionDebugger
    keys = {"task": "statistics", "dump_path": "out", "level": "mix", "rank": [], "step": [],
            "risk_level": "ALL", **keys}
    with open("config.json", "w", encoding="utf-8") as f:
        json.dump(keys, f)
    return PrecisionDebugger(config_path="config.json")


def folder(step=0):
    return glob.glob(f"out/step{step}/*")[0]


def read(name="dump.json", step=0):
    with open(os.path.join(folder(step), name), encoding="utf-8") as f:
        return json.load(f)


def data(step=0):
    return read(step=step)["data"]


def notes(step=0):
    path = os.path.join(folder(step), "dump_error_info.log")
    return open(path, encoding="utf-8").read() if os.path.exists(path) else ""


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.fc(x)) * 2


def one_step(d, model, x, step=True):
    d.start(model)
    loss = model(x).sum()
    loss.backward()
    d.stop()
    if step:
        d.step()
    return loss


def equal(a, b):
    assert a == b, f"{a!r}\n  is not\n{b!r}"


# ---- running ----------------------------------------------------------------------


def run(func):
    """In a child, so that each test has the one debugger for itself."""
    here = tempfile.mkdtemp(prefix="msprobe-torch-")
    log = os.path.join(here, "log")
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.chdir(here)
        status = 1
        with open(log, "w", encoding="utf-8") as f:
            os.dup2(f.fileno(), 2)
            try:
                why = func()
                print(f"skip {func.__name__}: {why}" if why else f"ok {func.__name__}", flush=True)
                status = 0
            except BaseException:
                traceback.print_exc()
        os._exit(status)
    status = os.waitpid(pid, 0)[1]
    if status != 0:
        print(f"not ok {func.__name__} ({status})")
        print(open(log, encoding="utf-8", errors="replace").read()[-3000:])
    shutil.rmtree(here, ignore_errors=True)
    return status == 0


def main():
    word = sys.argv[2] if len(sys.argv) > 2 else ""
    good = [run(func) for func in TESTS if word in func.__name__]
    sys.exit(0 if all(good) else 1)


