# SPDX-License-Identifier: MIT
"""A data-parallel training of two processes computes the same with a dump, bit by bit.

    mindspore_ranks.py BUILD [WORD]     prints "ok NAME" or "not ok NAME"; WORD: only dumps with it
    mindspore_ranks.py - train FOLDER   one of the processes, which the framework's launcher starts

Each launch trains in every way of WAYS, one after the other, with a debugger that the program calls,
or under `msprobe run --dump`.  What is compared, on both ranks: losses, gradients and parameters.
"""
import glob
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time

WAYS = {}
COUNT = 3
SECONDS = 400  # of a launch
DUMPS = [(program, level, task)
         for program, levels in (("calls", ("L0", "L1", "mix", "L2")), ("run", ("L0", "L1", "mix", "L2")))
         for level in levels for task in (("tensor",) if level == "L2" else ("statistics", "tensor"))]


def way(func):
    WAYS[func.__name__] = func
    return func


# ---- in one of the processes ------------------------------------------------------------------


class Steps:
    """The steps of a training, with a debugger or with none."""

    def __init__(self, config):
        self._debugger = None
        if config is not None:
            from msprobe.mindspore import PrecisionDebugger
            self._debugger = PrecisionDebugger(config_path=config)

    def begin(self, model):
        if self._debugger is not None:
            self._debugger.start(model)

    def end(self):
        if self._debugger is not None:
            self._debugger.stop()
            self._debugger.step()


def row(*shape):
    """Numbers without chance in them, other ones on each rank."""
    import numpy as np
    from mindspore import Tensor
    from mindspore.communication import get_rank
    numbers = np.sin(np.arange(int(np.prod(shape)), dtype=np.float32) + 7 * get_rank())
    return Tensor(numbers.reshape(shape))


def small():
    from mindspore import nn
    return nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.LayerNorm((8,)), nn.Dense(8, 6))


def of_functions(steps, reduce):
    """The usual loop of a function; reduce: gradients of all ranks from those of this one."""
    import mindspore
    from mindspore import nn
    model, x = small(), row(4, 6)
    optimizer = nn.Momentum(model.trainable_params(), 0.05, 0.9)
    gradients_of = mindspore.value_and_grad(lambda: (model(x) ** 2).mean(), None,
                                            optimizer.parameters)
    for _ in range(COUNT):
        steps.begin(model)
        loss, gradients = gradients_of()
        gradients = reduce(gradients)
        optimizer(gradients)
        steps.end()
        yield loss
        yield from gradients
    yield from model.get_parameters()


@way
def reduced_by_hand(steps):
    from mindspore import mint

    def reduce(gradients):
        handles = [mint.distributed.all_reduce(g, async_op=True) for g in gradients]
        for handle in handles:
            if handle is not None:
                handle.wait()
        return tuple(g / 2 for g in gradients)

    yield from of_functions(steps, reduce)


@way
def reduced_by_the_framework(steps):
    from mindspore import nn
    found = []

    def reduce(gradients):
        if not found:
            found.append(nn.DistributedGradReducer(small().trainable_params(), True, 2))
        return found[0](gradients)

    yield from of_functions(steps, reduce)


def of_cells(steps):
    """The framework's own step, which reduces as its context says."""
    import mindspore
    from mindspore import nn
    mindspore.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True,
                                        device_num=2)
    model = small()
    whole = nn.TrainOneStepCell(nn.WithLossCell(model, nn.MSELoss()),
                                nn.Adam(model.trainable_params(), 0.01))
    whole.set_train()
    for _ in range(COUNT):
        steps.begin(model)
        yield whole(row(4, 6), row(4, 6) * 0.1)
        steps.end()
    yield from model.get_parameters()
    mindspore.reset_auto_parallel_context()


@way
def cells(steps):
    yield from of_cells(steps)


@way
def graph(steps):
    import mindspore
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    try:
        yield from of_cells(steps)
    finally:
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)


def meet(name, rank):
    """Waits for the other rank: the launcher ends all processes as soon as one is gone."""
    open(f"{name}{rank}", "w", encoding="utf-8").close()
    until = time.time() + 100
    while time.time() < until and len(glob.glob(name + "[01]")) < 2:
        time.sleep(0.02)


def train(folder):
    """Trains in every way, and writes a digest of each number."""
    os.chdir(folder)
    import mindspore
    import numpy as np
    from mindspore.communication import get_rank, init
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.set_device("CPU")
    init("mccl")
    steps, found = Steps(os.environ.get("WITH_CONFIG")), {}
    for name, func in WAYS.items():
        mindspore.set_seed(11)
        np.random.seed(12)
        try:
            found[name] = [hashlib.sha1(value.asnumpy().tobytes()).hexdigest()[:12]
                           for value in func(steps)]
        except Exception as why:
            found[name] = f"{type(why).__name__}: {why}"[:300]
    with open(f"found{get_rank()}", "w", encoding="utf-8") as f:
        json.dump(found, f)
    meet("done", get_rank())
    os._exit(0)


# ---- beside each other ------------------------------------------------------------------------


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def count_records(folder):
    """Records and files of graphs of both ranks."""
    total = len(glob.glob(f"{folder}/out/rank_*/**/*.npy", recursive=True))
    for path in glob.glob(f"{folder}/out/step*/rank*/dump.json"):
        with open(path, encoding="utf-8") as f:
            total += len(json.load(f)["data"])
    return total


def launch(build, folder, program=None, level=None, task=None):
    """Trains with two processes; returns what both found, or what was said."""
    env = {**os.environ, "PYTHONPATH": os.path.join(build, "python"), "GLOG_v": "3",
           "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"]}
    config = os.path.join(folder, "config.json")
    with open(config, "w", encoding="utf-8") as f:
        json.dump({"level": level, "task": task, "dump_path": os.path.join(folder, "out")}, f)
    if program == "calls":
        env["WITH_CONFIG"] = config
    before = [os.path.join(build, "msprobe"), "run", "-o", os.path.join(folder, "run"), "--dump",
              config, "--"] if program == "run" else []
    command = [*before, sys.executable, "-c",
               "from mindspore.parallel.cluster.run import main; main()", "--worker_num=2",
               "--local_worker_num=2", "--join=True", "--master_port=" + free_port(),
               f"--log_dir={folder}/log", os.path.abspath(__file__), "-", "train", folder]
    try:
        said = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS).stderr
    except subprocess.TimeoutExpired:
        said = f"more than {SECONDS} s"
    found = []
    for rank in (0, 1):
        try:
            with open(f"{folder}/found{rank}", encoding="utf-8") as f:
                found.append(json.load(f))
        except OSError:
            return None, said[-800:]
    return found, said


def check(build, without, dump):
    """Prints how each way is with a dump; returns whether all are as without."""
    is_good = True
    with tempfile.TemporaryDirectory(prefix="msprobe-ranks-") as folder:
        found, said = launch(build, folder, *dump)
        records = count_records(folder)
    for name in WAYS:
        title = f"ranks_{name}_{'_'.join(dump)}_computes_the_same ({records} records of all ways)"
        is_same = found is not None and records != 0 and \
            all(a[name] == b[name] for a, b in zip(without, found))
        is_good &= is_same
        print(("ok " if is_same else "not ok ") + title, flush=True)
        if not is_same:
            print("   ", said if found is None else [rank[name] for rank in found])
    return is_good


def main():
    build, word = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    runs = []
    for _ in range(2):
        with tempfile.TemporaryDirectory(prefix="msprobe-ranks-") as folder:
            runs.append(launch(build, folder))
    without = runs[0][0]
    if without is None or without != runs[1][0]:
        print(f"skip mindspore_ranks: two processes do not come together here\n{runs[0][1]}")
        return 0
    for name in [name for name in WAYS if isinstance(without[0][name], str)]:
        print(f"skip ranks_{name}: {without[0][name]}", flush=True)
        del WAYS[name]
    results = [check(build, without, dump) for dump in DUMPS if word in "_".join(dump)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    if sys.argv[2:3] == ["train"]:
        train(sys.argv[3])
    sys.exit(main())
