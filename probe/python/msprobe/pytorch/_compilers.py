# SPDX-License-Identifier: MIT
"""Keeps torch.compile from compiling the functions of this package.

A compiler is asked about each Python function that runs below compiled code, functions of this
package included. It would warn of what it cannot compile there.

Functions of Python that a compiler reads into its graphs have the type of functions while compiled code runs: it checks
before each run that they are functions, and does not take those for functions that are watched."""
import sys
import threading
import types

import torch

from msprobe import _probe


# Functions of these modules call nothing of the program, so what runs below them is left out too.
_LEAVES = {"msprobe._lines", "msprobe._monitor", "msprobe._say", "msprobe.pytorch._features",
           "msprobe.pytorch._invariants", "msprobe.pytorch._monitor"}


def _find_skip():
    """Returns the function that has the compiler leave out a code object, and with a true second argument all that
    runs below it; None where there is no compiler.

    Newer versions have a strategy for each code object instead of skip_code(), which knows one code object only."""
    frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    actions, make = getattr(frames, "_FrameAction", None), getattr(frames, "_FrameExecStrategy", None)
    put = getattr(frames, "set_code_exec_strategy", None)
    if actions is None or make is None or put is None:
        skip = getattr(frames, "skip_code", None)
        return skip and (lambda code, _is_leaf: skip(code))
    alone, with_all_below = make(actions.SKIP, actions.DEFAULT), make(actions.SKIP, actions.SKIP)
    return lambda code, is_leaf: put(code, with_all_below if is_leaf else alone)


_skip = _find_skip()


def _functions(namespace):
    """Yields the functions of this package in a module or a class."""
    for value in list(namespace.values()):
        value = getattr(value, "__func__", value)
        if isinstance(value, types.FunctionType):
            yield value
            if hasattr(value, "__wrapped__"):
                yield from _functions({"": value.__wrapped__})
        elif isinstance(value, type) and _is_ours(value.__module__):
            yield from _functions(vars(value))


def _is_ours(name):
    return name.partition(".")[0] == "msprobe"


def _codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def skip_functions():
    """Tells the compiler to leave out all functions of this package."""
    if _skip is None:
        return
    for name, module in list(sys.modules.items()):
        for func in _functions(vars(module)) if _is_ours(name) else ():
            if _is_ours(func.__module__ or ""):
                for code in _codes(func.__code__):
                    _skip(code, name in _LEAVES and code is func.__code__)


_ENTRY = 6  # a group of watched functions
_set_callback = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
_set_callback = getattr(_set_callback, "set_eval_frame", None)
_threads = getattr(sys.modules.get("torch._guards"), "_TLS", None)  # compile_context: what a thread compiles
_read = []  # watched functions that a compiler reads into its graphs
_inside = set()  # threads that run compiled code
_listeners = []


def _enters(callback, _when):
    """Told before a thread begins to run compiled code, with a callback, or ends. A compiler at work leaves its own."""
    was_inside = bool(_inside)
    if callback is not None:
        _inside.add(threading.get_ident())
    elif getattr(_threads, "compile_context", None) is None:
        _inside.discard(threading.get_ident())
    if bool(_inside) is not was_inside:
        for listener in _listeners:
            listener(not was_inside)


def listen(listener):
    """Has a function told when a first thread begins to run compiled code, with True, and when the last has ended."""
    if _set_callback is None or listener in _listeners:
        return
    _listeners.append(listener)
    _probe.watch(_set_callback, _enters, _ENTRY, 1)
    _probe.watching(True, _ENTRY)
    if _inside:
        listener(True)


def _let_rest(is_on):
    _probe.rest(is_on, _read)


def note_reading(func):
    """Takes note of a watched function that a compiler reads into its graphs."""
    if isinstance(func, types.FunctionType) and not any(func is known for known in _read):
        _read.append(func)
        listen(_let_rest)
        _let_rest(bool(_inside))
