# SPDX-License-Identifier: MIT
"""What a training step of a family does: which modules it calls, and what reads a value of the batch."""
import contextlib
import functools
import re

from torch import nn
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from changes import anywhere, is_norm

CONVS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
LINES = (nn.Linear, *CONVS)


# Functions whose result is their input in another form: a reader of the result reads the input.
FORMS = {"to", "view", "reshape", "getitem", "contiguous", "flatten", "float", "long", "int", "bool", "clone",
         "unsqueeze", "detach", "transpose", "permute", "expand", "pad", "type", "squeeze", "chunk", "split"}


class Readers(TorchFunctionMode):
    """Collects the functions and modules that read a tensor."""

    def __init__(self, tensor):
        super().__init__()
        self.tensors, self.functions, self.modules = [tensor], set(), set()

    def is_read(self, values):
        flat = [y for x in values for y in (x if isinstance(x, (list, tuple)) else [x])]
        return any(y is t for y in flat for t in self.tensors)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        read = self.is_read([*args, *(kwargs or {}).values()])
        out = func(*args, **(kwargs or {}))
        name = re.sub(r"^__(?:[ri](?=[a-z]+__$))?|__$", "", getattr(func, "__name__", ""))
        if read and name and name != "get":
            self.functions.add(name.strip("_"))
            if name.strip("_") in FORMS:
                self.tensors += out if isinstance(out, (list, tuple)) else [out]
        return out


@contextlib.contextmanager
def watched(model, before):
    """Calls before(path, module, args, kwargs) at each call of a module."""
    hooks = [m.register_forward_pre_hook(functools.partial(lambda n, m, a, k: before(n, m, a, k), n), with_kwargs=True)
             for n, m in model.named_modules()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def observe(family, model, key):
    batch = family.batch()
    mode = Readers(batch[key])
    def before(path, module, args, kwargs):
        if path and mode.is_read([*args, *kwargs.values()]):
            mode.modules.add(path)
    with watched(model, before), mode:
        family.loss(model, batch)
    return mode


def is_read(family, model, key):
    return bool(observe(family, model, key).functions)


def readers(family, model, key):
    """Truth of a wrong input: what reads it, directly or in another form."""
    mode = observe(family, model, key)
    names = "|".join(rf"(?:__[ri]?)?{n}_?(?:__)?" for n in sorted(mode.functions))
    return "|".join([anywhere(names), *(rf"^Module\.{re.escape(p)}\.\S+ @ " for p in sorted(mode.modules))])


def called(family, model):
    """Paths of leaf modules that a step calls, in the order of their calls; where some are called once, those.
    Also of modules whose first input is part of the graph."""
    counts, graded = {}, set()
    def before(path, module, args, kwargs):
        counts[path] = counts.get(path, 0) + 1
        if args and getattr(args[0], "requires_grad", False):
            graded.add(path)
    with watched(model, before):
        family.loss(model, family.batch())
    leaves = {p: n for p, n in counts.items() if p and not list(model.get_submodule(p).children())}
    def learn(p):
        return any(w.requires_grad for w in model.get_submodule(p).parameters())
    once = [p for p, n in leaves.items() if n == 1]
    return (once if any(learn(p) for p in once) else list(leaves)), graded


class Places:
    """Modules of a model by what they are."""

    def __init__(self, family, model):
        self.model, self.family = model, family
        self.called, self.graded = called(family, model)

    def all(self, test):
        return [p for p in self.called if test(self.model.get_submodule(p))]

    def line(self, skip, kinds=LINES):
        """A layer that learns, whose weight nobody else reads."""
        found = self.all(lambda m: isinstance(m, kinds) and "weight" in m._parameters and m.weight.requires_grad)
        return found[skip % len(found)] if found else None

    def norm(self, skip):
        found = self.all(lambda m: is_norm(m) and getattr(m, "weight", None) is not None and m.weight.requires_grad)
        return found[skip % len(found)] if found else None


def uses(family, model, name):
    plain, seen = getattr(F, name), []
    setattr(F, name, lambda *a, **k: (seen.append(1), plain(*a, **k))[1])
    try:
        family.loss(model, family.batch())
    finally:
        setattr(F, name, plain)
    return bool(seen)
