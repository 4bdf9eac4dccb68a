# SPDX-License-Identifier: MIT
"""Our dump of MindSpore programs against the official tool's: see peer_dumps.py.

    mindspore_oracle.py BUILD OFFICIAL [FOLDER]
    ONLY=PATTERN         only programs whose "NAME LABEL" has it
    LINES=8 WIDTH=300    so much of what differs
    LISTED=1             of what is known to differ, too
    KEEP=FOLDER          the dumps stay there; the official tool's of another time are taken as they are,
                         so use another folder when lines of the programs or settings have changed
    EVERY=1              each network at each level with each task, not with two of them

It runs in a Python that has mindspore; OFFICIAL is a folder with the package and what it needs.
It takes its figures from functions that lack kernels for the CPU, so there are others here.
The framework's threads do not survive a fork, and are not there before the first operator: one
process of each tool imports everything and becomes all the programs.
"""
import atexit
import collections
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

import peer_dumps
from mindspore_known import unknown

CONFIGS = {
    "mix": {"level": "mix"}, "L0": {"level": "L0"}, "L1": {"level": "L1"},
    "md5": {"level": "mix", "statistics": {"summary_mode": "md5"}},
    "tensor": {"level": "mix", "task": "tensor"},
}
# Each level with each task.
TASKS = {"statistics": {}, "md5": {"statistics": {"summary_mode": "md5"}}, "tensor": {"task": "tensor"}}
EVERY = {f"{level}_{task}": {"level": level, **keys}
         for level in ("L0", "L1", "mix", "debug") for task, keys in TASKS.items()}
# Graphs, for networks: the framework refuses other tasks on the CPU.
GRAPHS = {"L2_tensor": {"level": "L2", "task": "tensor"}}
# More of what a config.json may say, each with one model.
VARIANTS = {
    "structure": {"level": "mix", "task": "structure"},
    "structure_L0": {"level": "L0", "task": "structure"},
    "structure_L1": {"level": "L1", "task": "structure"},
    "list": {"level": "mix", "statistics": {"list": ["Cell.blocks.0", "matmul"]}},
    "list_L0": {"level": "L0", "statistics": {"list": ["norm"]}},
    "list_L1": {"level": "L1", "statistics": {"list": ["softmax", "Tensor"]}},
    "scope": {"level": "mix", "statistics": {"scope": ["Cell.blocks.0.qkv.Linear.forward.0",
                                                       "Cell.blocks.1.qkv.Linear.forward.0"]}},
    "scope_L0": {"level": "L0", "statistics": {"scope": ["Cell.blocks.0.Block.forward.0",
                                                         "Cell.blocks.1.Block.forward.0"]}},
    "scope_L1": {"level": "L1", "statistics": {"scope": ["Mint.matmul.0.forward",
                                                         "Mint.matmul.1.forward"]}},
    "strict_scope": {"level": "mix", "strict": True,
                     "statistics": {"scope": ["Cell.blocks.0.qkv.Linear.forward.0",
                                              "Cell.blocks.1.qkv.Linear.forward.0"]}},
    "strict_scope_backward": {"level": "mix", "strict": True,
                              "statistics": {"scope": ["Mint.matmul.1.forward",
                                                       "Cell.blocks.0.Block.backward.0"]}},
    "strict_scope_L0": {"level": "L0", "strict": True,
                        "statistics": {"scope": ["Cell.blocks.0.Block.forward.0",
                                                 "Cell.blocks.1.Block.forward.0"]}},
    "strict_scope_L0_backward": {"level": "L0", "strict": True,
                                 "statistics": {"scope": ["Cell.blocks.1.Block.backward.0",
                                                          "Cell.blocks.0.Block.backward.0"]}},
    "strict_scope_L1": {"level": "L1", "strict": True,
                        "statistics": {"scope": ["Mint.matmul.0.forward",
                                                 "Mint.matmul.1.forward"]}},
    "strict_scope_list": {"level": "mix", "strict": True,
                          "statistics": {"scope": ["Cell.blocks.0.qkv.Linear.forward.0",
                                                   "Mint.matmul.1.backward"],
                                         "list": ["qkv", "softmax"]}},
    "strict": {"level": "mix", "strict": True},
    "forward": {"level": "mix", "statistics": {"data_mode": ["forward"]}},
    "backward": {"level": "mix", "statistics": {"data_mode": ["backward"]}},
    "inputs_L0": {"level": "L0", "statistics": {"data_mode": ["input"]}},
    "forward_input": {"level": "mix", "statistics": {"data_mode": ["forward", "input"]}},
    "input": {"level": "L1", "statistics": {"data_mode": ["input"]}},
    "forward_output": {"level": "L0", "statistics": {"data_mode": ["forward", "output"]}},
    "backward_input": {"level": "mix", "task": "tensor",
                       "tensor": {"data_mode": ["backward", "input"]}},
    "tensor_list": {"level": "mix", "statistics": {"tensor_list": ["softmax", "Cell.head"]}},
    "high": {"level": "mix", "precision": "high"},
    "bare": {"level": "mix", "extra_info": False},
    "L0_md5": {"level": "L0", "statistics": {"summary_mode": "md5"}},
    "L1_tensor": {"level": "L1", "task": "tensor"},
    "async": {"level": "mix", "async_dump": True},
    "async_tensor": {"level": "mix", "task": "tensor", "async_dump": True,
                     "tensor": {"list": ["matmul", "Linear"]}},
}


# ---- in a process of one tool -----------------------------------------------------------------


def saving(debugger, models, parameters, loss_of):
    """Saves what the children of the models return, the first parameter and the loss: level debug."""
    def save_as(name):
        return lambda _cell, _args, out: debugger.save(out, name)

    for model in models:
        for name, child in model.name_cells().items():
            child.register_forward_hook(save_as(name))

    def run():
        if parameters:
            debugger.save(parameters[0], "parameter")
        loss = loss_of()
        debugger.save({"loss": loss, "twice": [loss * 2]}, "loss")
        return loss
    return run


def train(name, debugger, level):
    """Two steps of a model; the numbers that come out, added up."""
    import mindspore
    from mindspore_models import MODELS
    model, loss_of = MODELS[name]()
    models = model if isinstance(model, list) else [model]
    parameters = [p for m in models for p in m.trainable_params()]
    if level == "debug":
        loss_of = saving(debugger, models, parameters, loss_of)
    step = mindspore.value_and_grad(loss_of, None, parameters) if parameters else loss_of
    total = 0.0
    for _ in range(2):
        debugger.start(model)
        got = step()
        debugger.stop()
        debugger.step()
        loss, gradients = got if isinstance(got, tuple) else (got, ())
        total += float(loss.asnumpy()) + sum(float(abs(g.asnumpy()).sum()) for g in gradients)
    return total


def train_graph(name, debugger):
    """Two steps of a network whose whole training is compiled; their losses, added up."""
    import mindspore
    from mindspore import nn
    from mindspore_models import network_and_inputs

    class Loss(nn.Cell):
        def __init__(self):
            super().__init__(auto_prefix=False)
            self._backbone = net

        def construct(self, *args):
            return (self._backbone(*args) ** 2).mean()

    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    net, args = network_and_inputs(name.partition("_")[2])
    step = nn.TrainOneStepCell(Loss(), nn.SGD(net.trainable_params(), 0.01)).set_train()
    total = 0.0
    for _ in range(2):
        debugger.start(net)
        total += float(step(*args).asnumpy())
        debugger.stop()
        debugger.step()
    return total


def become(name, config):
    """A child: dump one program, and say what came out of it."""
    import mindspore
    from mindspore_sessions import SESSIONS
    from msprobe.mindspore import PrecisionDebugger
    # Tensors are asked for one by one: waiting for the threads of operators is most of the time.
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE, pynative_synchronize=True)
    mindspore.set_device("CPU")
    debugger = PrecisionDebugger(config_path=config)
    level = json.loads(said(config, None))["level"]
    if level == "L2":
        os.chdir(tempfile.mkdtemp(dir=os.path.dirname(config)))  # the compiler leaves files there
        found = train_graph(name, debugger)
    else:
        found = SESSIONS[name][1](debugger) if name in SESSIONS else train(name, debugger, level)
    atexit._run_exitfuncs()
    with open(config + ".loss", "w", encoding="utf-8") as f:
        f.write(repr(found))


def have_kernels():
    """Functions that the official tool takes its figures from, and that have no kernel for the CPU."""
    import numpy as np
    from mindspore import Tensor, bfloat16, float32, mint

    def norm(tensor):
        values = (tensor.to(float32) if tensor.dtype == bfloat16 else tensor).asnumpy()
        return Tensor(np.float32(np.linalg.norm(values.astype(np.float64)))).to(tensor.dtype)

    def wide(func):
        def run(tensor, *args, **kwargs):
            if tensor.dtype != bfloat16 or args or kwargs:
                return func(tensor, *args, **kwargs)
            return func(tensor.to(float32)).to(bfloat16)
        return run

    mint.norm = norm
    mint.max, mint.min, mint.mean = wide(mint.max), wide(mint.min), wide(mint.mean)


def dump_all(folder):
    """Every case in the folder, each in a child."""
    have_kernels()
    import mindspore_models  # noqa: F401 what a child needs
    import mindspore_sessions  # noqa: F401
    import msprobe.mindspore  # noqa: F401
    for config in sorted(glob.glob(folder + "/*.json")):
        if said(config, "loss") is not None:
            continue  # recorded another time
        pid = os.fork()
        if pid == 0:
            log = os.open(config + ".log", os.O_WRONLY | os.O_CREAT, 0o644)
            os.dup2(log, 1)
            os.dup2(log, 2)
            try:
                become(os.path.basename(config).split("-")[0], config)
            except BaseException:
                traceback.print_exc()
            os._exit(0)
        os.waitpid(pid, 0)
        with open(config + ".ended", "w", encoding="utf-8"):
            pass


# ---- beside each other ------------------------------------------------------------------------


def cases():
    """(program, label, keys): each model with mix and one more."""
    from mindspore_models import MODELS
    from mindspore_sessions import SESSIONS
    wanted = os.environ.get("ONLY", "")
    labels = list(CONFIGS)
    known = [(name, label, CONFIGS[label]) for at, name in enumerate(MODELS)
             for label in ("mix", labels[1 + at % (len(labels) - 1)])]
    if os.environ.get("EVERY"):
        known = [(name, label, keys) for name in MODELS for label, keys in EVERY.items()]
        known += [(name, label, keys) for name in MODELS if name.startswith("network_")
                  for label, keys in GRAPHS.items()]
    known += [("block", label, keys) for label, keys in VARIANTS.items()]
    known += [(name, "session", keys) for name, (keys, _) in SESSIONS.items()]
    known += [(name, "strict", {**SESSIONS[name][0], "strict": True})
              for name in ("optimizers", "momentum", "training_cells")]
    known += [(f"network_{name}", "strict", {"level": "mix", "strict": True})
              for name in ("transformer", "bert")]
    return [case for case in known if re.search(wanted, f"{case[0]} {case[1]}")]


def remove(path, is_ours):
    """What another time left of a case, but for a whole dump of the official tool."""
    if is_ours or said(path + ".json", "loss") is None:
        shutil.rmtree(path, ignore_errors=True)
        for left in glob.glob(path + ".json*"):
            os.remove(left)


def start(folder, tool, path, wanted):
    """All cases with one tool, going on meanwhile."""
    os.makedirs(f"{folder}/{tool}", exist_ok=True)
    for name, label, keys in wanted:
        remove(f"{folder}/{tool}/{name}-{label}", tool == "ours")
        with open(f"{folder}/{tool}/{name}-{label}.json", "w", encoding="utf-8") as f:
            json.dump({"task": "statistics", "rank": [], "step": [],
                       "dump_path": f"{folder}/{tool}/{name}-{label}", **keys}, f)
    env = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "GLOG_v": "3"}
    return subprocess.Popen([sys.executable, __file__, "-", "-", f"{folder}/{tool}"], env=env)


def said(config, what):
    """The text of a file beside config, or of config itself."""
    try:
        with open(f"{config}.{what}" if what else config, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return None


def wait_for(config, folder, tools):
    """Until both tools have come past a case, or are gone."""
    for tool, process in tools.items():
        while said(f"{folder}/{tool}/{config}", "ended") is None and process.poll() is None:
            time.sleep(0.05)


def compare(folder, name, label):
    """What differs in one case."""
    ours, theirs = (f"{folder}/{tool}/{name}-{label}" for tool in ("ours", "official"))
    losses = [said(path + ".json", "loss") for path in (ours, theirs)]
    for loss, path in zip(losses, (ours, theirs)):
        if loss is None:
            yield f"{path} failed: {(said(path + '.json', 'log') or '')[-700:]}"
            return
    if losses[0] != losses[1]:
        yield f"loss {losses[0]} and {losses[1]}"
    if label in GRAPHS:
        yield from peer_dumps.compare_graphs(ours, theirs)
        return
    yield from peer_dumps.compare_trees(ours, theirs, label.startswith("strict"))


def check(folder, name, label):
    """How a case is: "equal", "listed" where all that differs is known, or "differing"."""
    found = list(compare(folder, name, label))
    wrong = unknown(f"{name} {label}", found)
    shown = found if os.environ.get("LISTED") else wrong
    title = f"{name}_{label}_is_as_the_official_tool_writes_it"
    print(f"not ok {title}" if wrong else f"ok {title}", flush=True)
    for line in shown[:int(os.environ.get("LINES", "8"))]:
        print("   ", line[:int(os.environ.get("WIDTH", "300"))])
    return "differing" if wrong else "listed" if found else "equal"


def main():
    build, official = sys.argv[1], sys.argv[2]
    if len(sys.argv) > 3:
        dump_all(sys.argv[3])
        return 0
    if not os.path.isdir(os.path.join(official, "msprobe", "mindspore")):
        print("skip mindspore_oracle: no official package (OFFICIAL=folder)")
        return 0
    wanted = cases()
    with contextlib.ExitStack() as at_end:
        folder = os.environ.get("KEEP") or at_end.enter_context(tempfile.TemporaryDirectory())
        paths = {"ours": os.path.join(build, "python"), "official": official}
        tools = {tool: start(folder, tool, path, wanted) for tool, path in paths.items()}
        kinds = collections.Counter()
        for name, label, _ in sorted(wanted, key=lambda case: f"{case[0]}-{case[1]}.json"):
            wait_for(f"{name}-{label}.json", folder, tools)
            kinds[check(folder, name, label)] += 1
    print(f"mindspore_oracle: {kinds['equal']} programs equal, {kinds['listed']} but for listed "
          f"differences, {kinds['differing']} differing")
    return 1 if kinds["differing"] else 0


if __name__ == "__main__":
    sys.exit(main())
