# SPDX-License-Identifier: MIT
"""What samples/train_torch.py and samples/train_mindspore.py share: the numbers of
samples/train, that is its weights and data, the options, and the order of a run.
"""
import argparse
import os
import sys

import numpy as np

VOCAB, HEADS, LENGTH = 64, 4, 16
FAULTS = {
    "scale": "attention is not divided by the root of the width",
    "sign": "the MLP's output is subtracted from its input",
    "transposed": "the projection's weight is taken transposed",
    "residual": "attention's input is not added to its output",
    "eps": "layer norm has an epsilon of 0.01 instead of 0.00001",
    "mask": "attention sees the tokens behind",
    "half": "the MLP's output passes through half precision",
    "bias": "the MLP's first linear has no bias",
}


# ---- weights ----------------------------------------------------------------------


class Generator:
    """The numbers of the C sample: 64 bits of state, the upper ones used."""

    def __init__(self, seed):
        self.state = (seed * 2654435761 & 0xffffffff) + 1 & 0xffffffff

    def uniform(self, n):
        found = np.empty(n, np.float32)
        for i in range(n):
            self.state = self.state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            found[i] = np.float32(self.state >> 40) / np.float32(1 << 23) - np.float32(1)
        return found


def scale_of(name, shape):
    """How large a parameter begins; None: at the constant of layer norm."""
    if "norm" in name:
        return None
    if name == "embed.weight":
        return np.float32(0.5)
    if name == "position":
        return np.float32(0.1)
    if name.endswith("bias"):
        return np.float32(0.02)
    return np.float32(1) / np.sqrt(np.float32(shape[1]))


def names_in_order(layers):
    """Parameters as the C sample makes them: a layer's parts one after the other."""
    parts = ("norm1", "attn.qkv", "attn.proj", "norm2", "mlp.up", "mlp.down")
    names = ["embed.weight", "position"]
    for i in range(layers):
        names += [f"layers.{i}.{part}.{kind}" for part in parts for kind in ("weight", "bias")]
    return names + ["norm.weight", "norm.bias", "head.weight"]


def made(shapes, seed):
    """(name, values) of weights of our own making; shapes: by name, in order."""
    generator = Generator(seed)
    for name, shape in shapes.items():
        scale, n = scale_of(name, shape), int(np.prod(shape))
        values = np.full(n, name.endswith("weight"), np.float32) if scale is None \
            else scale * generator.uniform(n)
        yield name, values.reshape(shape)


def loaded(shapes, folder):
    """(name, values) of NAME.npy files."""
    for name, shape in shapes.items():
        values = np.load(os.path.join(folder, name + ".npy"))
        if values.shape != tuple(shape):
            raise ValueError(f"{name}: shape {values.shape}, not {tuple(shape)}")
        yield name, values.astype(np.float32)


def save(arrays, folder):
    os.makedirs(folder, exist_ok=True)
    for name, values in arrays.items():
        np.save(os.path.join(folder, name + ".npy"), values)


def set_weights(parameters, o, put):
    """put(parameter, values) for all, from the folder that is given or of our own making."""
    shapes = {name: tuple(p.shape) for name, p in parameters.items()}
    for name, values in loaded(shapes, o.weights) if o.weights else made(shapes, o.seed):
        put(parameters[name], values)


# ---- data -------------------------------------------------------------------------


def make_batch(o, step):
    """A text with a rule to learn: what all ranks of the C sample read in this step."""
    tokens, targets = (np.empty((o.ranks * o.batch, LENGTH), np.int64) for _ in range(2))
    for b in range(o.ranks * o.batch):
        rank, row = divmod(b, o.batch)
        seed = (step * o.ranks + rank) * 1000003 + row * 7919 + o.seed
        now = seed // 7 % VOCAB
        for i in range(LENGTH):
            seed = seed * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            noise = seed >> 33 & 0x7fffffff
            following = noise % VOCAB if seed >> 60 == 0 else (5 * now + 3) % VOCAB
            tokens[b, i], targets[b, i] = now, following
            now = following
    return tokens, targets


# ---- options ----------------------------------------------------------------------


def options():
    """What the command line says; FAULTS are listed, and what cannot be is refused."""
    p = argparse.ArgumentParser(description="train a small language model, as samples/train does")
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--dim", type=int, default=32, help="width, a multiple of 4")
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--ranks", type=int, default=1, help="train on the data of so many ranks")
    p.add_argument("--seed", type=int, default=1, help="of weights and data")
    p.add_argument("--rate", type=float, default=0.05)
    p.add_argument("--fault", metavar="LAYER.NAME", help="make the model wrong: layer3.scale")
    p.add_argument("--list-faults", action="store_true")
    p.add_argument("--weights", metavar="DIR", help="start from NAME.npy files of this folder")
    p.add_argument("--save", metavar="DIR", help="leave the weights there at the end")
    p.add_argument("--dump", metavar="DIR", help="dump every step")
    p.add_argument("--task", default="statistics", choices=("statistics", "tensor"))
    p.add_argument("--level", default="mix", choices=("L0", "L1", "mix"))
    p.add_argument("--quiet", action="store_true", help="print the last loss alone")
    o = p.parse_args()
    if o.list_faults:
        for name, text in FAULTS.items():
            print(f"layerN.{name:12} {text}")
        p.exit()
    if o.steps < 1 or o.layers < 1 or o.dim < 4 or o.dim % 4 != 0 or o.batch < 1 or o.ranks < 1:
        p.error("an option is out of its range")
    o.fault_layer, o.fault = fault_of(p, o)
    return o


def fault_of(parser, o):
    if o.fault is None:
        return -1, None
    layer, _, name = o.fault.partition(".")
    number = layer[len("layer"):] if layer.startswith("layer") else ""
    if name not in FAULTS or not number.isdigit() or int(number) >= o.layers:
        parser.error(f"there is no fault '{o.fault}'; see --list-faults")
    return int(number), name


# ---- the run ----------------------------------------------------------------------


def open_debugger(o, debugger_class):
    """None when no dump is asked for; debugger_class() imports the adapter, which is only needed
    then."""
    if o.dump is None:
        return None
    return debugger_class()(task=o.task, dump_path=o.dump, level=o.level)


def run(framework, o):
    """Train.  A framework has: the model; parameters(), by name; put(parameter, values) and
    values_of(parameter); debugger_class(); begin(parameters), which makes the optimizer;
    gradients(tokens, targets), which gives the loss; and step()."""
    parameters = framework.parameters()
    parameters = {name: parameters[name] for name in names_in_order(o.layers)}
    try:
        set_weights(parameters, o, framework.put)
    except (OSError, ValueError) as why:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {why}")
    debugger = open_debugger(o, framework.debugger_class)
    framework.begin(parameters)
    for step in range(o.steps):
        tokens, targets = make_batch(o, step)
        if debugger:
            debugger.start(framework.model)
        loss = framework.gradients(tokens, targets)
        if debugger:
            debugger.stop()
            debugger.step()
        framework.step()
        if not o.quiet or step + 1 == o.steps:
            print(f"step {step} loss {loss:.8f}")
    if o.save:
        save({name: framework.values_of(p) for name, p in parameters.items()}, o.save)
