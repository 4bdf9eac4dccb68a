# SPDX-License-Identifier: MIT
"""Keeps the modes of the program from seeing the calls that this package makes.

A program may have function modes and dispatch modes: objects that see each call of PyTorch. The C
half asks has_modes() before it reads tensors; only where the answer is yes, it makes a Quiet, which
takes the modes out of the way until its end(). Values are read as without modes."""
import torch
from torch.overrides import _pop_mode, _push_mode

has_function_modes = torch._C._is_torch_function_mode_enabled
has_dispatch_modes = torch._C._len_torch_dispatch_stack
NoDispatch = torch._C._DisableTorchDispatch  # is in effect as long as the object lives
_count_function_modes = torch._C._len_torch_function_stack
_NoFunctions = torch._C.DisableTorchFunction
# Before version 2, DisableTorchFunction has no effect on modes.
_HAS_GUARD = hasattr(torch._C, "DisableTorchFunctionSubclass")


class Quiet:
    """No mode sees calls of this thread from the construction until end()."""

    __slots__ = ("_functions", "_modes", "_dispatch")

    def __init__(self):
        self._modes, self._functions = [], None
        if _HAS_GUARD:
            self._functions = _NoFunctions()
            self._functions.__enter__()
        else:
            while _count_function_modes():
                self._modes.append(_pop_mode())
        self._dispatch = NoDispatch() if has_dispatch_modes() else None

    def end(self):
        self._dispatch = None
        if self._functions is not None:
            self._functions.__exit__(None, None, None)
        while self._modes:
            _push_mode(self._modes.pop())
