# SPDX-License-Identifier: MIT
"""Runs the networks of graph_mistakes.py with a dump.

    GRAPH_FRAMEWORK=mindspore|torch graph_runs.py < LIST
        each line of LIST: MODE NETWORK MISTAKE FOLDER
        MODE       graph or functions: who dumps, the framework its graph or we the functions
        MISTAKE    a key of MISTAKES, or "none"

One process imports the framework and becomes each run: the import takes longer than a run. The threads
of MindSpore do not survive a fork, and do not exist before its first operator.
"""
import atexit
import importlib
import os
import sys
import traceback

import graph_networks
import graph_networks_eighth
import graph_networks_eleventh
import graph_networks_fifth
import graph_networks_fourth
import graph_networks_more
import graph_networks_ninth
import graph_networks_seventh
import graph_networks_sixth
import graph_networks_tenth
import graph_networks_third
from graph_networks import FRAMEWORK, numbers

TABLES = {"first": graph_networks, "second": graph_networks_more, "third": graph_networks_third,
          "fourth": graph_networks_fourth, "fifth": graph_networks_fifth, "sixth": graph_networks_sixth,
          "seventh": graph_networks_seventh, "eighth": graph_networks_eighth,
          "ninth": graph_networks_ninth, "tenth": graph_networks_tenth,
          "eleventh": graph_networks_eleventh}
SETS = {name: table.MISTAKES for name, table in TABLES.items()}
NETWORKS, MISTAKES, INPUTS = ({key: value for table in TABLES.values() for key, value in getattr(table, name).items()}
                              for name in ("NETWORKS", "MISTAKES", "INPUTS"))
SAME, OPTIMIZERS, STEPS, ADAM = (
    {key: value for table in TABLES.values() for key, value in getattr(table, name, {}).items()}
    for name in ("SAME", "OPTIMIZERS", "STEPS", "ADAM"))
# Networks whose optimizer counts take two steps, where nothing else is said.
TRAINED = {MISTAKES[name][0] for name in OPTIMIZERS} | set(STEPS)


def step_count(network):
    return STEPS.get(network, 2 if network in TRAINED else 1)


def values(parameters):
    """One array for each shape, the same in both frameworks. A bias that a mistake leaves out is not
    counted, so the numbers depend on what a parameter is named, not on how many came before."""
    found = {}
    for name, shape in parameters:
        kind = name.replace("embedding_table", "weight").replace("gamma", "weight").replace("beta", "bias")
        seed = sum(map(ord, kind)) % 9973
        at_one = len(shape) == 1 and kind.endswith("weight")
        found[name] = numbers(seed, shape, 0.3 if len(shape) == 1 else 0.5) + (1 if at_one else 0)
    return found


def optimizer_of(network, mistake):
    """Learning rate, momentum or betas, and weight decay."""
    keys = {"rate": 0.01, "momentum": 0.9, "decay": 0.01} if network in TRAINED else {
        "rate": 0.01, "momentum": 0.0, "decay": 0.0}
    keys.update(ADAM.get(network, {}))
    keys.update(OPTIMIZERS.get(mistake, {}))
    return keys


def torch_optimizer(model, keys):
    if "betas" in keys:
        return torch.optim.Adam(model.parameters(), keys["rate"], keys["betas"], weight_decay=keys["decay"])
    return torch.optim.SGD(model.parameters(), keys["rate"], keys["momentum"], weight_decay=keys["decay"])


def mindspore_optimizer(model, keys):
    # Without a group, parameters named beta or gamma would not decay.
    group = [{"params": model.trainable_params(), "weight_decay": keys["decay"]}]
    if "betas" in keys:
        return nn.Adam(group, keys["rate"], *keys["betas"])
    return nn.SGD(group, keys["rate"], keys["momentum"])


def run_torch(network, mistake, folder):
    from msprobe.pytorch import PrecisionDebugger
    model = NETWORKS[network](mistake)
    drawn = values([(n, tuple(p.shape)) for n, p in model.named_parameters()])
    for name, parameter in model.named_parameters():
        parameter.data = torch.from_numpy(drawn[name])
    debugger = PrecisionDebugger(dump_path=folder, task="tensor", level="mix")
    optimizer = torch_optimizer(model, optimizer_of(network, mistake))
    for _ in range(step_count(network)):
        debugger.start(model)
        loss = (model(*map(torch.from_numpy, INPUTS[network]())) ** 2).mean()
        loss.backward()
        if network in TRAINED:
            for parameter in model.parameters():  # PyTorch decays none that has no gradient, MindSpore does
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
            optimizer.step()
            optimizer.zero_grad()
        debugger.stop()
        debugger.step()


def run_mindspore(mode, network, mistake, folder):
    from msprobe.mindspore import PrecisionDebugger
    mindspore.set_device("CPU")
    mindspore.set_context(mode=mindspore.GRAPH_MODE if mode == "graph" else mindspore.PYNATIVE_MODE)
    model = NETWORKS[network](mistake)
    drawn = values([(p.name, p.shape) for p in model.trainable_params()])
    for parameter in model.trainable_params():
        parameter.set_data(Tensor(drawn[parameter.name]))

    class Loss(nn.Cell):
        def __init__(self):
            super().__init__(auto_prefix=False)
            self._backbone = model

        def construct(self, *args):
            y = self._backbone(*args)
            return (y ** 2).mean()

    debugger = PrecisionDebugger(dump_path=folder, task="tensor", level="L2" if mode == "graph" else "mix")
    optimizer = mindspore_optimizer(model, optimizer_of(network, mistake))
    step = nn.TrainOneStepCell(Loss(), optimizer).set_train()
    for _ in range(step_count(network)):
        debugger.start(model)
        step(*map(Tensor, INPUTS[network]())).asnumpy()
        debugger.stop()
        debugger.step()


def become(mode, network, mistake, folder):
    """Runs a network in this process, which ends."""
    is_done = False
    os.makedirs(folder, exist_ok=True)
    log = os.open(folder + ".log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(os.path.dirname(folder))  # the compiler leaves files in the current folder
    try:
        if FRAMEWORK == "torch":
            run_torch(network, mistake, folder)
        else:
            run_mindspore(mode, network, mistake, folder)
        atexit._run_exitfuncs()
        is_done = True
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(not is_done)


def main():
    """Runs each line; prints those that failed."""
    importlib.import_module("msprobe." + ("pytorch" if FRAMEWORK == "torch" else FRAMEWORK))
    for line in sys.stdin.read().splitlines():
        pid = os.fork()
        if pid == 0:
            become(*line.split())
        if os.waitpid(pid, 0)[1] != 0:
            print(line, flush=True)


if FRAMEWORK == "torch":
    import torch
elif FRAMEWORK:
    import mindspore
    from mindspore import Tensor, nn
if __name__ == "__main__":
    main()
