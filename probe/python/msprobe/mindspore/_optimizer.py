# SPDX-License-Identifier: MIT
"""Optimizers of MindSpore, and functions that clip gradients: see _roots.

Calling an optimizer performs its step, whatever its class."""
import mindspore
from mindspore import nn, ops

from msprobe._places import Places
from msprobe._roots import inside, is_inside, stepping

_CLIPPING = ("clip_by_global_norm", "clip_by_norm", "clip_by_value")

places = Places()


def bases():
    """Yields the base classes of all optimizers."""
    yield nn.Optimizer
    experimental = getattr(mindspore, "experimental", None)
    optim = getattr(experimental, "optim", None)
    if optim is not None:
        yield optim.Optimizer


def watch():
    """Wraps all present and future optimizers; repeated after functions were wrapped."""
    for cls in bases():
        if not is_inside(cls.__call__):
            places.add(cls, "__call__", cls.__call__, stepping(cls.__call__))
    for name in _CLIPPING:
        func = getattr(ops, name, None)
        if func is not None and not is_inside(func):
            places.add(ops, name, func, inside(func, "clip_grad", outside=True))
    places.put()
