# SPDX-License-Identifier: MIT
"""The optimizer and gradient clipping as parents of what is called in them."""
import functools

import torch

from msprobe._roots import inside

_after_step = []  # functions to call when an optimizer has stepped


def _wrap_step(cls):
    step = vars(cls).get("step")
    if step is None or getattr(step, "_is_inside", False):
        return
    inner = inside(step, "optimizer")

    @functools.wraps(step)
    def run(self, *args, **kwargs):
        result = inner(self, *args, **kwargs)
        for then in _after_step:
            then(self)
        return result

    run._is_inside = True
    cls.step = run


def _wrap_known(cls):
    for sub in cls.__subclasses__():
        _wrap_step(sub)
        _wrap_known(sub)


def watch():
    """All optimizers there are, and those that will be."""
    base = torch.optim.Optimizer
    if getattr(base.__init__, "_is_inside", False):
        return
    init = base.__init__

    @functools.wraps(init)
    def run(self, *args, **kwargs):
        for cls in type(self).__mro__:
            if issubclass(cls, base) and cls is not base:
                _wrap_step(cls)
        init(self, *args, **kwargs)

    run._is_inside = True
    base.__init__ = run
    _wrap_known(base)
    utils = torch.nn.utils
    for name in ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_"):
        func = getattr(utils, name, None)
        if func is not None:
            setattr(utils, name, inside(func, "clip_grad"))


def call_after_step(then):
    """Have a function called with the optimizer after each of its steps."""
    watch()
    _after_step.append(then)
