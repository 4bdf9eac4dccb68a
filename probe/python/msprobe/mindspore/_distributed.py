# SPDX-License-Identifier: MIT
"""Communication of MindSpore: groups are names, and some functions return their results."""
import contextlib
import functools
import importlib

from mindspore import communication, mint
from mindspore.communication import comm_func

from msprobe import _communication

# Functions of mint write to their arguments, as in PyTorch; the older ones return the result.
in_place = _communication.wrapper
returning = functools.partial(_communication.wrapper, returns_result=True)


def is_initialised():
    return bool(communication.GlobalComm.INITED)


def modules():
    """Yields (module, prefix, wrapper) of all functions."""
    yield comm_func, "Distributed", returning
    if hasattr(mint, "distributed"):
        yield mint.distributed, "MintDistributed", in_place


def watch_waiting():
    modules_with_handles = [comm_func]
    with contextlib.suppress(ImportError):  # before version 2.9
        modules_with_handles.append(importlib.import_module("mindspore.ops.function.comm_func"))
    classes = {getattr(module, "CommHandle", None) for module in modules_with_handles}
    for cls in classes - {None}:
        for base in cls.__mro__:
            if "wait" in vars(base) and base.__module__ != "mindspore._c_expression":
                _communication.watch_waiting(base)


def _ranks(group):
    get = communication.get_process_group_ranks
    return [int(rank) for rank in (get() if group is None else get(group))]


def describe(value):
    """Returns the leaf of a point-to-point operation; None for any other value."""
    cls = getattr(getattr(mint, "distributed", None), "P2POp", None)
    if cls is not None and isinstance(value, cls):
        return _communication.describe_p2p("mindspore.mint.distributed.P2POp", _ranks, value), None
    return None
