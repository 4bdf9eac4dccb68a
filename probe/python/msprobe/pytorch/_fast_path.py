# SPDX-License-Identifier: MIT
"""Sets hooks of modules aside while a layer of PyTorch decides by them how it computes.

torch.nn.TransformerEncoderLayer runs one fused kernel, whose bits are others, where it is evaluated and none of its
modules has a hook. It looks for hooks between two questions, whether there is autocast and whether gradients are wanted:
at the first, our hooks are taken away, at the second they are back. Where it does not come to the second, it calls one
of its modules, and they are back before that call.

The questions are functions in C. A watched forward() would be seen by compilers, which check whether it is a function."""
import sys
import threading

import torch

from msprobe import _probe

_CALLS = 5  # a group of watched functions
_BEFORE = 1  # when a function is told of a call: see ext_watch.c
_FORWARD = torch.nn.TransformerEncoderLayer.forward.__code__

_aside = {}  # thread -> function that puts hooks back
_set_aside = None


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
