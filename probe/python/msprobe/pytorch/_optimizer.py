# SPDX-License-Identifier: MIT
"""Optimizers of PyTorch, and functions that clip gradients: see _roots.

Their functions stay the same objects; the C half watches their calls (see ext_watch.c)."""
import inspect

import torch

from msprobe import _probe
from msprobe._roots import has_stepped, rooted
from msprobe.pytorch import _compilers

_ROOTS = 2  # a group of watched functions
_Optimizer = torch.optim.Optimizer
_in_step = rooted("optimizer", pass_on=_probe.past)
_in_clipping = rooted("clip_grad", pass_on=_probe.past)
_stays = False


def _step(func, args, kwargs):
    result = _in_step(func, args, kwargs)
    has_stepped(args[0])
    return result


_steps = {}  # number of a class -> its step, which has been unwrapped; all classes are asked at each step


def _watch_step(cls):
    """Watches the step of a class itself, below what PyTorch and the program put around it."""
    step = vars(cls).get("step")
    if callable(step) and _steps.get(id(cls)) is not step:
        _probe.watch(inspect.unwrap(step), _step, _ROOTS)
        _steps[id(cls)] = step


def _watch_known(cls):
    for sub in cls.__subclasses__():
        _watch_step(sub)
        _watch_known(sub)


def _made(func, args, kwargs):
    """Watches the step of an optimizer that is made while functions are watched."""
    for cls in type(args[0]).__mro__:
        if issubclass(cls, _Optimizer) and cls is not _Optimizer:
            _watch_step(cls)
    _probe.watching(True, _ROOTS)
    return _probe.past(func, args, kwargs)


def watch():
    """Watches all present optimizers and those that are made from now on."""
    _probe.watch(_Optimizer.__init__, _made, _ROOTS)
    _watch_known(_Optimizer)
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        func = getattr(torch.nn.utils, name, None)
        if func is not None:
            _probe.watch(func, _in_clipping, _ROOTS)
            _compilers.note_reading(func)
    _probe.watching(True, _ROOTS)


def watch_for_good():
    """Watches until the program ends, for a program that does not say where its steps end."""
    global _stays
    _stays = True
    watch()


def leave():
    """Stops watching after collecting has stopped."""
    if not _stays:
        _probe.watching(False, _ROOTS)
