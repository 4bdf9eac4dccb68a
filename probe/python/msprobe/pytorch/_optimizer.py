# SPDX-License-Identifier: MIT
"""Optimizers of PyTorch, and functions that clip gradients: see _roots."""
import functools

import torch

from msprobe._roots import inside, is_inside, stepping


def _wrap_step(cls):
    step = vars(cls).get("step")
    if step is not None and not is_inside(step):
        cls.step = stepping(step)


def _wrap_known(cls):
    for sub in cls.__subclasses__():
        _wrap_step(sub)
        _wrap_known(sub)


def watch():
    """Wraps all present and future optimizers."""
    base = torch.optim.Optimizer
    if is_inside(base.__init__):
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
