#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small trainings with MindSpore, each with the monitor that the command line names, or none.

    programs_mindspore.py none|monitored|official OUT [NAME...]   OUT/NAME/*-rank*-*/*.csv; prints "DONE NAME digest"

As programs.py. The official monitor reads gradients from `grad` of parameters, which MindSpore does not set, so
the programs set it; and it takes norms from a function that lacks a kernel for the CPU, so there is another here.
It is run for one program in a process, as it changes the optimizer's class, with optimizers that no graph is made
of, and not for the JITTED programs, whose parts are compiled graphs."""
import copy
import hashlib
import json
import os
import pickle
import sys

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.experimental.optim import SGD, Adam, AdamW

STEPS = 4
EVERYTHING = {"targets": {}, "format": "csv", "ops": ["norm", "min", "max", "mean", "zeros", "nans"],
              "eps": 1e-8, "ndigits": 6, "xy_distribution": True, "all_xy": True, "wg_distribution": True,
              "mv_distribution": True, "param_distribution": True}


def numbers(*shape, seed=1):
    return Tensor(np.random.RandomState(seed).normal(size=shape).astype(np.float32))


def labels(count, classes, seed=1):
    return Tensor(np.random.RandomState(seed).randint(0, classes, count).astype(np.int32))


def fit(model, optimizer, loss_of, accumulate=1, steps=STEPS):
    """Trains; the gradients of `accumulate` batches are added up before each step of the optimizer."""
    parameters = optimizer.parameters
    step = mindspore.value_and_grad(loss_of, None, parameters)
    losses, sums = [], None
    for number in range(steps * accumulate):
        loss, gradients = step(number)
        losses.append(loss.asnumpy().tobytes())
        sums = gradients if sums is None else [a + b for a, b in zip(sums, gradients)]
        if (number + 1) % accumulate == 0:
            for parameter, gradient in zip(parameters, sums):
                parameter.grad = gradient
            losses.append(repr(optimizer(tuple(sums))))
            sums = None
    return losses


class Mlp(nn.Cell):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Dense(6, 16), nn.Dense(16, 3)

    def construct(self, x):
        return self.two(ops.relu(self.one(x)))


def classify(model, shape=(8, 6)):
    return lambda n: ops.cross_entropy(model(numbers(*shape, seed=n)), labels(shape[0], 3, n))


def mlp(watch):
    model = Mlp().set_train()
    optimizer = AdamW(model.trainable_params(), 1e-2)
    watch(model, optimizer)
    return model, fit(model, optimizer, classify(model))


def named(watch):
    """Some cells alone, by their names, every other step, with other figures."""
    model = Mlp().set_train()
    optimizer = SGD(model.trainable_params(), 0.05, 0.9)
    watch(model, optimizer, targets={"two": {}}, all_xy=False, step_interval=2, ops=["max", "shape", "dtype", "nans"],
          mv_distribution=False)
    return model, fit(model, optimizer, classify(model))


def convolutions(watch):
    model = nn.SequentialCell(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
                              nn.Dense(16, 3)).set_train()
    optimizer = SGD(model.trainable_params(), 0.05, 0.9)
    watch(model, optimizer, mv_distribution=False)
    return model, fit(model, optimizer, classify(model, (4, 2, 4, 4)))


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.before, self.qkv, self.out = nn.LayerNorm((8,)), nn.Dense(8, 24), nn.Dense(8, 8)

    def construct(self, x, late=None):
        q, k, v = ops.split(self.qkv(self.before(x)), 8, 2)
        share = ops.softmax(ops.bmm(q, k.transpose(0, 2, 1)) * 0.35 + late, 2)
        return x + self.out(ops.bmm(share, v))


class Words(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words, self.blocks, self.head = nn.Embedding(11, 8), nn.CellList([Block(), Block()]), nn.Dense(8, 11)
        self.late = Tensor(np.triu(np.full((6, 6), -9, np.float32), 1))

    def construct(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x, late=self.late)
        return self.head(x)


def transformer(watch, **changed):
    model = Words().set_train()
    optimizer = Adam(model.trainable_params(), 1e-2)
    watch(model, optimizer, 2, monitor_mbs_grad=True, **changed)

    def loss_of(number):
        ids = labels(12, 11, number).reshape(2, 6)
        return ops.cross_entropy(model(ids).reshape(12, 11), labels(12, 11, number + 1))

    return model, fit(model, optimizer, loss_of, accumulate=2)


class Recurrent(nn.Cell):
    def __init__(self):
        super().__init__()
        self.step, self.out = nn.GRUCell(5, 6), nn.Dense(6, 3)

    def construct(self, x):
        h = ops.zeros((4, 6))
        for t in range(3):
            h = self.step(x[:, t], h)
        return self.out(h)


def recurrent(watch):
    model = Recurrent().set_train()
    optimizer = Adam(model.trainable_params(), 1e-2)
    watch(model, optimizer, forward_only=True)
    return model, fit(model, optimizer, classify(model, (4, 3, 5)))


def frozen(watch):
    """A layer that does not learn."""
    model = Words().set_train()
    for parameter in model.words.get_parameters():
        parameter.requires_grad = False
    optimizer = AdamW(model.trainable_params(), 1e-2)
    watch(model, optimizer, targets={"blocks.1": {}, "head": {}}, all_xy=False, backward_only=True)

    def loss_of(number):
        ids = labels(12, 11, number).reshape(2, 6)
        return ops.cross_entropy(model(ids).reshape(12, 11), labels(12, 11, number + 1))

    return model, fit(model, optimizer, loss_of)


def halves(watch):
    model = Mlp().set_train().to_float(mindspore.float16)
    optimizer = Adam(model.trainable_params(), 1e-2)
    watch(model, optimizer, mv_distribution=False, start_step=1, collect_times=2, step_count_per_record=2)
    return model, fit(model, optimizer, lambda n: ops.cross_entropy(model(numbers(8, 6, seed=n)).astype(
        mindspore.float32), labels(8, 3, n)))


def two_chunks(watch):
    first, second = nn.Dense(6, 8).set_train(), nn.Dense(8, 3).set_train()
    for chunk, word in ((first, "first"), (second, "second")):
        for parameter in chunk.get_parameters():
            parameter.name = f"{word}.{parameter.name}"
    optimizer = AdamW([*first.trainable_params(), *second.trainable_params()], 1e-2)
    watch([first, second], optimizer)
    both = nn.SequentialCell(first, nn.Tanh(), second)
    return both, fit(both, optimizer, classify(both))


# ---- parts that are compiled ------------------------------------------------------------------


class Compiled(Mlp):
    @mindspore.jit
    def construct(self, x):
        return self.two(ops.relu(self.one(x)))


def compiled_cell(watch):
    model = nn.SequentialCell(Compiled(), nn.Dense(3, 3)).set_train()
    optimizer = nn.Adam(model.trainable_params(), 1e-2)
    watch(model, optimizer)
    return model, fit(model, optimizer, classify(model))


def compiled_loss(watch):
    model = Mlp().set_train()
    optimizer = AdamW(model.trainable_params(), 1e-2)
    watch(model, optimizer)

    @mindspore.jit
    def inner(x, y):
        return ops.cross_entropy(model(x), y)

    return model, fit(model, optimizer, lambda n: inner(numbers(8, 6, seed=n), labels(8, 3, n)))


def compiled_step(watch):
    """The whole step in one graph, the optimizer as well."""
    model = Mlp().set_train()
    step = nn.TrainOneStepCell(nn.WithLossCell(model, nn.SoftmaxCrossEntropyWithLogits(True, "mean")),
                               nn.Adam(model.trainable_params(), 1e-2)).set_train()
    watch(model, step.optimizer)

    @mindspore.jit
    def run(x, y):
        return step(x, y)

    return model, [run(numbers(8, 6, seed=n), labels(8, 3, n)).asnumpy().tobytes() for n in range(STEPS)]


def graph_mode(watch):
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    try:
        model = Mlp().set_train()
        step = nn.TrainOneStepCell(nn.WithLossCell(model, nn.SoftmaxCrossEntropyWithLogits(True, "mean")),
                                   nn.Adam(model.trainable_params(), 1e-2)).set_train()
        watch(model, step.optimizer)
        return model, [step(numbers(8, 6, seed=n), labels(8, 3, n)).asnumpy().tobytes() for n in range(STEPS)]
    finally:
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)


def copied(watch):
    """Copies of a watched model are not watched; a checkpoint and a pickle have nothing of the monitor."""
    model = Mlp().set_train()
    optimizer = AdamW(model.trainable_params(), 1e-2)
    watch(model, optimizer)
    other = copy.deepcopy(model)
    said = []
    try:
        said.append(len(pickle.dumps(model)) > 0)
    except Exception as why:
        said.append(type(why).__name__)
    losses = fit(model, optimizer, classify(model))
    return model, [*losses, *said, other(numbers(8, 6)).asnumpy().tobytes()]


PROGRAMS = [mlp, named, convolutions, transformer, recurrent, frozen, halves, two_chunks]
JITTED = [compiled_cell, compiled_loss, compiled_step, graph_mode, copied]


# ---- running ------------------------------------------------------------------


def digest(model, losses):
    h = hashlib.sha256(repr(losses).encode())
    for name, parameter in model.parameters_and_names():
        h.update(name.encode() + parameter.asnumpy().tobytes())
    state = mindspore.get_rng_state() if hasattr(mindspore, "get_rng_state") else ()
    h.update(b"".join(s.asnumpy().tobytes() for s in (state if isinstance(state, tuple) else (state,))))
    return h.hexdigest()[:16]


def watcher(how, out, held):
    """Returns the function that a program calls to have a model monitored."""
    def watch(model, optimizer, micro_steps=1, **changed):
        if how == "none":
            return
        from msprobe.mindspore import TrainerMon
        os.environ["MONITOR_OUTPUT_DIR"] = out
        os.makedirs(out, exist_ok=True)
        path = os.path.join(out, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**EVERYTHING, **changed}, file)
        monitor = TrainerMon(path, params_have_main_grad=False)
        monitor.set_monitor(model, optimizer, grad_acc_steps=micro_steps)
        held.append(monitor)
    return watch


def norm(tensor):
    return Tensor(np.float32(np.linalg.norm(tensor.asnumpy().astype(np.float64))))


def main(how, out, *names):
    mindspore.set_device("CPU")
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    if how == "official":
        mindspore.mint.norm = norm
    for program in names and [p for p in PROGRAMS + JITTED if p.__name__ in names] or PROGRAMS + JITTED:
        mindspore.set_seed(0)
        np.random.seed(0)
        held = []
        found = program(watcher(how, os.path.join(out, program.__name__), held))
        print("DONE", program.__name__, digest(*found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
