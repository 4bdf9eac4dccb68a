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
import graph_networks_twelfth
from graph_networks import FRAMEWORK, numbers

TABLES = {"first": graph_networks, "second": graph_networks_more, "third": graph_networks_third,
          "fourth": graph_networks_fourth, "fifth": graph_networks_fifth, "sixth": graph_networks_sixth,
          "seventh": graph_networks_seventh, "eighth": graph_networks_eighth,
          "ninth": graph_networks_ninth, "tenth": graph_networks_tenth,
          "eleventh": graph_networks_eleventh, "twelfth": graph_networks_twelfth}
SETS = {name: table.MISTAKES for name, table in TABLES.items()}
NETWORKS, MISTAKES, INPUTS = ({key: value for table in TABLES.values() for key, value in getattr(table, name).items()}
                              for name in ("NETWORKS", "MISTAKES", "INPUTS"))
SAME, OPTIMIZERS, STEPS, ADAM = (
    {key: value for table in TABLES.values() for key, value in getattr(table, name, {}).items()}
    for name in ("SAME", "OPTIMIZERS", "STEPS", "ADAM"))
NATIVE, HOW = graph_networks_twelfth.NATIVE, graph_networks_twelfth.HOW
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
    if keys.get("optimizer") == "other" and "betas" in keys:
        return mindspore.mint.optim.Adam(model.trainable_params(), keys["rate"], keys["betas"])
    if keys.get("optimizer") == "other":
        return nn.Momentum(group, keys["rate"], keys["momentum"])
    if "betas" in keys:
        return nn.Adam(group, keys["rate"], *keys["betas"])
    return nn.SGD(group, keys["rate"], keys["momentum"])


def torch_training(network, mistake):
    """Returns a model, and the function that computes its loss from the data."""
    if network not in NATIVE:
        model = NETWORKS[network](mistake)
        return model, lambda *data: (model(*data) ** 2).mean()
    import graph_native_torch as native
    name, loss, _, count = NATIVE[network]
    model = getattr(native, name)()
    return model, lambda *data: getattr(native, loss)(model(*data[:count]), *data[count:])


def run_torch(network, mistake, folder):
    from msprobe.pytorch import PrecisionDebugger
    model, forward = torch_training(network, mistake)
    drawn = values([(n, tuple(p.shape)) for n, p in model.named_parameters()])
    for name, parameter in model.named_parameters():
        parameter.data = torch.from_numpy(drawn[name])
    debugger = PrecisionDebugger(dump_path=folder, task="tensor", level="mix")
    optimizer = torch_optimizer(model, optimizer_of(network, mistake))
    for _ in range(step_count(network)):
        debugger.start(model)
        loss = forward(*map(torch.from_numpy, INPUTS[network]()))
        loss.backward()
        if network in TRAINED:
            for parameter in model.parameters():  # PyTorch decays none that has no gradient, MindSpore does
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
            optimizer.step()
            optimizer.zero_grad()
        debugger.stop()
        debugger.step()


def mindspore_training(network, mistake):
    """Returns a model, and the cell that computes its loss from the data."""
    class Loss(nn.Cell):
        def __init__(self):
            super().__init__(auto_prefix=False)
            self._backbone = model

        def construct(self, *args):
            y = self._backbone(*args)
            return (y ** 2).mean()

    class NativeLoss(nn.Cell):
        def __init__(self):
            super().__init__(auto_prefix=False)
            self._backbone, self._loss_fn = model, loss

        def construct(self, *args):
            return self._loss_fn(self._backbone(*args[:count]), *args[count:])

    if network not in NATIVE:
        model = NETWORKS[network](mistake)
        return model, Loss()
    import graph_native_mindspore as native
    name, loss, _, count = NATIVE[network]
    model, loss, how = getattr(native, name)(mistake), getattr(native, loss)(mistake), HOW.get(mistake, {})
    if "half" in how:
        model = mindspore.amp.auto_mixed_precision(model, "O1")
    if "recomputed" in how:
        getattr(model, how["recomputed"]).recompute()
    if "compiled" in how:
        loss = mindspore.jit(loss)
    return model, NativeLoss()


def set_values(model, mistake):
    drawn = values([(p.name, p.shape) for p in model.trainable_params()])
    name, change = HOW.get(mistake, {}).get("start", ("", None))
    for parameter in model.trainable_params():
        value = drawn[parameter.name]
        parameter.set_data(Tensor(change(value) if parameter.name == name else value))


def step_by_gradients(forward, optimizer, scale):
    """The step that a program writes itself, from a function's gradients."""
    def forward_fn(*data):
        return forward(*data)

    compute = mindspore.value_and_grad(forward_fn, None, optimizer.parameters)

    def step(*data):
        loss, gradients = compute(*data)
        optimizer(gradients if scale == 1 else tuple(each * scale for each in gradients))
        return loss
    return step


def train_model(forward, optimizer, data, steps, debugger):
    """Trains with the loop of mindspore.train.Model."""
    from mindspore.dataset import GeneratorDataset
    from msprobe.mindspore import MsprobeStep
    source = GeneratorDataset([tuple(data)] * steps, [f"column{i}" for i in range(len(data))], shuffle=False)
    model = mindspore.train.Model(forward, optimizer=optimizer)
    model.train(1, source, callbacks=[MsprobeStep(debugger)], dataset_sink_mode=False)


def run_mindspore(mode, network, mistake, folder):
    from msprobe.mindspore import PrecisionDebugger
    mindspore.set_device("CPU")
    mindspore.set_context(mode=mindspore.GRAPH_MODE if mode == "graph" else mindspore.PYNATIVE_MODE)
    model, forward = mindspore_training(network, mistake)
    set_values(model, mistake)
    how, data, way = HOW.get(mistake, {}), INPUTS[network](), NATIVE.get(network, ("", "", "cell"))[2]
    data = how["data"](data) if "data" in how else data
    debugger = PrecisionDebugger(dump_path=folder, task="tensor", level="L2" if mode == "graph" else "mix")
    optimizer = mindspore_optimizer(model, {**optimizer_of(network, mistake), **how})
    if way == "model":
        train_model(forward, optimizer, data, step_count(network), debugger)
        return
    if way == "grad":
        model.set_train()
        step = step_by_gradients(forward, optimizer, how.get("gradients", 1))
    else:
        step = nn.TrainOneStepCell(forward, optimizer).set_train()
    for _ in range(step_count(network)):
        debugger.start(model)
        step(*map(Tensor, data)).asnumpy()
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
