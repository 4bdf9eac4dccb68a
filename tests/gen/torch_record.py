# SPDX-License-Identifier: MIT
"""A small recorder of PyTorch programs that writes the official layout.

Every operator is recorded with its inputs and outputs, forward through a torch
function mode, backward through identity functions around it, and at the end the
gradients of parameters.  A fault can be put into any of these places.  It is a
second witness beside the adapter of the product, and knows nothing of it.
"""
import collections
import json
import os
import warnings
import zlib

import torch
from torch.overrides import TorchFunctionMode

QUIET = {"__get__", "__set__", "size", "dim", "numel", "stride", "detach", "requires_grad_", "is_floating_point",
         "backward", "shape", "data_ptr", "element_size", "__len__", "__repr__", "item", "tolist", "register_hook",
         "is_complex", "type", "zeros", "ones", "arange", "full", "rand", "randn", "tensor", "ndimension", "is_contiguous", "__bool__", "get_device", "is_tensor", "new_empty"}


class Tap(torch.autograd.Function):
    """Identity whose backward hands the gradient to a function, and on with what that returns."""

    @staticmethod
    def forward(ctx, x, heard):
        ctx.heard = heard
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return ctx.heard(grad), None


def keep(x):
    return x.detach().clone()


class Leaf:
    """One value as it was when it was seen."""

    def __init__(self, x):
        self.x = keep(x) if isinstance(x, torch.Tensor) else x
        self.grad = bool(x.requires_grad) if isinstance(x, torch.Tensor) else False


def leaves(x):
    if isinstance(x, torch.Tensor) or x is None or isinstance(x, (bool, int, float, str)):
        return Leaf(x)
    if isinstance(x, torch.Size) or isinstance(x, (list, tuple)):
        return [leaves(y) for y in x]
    if isinstance(x, dict):
        return {k: leaves(v) for k, v in x.items()}
    return Leaf(str(x))


class Entry:
    def __init__(self, name, args, kwargs, out, backward=False):
        self.name, self.args, self.kwargs, self.out, self.backward = name, args, kwargs, out, backward


class Recorder(TorchFunctionMode):
    """Runs a program and keeps what its operators read and wrote.

    fault(name, phase, value): phase "args" gets and returns the arguments, "out" the
    output and "grad" a gradient that the operator's backward writes.
    implement(func, name, args, kwargs) may compute an operator in another way."""

    def __init__(self, fault=None, implement=None):
        super().__init__()
        self.entries, self.count = [], collections.Counter()
        self.fault = fault or (lambda name, phase, value: value)
        self.implement = implement or (lambda func, name, args, kwargs: func(*args, **kwargs))

    def name_of(self, func):
        name = getattr(func, "__name__", "")
        module = getattr(func, "__module__", "") or ""
        if name in QUIET or not name:
            return None
        if module.startswith("torch.nn.functional") or "_nn" in str(getattr(func, "__qualname__", "")) \
                or name in ("linear", "gelu", "conv2d", "softmax", "cross_entropy", "adaptive_avg_pool2d"):
            prefix = "Functional"
        elif type(func).__name__ in ("method_descriptor", "wrapper_descriptor") or name.startswith("__"):
            prefix = "Tensor"
        else:
            prefix = "Torch"
        k = self.count[prefix + name]
        self.count[prefix + name] += 1
        return f"{prefix}.{name}.{k}"

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = self.name_of(func)
        if name is None:
            return func(*args, **kwargs)
        args = self.fault(name, "args", args)
        entry = Entry(f"{name}.forward", leaves(list(args)), leaves(kwargs), None)
        back = Entry(f"{name}.backward", {}, {}, {}, backward=True)
        args, kwargs = self.tap_inputs(args, kwargs, back, name)
        out = self.implement(func, name, args, kwargs)
        out = self.fault(name, "out", out)
        single = isinstance(out, torch.Tensor)
        outs = [out] if single else list(out) if isinstance(out, (list, tuple)) else []
        if not outs:
            return out
        entry.out = leaves(outs)
        self.entries.append(entry)
        outs = [self.tap_output(y, i, back) for i, y in enumerate(outs)]
        return outs[0] if single else type(out)(outs) if type(out) in (list, tuple) else tuple(outs)

    def tap_inputs(self, args, kwargs, back, name):
        def wrap(x, place):
            if isinstance(x, (list, tuple)):
                return type(x)(wrap(y, f"{place}.{i}") for i, y in enumerate(x)) if type(x) in (list, tuple) else x
            if not isinstance(x, torch.Tensor) or not x.requires_grad:
                return x

            def heard(grad):
                grad = self.fault(name, "grad", grad)
                back.out[place] = Leaf(grad)
                return grad
            return Tap.apply(x, heard)
        positional = tuple(wrap(a, str(i)) for i, a in enumerate(args))
        return positional, {k: wrap(v, f"{len(args) + i}") for i, (k, v) in enumerate(kwargs.items())}

    def tap_output(self, y, i, back):
        if not isinstance(y, torch.Tensor) or not y.requires_grad:
            return y

        def heard(grad):
            if not back.args:
                self.entries.append(back)
            back.args[i] = Leaf(grad)
            return grad
        return Tap.apply(y, heard)

    def add_gradients(self, module):
        for path, p in reversed(list(module.named_parameters())):
            if p.grad is not None:
                owner, _, leaf = path.rpartition(".")
                entry = Entry(f"Module.{owner}.parameters_grad.0", {leaf: [Leaf(p.grad)]}, None, None)
                same = next((e for e in self.entries if e.name == entry.name), None)
                if same:
                    same.args.update(entry.args)
                else:
                    self.entries.append(entry)

    def values(self):
        """All values that forward operators wrote, in order, each once."""
        seen = {}
        for e in self.entries:
            if e.name.endswith(".forward"):
                for x in flat(e.out):
                    if isinstance(x.x, torch.Tensor):
                        seen[zlib.crc32(raw(x.x.double() if x.x.is_floating_point() else x.x))] = 1
        return list(seen)

    def digest(self, forward_only=False):
        """A number for everything that was recorded."""
        crc = 0
        for e in self.entries:
            if forward_only and not e.name.endswith(".forward"):
                continue
            for x in flat(e.args) + flat(e.kwargs) + flat(e.out):
                crc = zlib.crc32(raw(x.x) if isinstance(x.x, torch.Tensor) else repr(x.x).encode(), crc)
        return crc


def flat(x):
    if x is None:
        return []
    if isinstance(x, Leaf):
        return [x]
    return [z for y in (x.values() if isinstance(x, dict) else x) for z in flat(y)]


def raw(t):
    t = t.contiguous()
    return (t.view(torch.int16) if t.dtype == torch.bfloat16 else t).numpy().tobytes()


class Writer:
    """Writes what was recorded as step0/rank0 of a folder, in one of three modes."""

    def __init__(self, folder, mode):
        self.dir, self.mode = os.path.join(folder, "step0", "rank0"), mode
        self.data = os.path.join(self.dir, "dump_tensor_data")
        os.makedirs(self.data if mode == "tensor" else self.dir, exist_ok=True)

    def tensor(self, leaf, name):
        t = leaf.x
        d = {"type": "torch.Tensor", "dtype": str(t.dtype), "shape": list(t.shape)}
        if self.mode != "md5":
            d.update(self.statistics(t))
        d["requires_grad"] = leaf.grad
        if self.mode == "md5":
            d["md5"] = f"{zlib.crc32(raw(t)):08x}"
        if self.mode == "tensor":
            d["data_name"] = name + ".pt"
            torch.save(t.contiguous(), os.path.join(self.data, name + ".pt"))
        return d

    @staticmethod
    def statistics(t):
        if t.numel() == 0:
            return {"Max": None, "Min": None, "Mean": None, "Norm": None}
        if t.dtype == torch.bool:
            return {"Max": bool(t.any()), "Min": bool(t.all()), "Mean": None, "Norm": None}
        if not t.is_floating_point():
            return {"Max": t.max().item(), "Min": t.min().item(), "Mean": None, "Norm": None}
        f = t if t.dtype == torch.float64 else t.float()
        return {"Max": f.max().item(), "Min": f.min().item(), "Mean": f.mean().item(), "Norm": f.norm().item()}

    def value(self, x, name):
        if isinstance(x, Leaf):
            if isinstance(x.x, torch.Tensor):
                return self.tensor(x, name)
            return None if x.x is None else {"type": type(x.x).__name__, "value": x.x}
        if isinstance(x, dict):
            return {k: self.value(v, f"{name}.{k}") for k, v in x.items()}
        return [self.value(v, f"{name}.{i}") for i, v in enumerate(x)]

    def entry(self, e):
        if ".parameters_grad" in e.name:
            return self.value(e.args, e.name)
        if e.backward:
            order = sorted(e.out, key=lambda k: [int(p) for p in k.split(".")])
            return {"input": [self.value(e.args[k], f"{e.name}.input.{k}") for k in sorted(e.args)],
                    "output": [self.value(e.out[k], f"{e.name}.output.{i}") for i, k in enumerate(order)]}
        return {"input_args": self.value(e.args, e.name + ".input"), "input_kwargs": self.value(e.kwargs, e.name + ".input"),
                "output": self.value(e.out, e.name + ".output")}

    def write(self, recorder):
        task = "tensor" if self.mode == "tensor" else "statistics"
        doc = {"task": task, "level": "L1", "framework": "pytorch",
               "dump_data_dir": self.data if self.mode == "tensor" else None,
               "data": {e.name: self.entry(e) for e in recorder.entries}}
        with open(os.path.join(self.dir, "dump.json"), "w") as f:
            json.dump(doc, f, indent=1)


warnings.filterwarnings("ignore")
