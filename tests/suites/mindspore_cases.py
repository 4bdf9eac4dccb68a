# SPDX-License-Identifier: MIT
"""What the tests of the MindSpore adapter share: each runs in a process of its own, in an empty folder."""
import atexit
import glob
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback

BUILD = os.path.abspath(sys.argv[1])
TESTS = []
SKIPPED = 77
SECONDS = 300  # of a test


def test(func):
    TESTS.append(func)
    return func


def become(func, folder):
    """Runs a test in this process, which ends."""
    signal.alarm(SECONDS)
    log = os.open(os.path.join(folder, "said"), os.O_WRONLY | os.O_CREAT, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(os.path.join(folder, "scratch"))
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.set_device("CPU")
    status = 1
    try:
        func()
        atexit._run_exitfuncs()
        status = 0
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def run(func, folder):
    """Runs a test in a process of its own; returns its status and what it said."""
    os.mkdir(os.path.join(folder, "scratch"))
    pid = os.fork()
    if pid == 0:
        become(func, folder)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with open(os.path.join(folder, "said"), encoding="utf-8", errors="replace") as f:
        return status, f.read().splitlines() or [f"status {status}"]


def main(word):
    """The framework's threads do not survive a fork, and do not exist before its first operator: one
    process imports it and becomes all the tests."""
    failed = False
    for func in TESTS:
        if word not in func.__name__:
            continue
        folder = tempfile.mkdtemp(prefix="msprobe-mindspore-")  # no finalizer, which the child would run
        status, said = run(func, folder)
        shutil.rmtree(folder, ignore_errors=True)
        if status == SKIPPED:
            print(f"skip {func.__name__}: {said[-1]}", flush=True)
            continue
        print(("ok " if status == 0 else "not ok ") + func.__name__, flush=True)
        if status != 0:
            failed = True
            print("\n".join("    " + line for line in said[-12:]), flush=True)
    sys.exit(failed)


sys.path.insert(0, os.path.join(BUILD, "python"))
import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, mint, nn  # noqa: E402
F = mint.nn.functional


class Two(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = mint.nn.Linear(4, 4)
        self.act = nn.ReLU()
        self.fc.weight.set_data(Tensor(np.arange(16, dtype=np.float32).reshape(4, 4) / 10))
        self.fc.bias.set_data(Tensor(np.float32([-1, 0, 1, 2])))

    def construct(self, x):
        return self.act(self.fc(x)) * 2


# ---- help ---------------------------------------------------------------------


def debugger(**keys):
    """A debugger with a config.json of these keys in the current folder."""
    from msprobe.mindspore import PrecisionDebugger
    keys = {"task": "statistics", "dump_path": "out", "level": "mix", "rank": [], "step": [],
            **keys}
    with open("config.json", "w", encoding="utf-8") as f:
        json.dump(keys, f)
    return PrecisionDebugger(config_path="config.json")


def read(name="dump.json", step=0):
    with open(os.path.join(glob.glob(f"out/step{step}/*")[0], name), encoding="utf-8") as f:
        return json.load(f)


def data(step=0):
    return read(step=step)["data"]


def leaf_of(record, part="input_args", index=0):
    return data()[record][part][index]


def saved(name):
    return np.load(glob.glob(f"out/step0/*/dump_tensor_data/{name}.npy")[0])


def batch():
    return Tensor(np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4))


def one_step(d, model, x):
    """The gradients of the model's parameters."""
    gradients_of = mindspore.value_and_grad(lambda t: model(t).sum(), None,
                                            model.trainable_params())
    d.start(model)
    _, gradients = gradients_of(x)
    d.stop()
    d.step()
    return [g.asnumpy() for g in gradients]


def called(function, *args, **keys):
    """Dumped at level L1, called once."""
    d = debugger(level="L1", **keys)
    d.start()
    function(*args)
    d.stop()
    d.step()


def figures(leaf):
    return [leaf[key] for key in ("Max", "Min", "Mean", "Norm")]
