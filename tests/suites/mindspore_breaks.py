# SPDX-License-Identifier: MIT
"""Each Python call of ours in a training of MindSpore fails once, in the dump, in the monitor and in the marks of
`msprobe run`: the training computes what it does without us, and says at most once that nothing more is
recorded.

    mindspore_breaks.py BUILD [--every N]    every N-th of the chosen calls; prints "ok NAME" or "not ok NAME"

A case is a child of this process, which has imported MindSpore and computed nothing.
"""
import argparse
import json
import os
import pickle
import signal
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "harm"))
from broken_calls import Calls, numbers  # noqa: E402

LIMIT = 60  # seconds that a case may take
# They carry a call of the program, and have nothing of their own that can fail.
SPARED = ("marked", "call", "run", "around", "_call", "watched_call", "surely", "__getitem__", "<lambda>")

OF_MONITOR = {"targets": {}, "format": "csv", "ops": ["norm", "min", "max", "mean"], "xy_distribution": True,
              "wg_distribution": True, "mv_distribution": True, "param_distribution": True, "all_xy": True}


def train(debugger, arm, disarm):
    """The losses of three steps, as texts; after each a cell raises."""
    import mindspore
    import numpy as np
    from mindspore import Tensor, mint, nn
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    class Raises(nn.Cell):
        def construct(self, x):
            raise KeyError("on purpose")
    raising = nn.SequentialCell(Raises())
    net = nn.SequentialCell(mint.nn.Linear(8, 8), nn.ReLU(), mint.nn.Linear(8, 2))
    for i, p in enumerate(net.trainable_params()):
        p.set_data(Tensor(np.sin(np.arange(p.size) + i).reshape(p.shape).astype(np.float32) / 8))
    net[1].register_forward_pre_hook(lambda _cell, args: (args[0] * 2,))
    net[1].register_forward_hook(lambda _cell, _args, result: result * 3)
    step = mindspore.value_and_grad(lambda x: (mint.softmax(net(x), -1) ** 2 + abs(net(x))).mean(), None,
                                    net.trainable_params())
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    rows = [np.cos(np.arange(32) + i).reshape(4, 8).astype(np.float32) for i in range(3)]
    losses = []
    arm()
    if hasattr(debugger, "set_monitor"):
        debugger.set_monitor(net, optimizer)
        debugger = None
    for (x,) in mindspore.dataset.NumpySlicesDataset((np.stack(rows),), shuffle=False):
        if debugger:
            debugger.start(net)
        loss, grads = step(x)
        optimizer(grads)
        try:
            raising(x)
        except KeyError as why:
            losses.append(str(why))
        if debugger:
            debugger.stop()
            debugger.step()
        losses.append(loss)
    count = disarm()
    return [x if isinstance(x, str) else float(x.asnumpy()).hex() for x in losses], count


def begin_dump(build, level):
    from msprobe.mindspore import PrecisionDebugger
    with open("config.json", "w", encoding="utf-8") as f:
        json.dump({"task": "statistics", "dump_path": "dump", "level": level, "rank": [], "step": []}, f)
    return PrecisionDebugger(config_path="config.json"), os.path.join(build, "python", "msprobe") + os.sep


def begin_monitor(build, _level):
    from msprobe.mindspore import TrainerMon
    with open("config.json", "w", encoding="utf-8") as f:
        json.dump(OF_MONITOR, f)
    return TrainerMon("config.json"), os.path.join(build, "python", "msprobe") + os.sep


def begin_marks(build, _level):
    import mindspore
    sys.path.insert(0, os.path.join(build, "python", "auto"))
    import msprobe_mindspore
    msprobe_mindspore.attach(mindspore)
    return None, os.path.join(build, "python", "auto") + os.sep


TOLD = ("goes on", "monitored no more")
KINDS = {"L0": begin_dump, "L1": begin_dump, "mix": begin_dump, "monitor": begin_monitor, "marks": begin_marks}


def child(build, kind, number, said, answer):
    for fd in (1, 2):
        os.dup2(said, fd)
    signal.alarm(LIMIT)
    debugger, folder = KINDS[kind](build, kind) if kind else (None, "/nowhere")
    calls = Calls(folder, SPARED)
    try:
        result = train(debugger, lambda: calls.arm(number), calls.disarm)
    except Exception as why:
        calls.disarm()
        result = [f"raised {why!r}"], 0
    with os.fdopen(answer, "wb") as f:
        pickle.dump(result, f)
    os._exit(0)


def run_case(build, kind, number):
    """(losses, calls of ours, what was said)"""
    with tempfile.TemporaryDirectory(prefix="msprobe-breaks-") as folder:
        said, answer = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            os.chdir(folder)
            child(build, kind, number, said[1], answer[1])
        os.close(said[1])
        os.close(answer[1])
        with os.fdopen(said[0], errors="replace") as f, os.fdopen(answer[0], "rb") as g:
            text = f.read()
            data = g.read()
        _, status = os.waitpid(pid, 0)
    losses, count = pickle.loads(data) if data else ([f"status {status} {text[-200:]}"], 0)
    return losses, count, text


def break_all(build, kind, every, plain):
    """Prints a line for one kind; tells whether all is well."""
    losses, total, usual = run_case(build, kind, None)
    problems = [f"nothing fails: {losses}, without us {plain}"] if losses != plain else []
    all_told = 0
    for n in numbers(total)[::every]:
        losses, _, text = run_case(build, kind, n)
        told = [line for line in text.splitlines() if any(word in line for word in TOLD) and line not in usual]
        all_told += len(told)
        if losses != plain:
            problems.append(f"number {n} of {total} fails: {losses}, without us {plain}")
        elif len(told) > 1:
            problems.append(f"number {n} of {total} fails: told {len(told)} times: {told[:2]}")
    if not all_told:
        problems.append("no failure was told")
    if total < (2 if kind == "marks" else 100):
        problems.append(f"only {total} calls of ours")
    print(("not ok" if problems else "ok") + f" mindspore_breaks_{kind}")
    print("".join(f"    {p[:400]}\n" for p in problems[:8]), end="", flush=True)
    return not problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=os.path.abspath)
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    sys.path.insert(0, os.path.join(options.build, "python"))
    os.environ.pop("MSTX_QUIET", None)  # what is said is read here
    import mindspore.dataset  # noqa: F401  for all children
    plain = run_case(options.build, "", None)[0]
    return 0 if all([break_all(options.build, kind, options.every, plain) for kind in KINDS]) else 1


if __name__ == "__main__":
    sys.exit(main())
