# SPDX-License-Identifier: MIT
"""Sets hooks of modules aside while a layer of PyTorch decides by them how it computes.

torch.nn.TransformerEncoderLayer runs one fused kernel, whose bits are others, where it is evaluated and none of its
modules has a hook. It looks for hooks between two questions, whether there is autocast and whether gradients are wanted:
at the first, our hooks are taken away, at the second they are back. Where it does not come to the second, it calls one
of its modules, and they are back before that call. A compiler that reads the layer finds no hooks of ours at all.

The questions are functions in C. A watched forward() would be seen by compilers, which check whether it is a function."""
import sys
import threading
import weakref

import torch

from msprobe import _probe
from msprobe.pytorch import _compilers

_CALLS = 5  # a group of watched functions
_BEFORE = 1  # when a function is told of a call: see ext_watch.c
_FORWARD = torch.nn.TransformerEncoderLayer.forward.__code__

_aside = {}  # thread -> function that puts hooks back
_set_aside = None
_layers = []  # of models that have hooks, as weak references
_of_compiled = []  # functions that put hooks back when no compiled code runs any more


def put_back(*_about):
    """Ends the decision of this thread; called before each call of a module while there is one."""
    back = _aside.pop(threading.get_ident(), None)
    if back is not None:
        back()
    if not _aside:
        _probe.watching(False, _CALLS)


def is_deciding():
    """Tells whether hooks are set aside."""
    return bool(_aside)


def _asks(*_about):
    frame = sys._getframe(1)
    if frame.f_code is _FORWARD:
        _probe.watching(True, _CALLS)
        _aside[threading.get_ident()] = _set_aside(frame.f_locals["self"])


def watch(set_aside, group):
    """Watches the first question in a group. set_aside(layer) takes the hooks of its modules away, and returns a function
    that puts them back. What is told of each call of a module already calls put_back() itself."""
    global _set_aside
    _set_aside = set_aside
    for func in (torch.nn.Module.__call__, torch.is_grad_enabled):
        _probe.watch(func, put_back, _CALLS, _BEFORE)
    _probe.watch(torch.is_autocast_enabled, _asks, group, _BEFORE)


def _is_compiled(is_on):
    if is_on:
        layers = [layer for layer in (reference() for reference in _layers) if layer is not None]
        _of_compiled.extend(_set_aside(layer) for layer in layers if not layer.training)
    while not is_on and _of_compiled:
        _of_compiled.pop()()


def know(model):
    """Takes note of the layers in a model that gets hooks."""
    found = [weakref.ref(part) for part in model.modules() if isinstance(part, torch.nn.TransformerEncoderLayer)]
    if found:
        _layers[:] = [reference for reference in _layers if reference() is not None] + found
        _compilers.listen(_is_compiled)
