# SPDX-License-Identifier: MIT
"""Functions of PyTorch, watched while calls are collected.

All of them, those of extensions too, stay the same objects: the C half watches their calls (see
ext_watch.c and ext_slot.c). Only what is none of the kinds named there, such as a class, is replaced
where it is found.
"""
import importlib.util
import types

import torch

from msprobe import _probe
from msprobe._places import Places, owner_of
from msprobe.pytorch import _apis, _compilers, _distributed

_FUNCTION = type(lambda: None)
_SLOT = type(int.__add__)
_METHODS = (_FUNCTION, type(str.join), _SLOT)
# Kinds that can be watched: see ext_watch.c.
_WATCHED = (_FUNCTION, type(len), type(str.join), _SLOT, torch._ops.OpOverloadPacket)
_DROPOUT = {"dropout", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"}
_NPU_MASKS = {"npu_fusion_attention": 1 << 4 | 1 << 5}
# torch.lstm is torch._VF.lstm and is recorded under that name; only modules call the others.
_OF_VF = {"lstm", "gru", "lstm_cell", "gru_cell"}

_places = Places()
_operators = set()  # (namespace, name) of operators of extensions
_found = []  # not empty: the functions have been looked up
_is_watching = False


def wrapper(func, prefix, name, owner=None):
    """Returns the wrapper of a function; binds to objects if the function does.

    owner: the class or the object of a method; calls for others are not recorded."""
    make = _probe.Op if isinstance(func, _METHODS) else _probe.Fn
    return make(func, prefix, name, 0, _NPU_MASKS.get(name, 0),
                "p" if name in _DROPOUT else None, owner)


def watch_custom(func, prefix, name, group):
    """Watches a function of the program, or the function of a bound method, in a group.

    Returns what is watched, or None when that is neither possible nor of use."""
    owner = None
    if isinstance(func, types.MethodType):
        func, owner = func.__func__, func.__self__
    elif isinstance(getattr(func, "__self__", None), type):
        return None  # a method of a class in C: another object each time
    can = not isinstance(func, type) and _probe.watch(func, wrapper(func, prefix, name, owner), group)
    if can:
        _compilers.note_reading(func)
    return func if can else None


def _watch_names(source, names, prefix, make=wrapper, make_other=wrapper):
    """Watches functions; one with two names is recorded under the name watched first.

    make_other makes what replaces a function that cannot be watched."""
    for dotted in names:
        owner, name = owner_of(source, dotted)
        func = getattr(owner, name, None) if owner is not None else None
        if callable(func) and not _probe.watch(func, make(func, prefix, name)) \
                and type(func) not in (*_WATCHED, _probe.Op, _probe.Fn):
            _places.add(owner, name, func, make_other(func, prefix, name))


def _is_operator(name):
    """Tells whether a method is that of 1 / x or x /= 1 as well, which are not recorded."""
    twin = {"__rdiv__": "__rtruediv__", "__idiv__": "__itruediv__"}.get(name)
    return twin is not None and getattr(torch.Tensor, name, None) is getattr(torch.Tensor, twin)


def _find_all():
    _watch_names(torch.nn.functional, _apis.FUNCTIONAL, "Functional")
    _watch_names(torch.Tensor, [name for name in _apis.TENSOR if not _is_operator(name)], "Tensor")
    _watch_names(torch._C._VariableFunctionsClass, _apis.VF, "VF")
    _watch_names(torch, [name for name in _apis.TORCH if name not in _OF_VF], "Torch")
    for name in ("__neg__", "__abs__"):
        _probe.spare_operator(torch.Tensor, name)
    if torch.distributed.is_available():
        for module in (torch.distributed, torch.distributed.distributed_c10d):
            _watch_names(module, _apis.DISTRIBUTED, "Distributed", _distributed.recorder,
                         _distributed.wrapper)
        _distributed.watch_waiting()
    _find_npu()
    _find_mindspeed()


def _find_npu():
    try:
        import torch_npu
    except ImportError:
        return
    for module in (torch_npu, torch.ops.npu):
        _watch_names(module, _apis.NPU, "NPU")
    dist = getattr(torch_npu, "distributed", None)
    for module in (dist, getattr(dist, "distributed_c10d", None)):
        if module is not None:
            _watch_names(module, _apis.NPU_DISTRIBUTED, "Distributed", _distributed.recorder,
                         _distributed.wrapper)


def _find_mindspeed():
    """Watches functions of MindSpeed, whose modules are imported only on request."""
    for dotted in _apis.MINDSPEED if importlib.util.find_spec("mindspeed") else ():
        path, _, name = dotted.rpartition(".")
        try:
            module = importlib.import_module(f"mindspeed.ops.{path}")
        except Exception as why:  # most need a compiler for the device
            _probe.note(f"mindspeed.ops.{path}: {why}")
            continue
        _watch_names(module, [name], "MindSpeed")


def find_operators(namespaces):
    """Watches operators of torch.ops that extensions have registered so far in these namespaces."""
    if not namespaces:
        return
    every = {schema.name for schema in torch._C._jit_get_all_schemas()}
    for space, _, name in sorted(name.partition("::") for name in every):
        if space in namespaces and (space, name) not in _operators:
            _operators.add((space, name))
            _watch_names(getattr(torch.ops, space), [name], space)
    if _is_watching:
        put_all()


def put_all():
    """Watches the functions from now on; repeated calls have no effect."""
    global _is_watching
    if not _found:
        _found.append(True)
        _find_all()
    _is_watching = True
    _probe.watching(True)
    _places.put()


def take_all():
    """Stops watching the functions."""
    global _is_watching
    _is_watching = False
    _probe.watching(False)
    _places.take()


def are_put():
    """Tells whether the functions are watched."""
    return _is_watching
