# SPDX-License-Identifier: MIT
"""Functions of PyTorch, watched while calls are collected.

Those of torch, torch.nn.functional and torch.Tensor stay the same objects: the C half watches
their calls (see ext_watch.c), and so do those of communication. Functions that cannot be watched,
such as those of extensions, are replaced where they are found.
"""
import functools
import importlib.util

import torch

from msprobe import _probe
from msprobe._places import Places, owner_of
from msprobe.pytorch import _apis, _distributed

_FUNCTION = type(lambda: None)
_METHODS = (_FUNCTION, type(str.join), type(int.__add__))
_WATCHED = (_FUNCTION, type(str.join), type(len))  # kinds that can be watched; see ext_watch.c
_DROPOUT = {"dropout", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"}
_NPU_MASKS = {"npu_fusion_attention": 1 << 4 | 1 << 5}
# torch.lstm is torch._VF.lstm and is recorded under that name; only modules call the others.
_OF_VF = {"lstm", "gru", "lstm_cell", "gru_cell"}

_places = Places()
_operators = set()  # (namespace, name) of operators of extensions
_is_watching = False


def wrapper(func, prefix, name):
    """Returns the wrapper of a function; binds to objects if the function does."""
    make = _probe.Op if isinstance(func, _METHODS) else _probe.Fn
    return make(func, prefix, name, 0, _NPU_MASKS.get(name, 0),
                "p" if name in _DROPOUT else None)


def _wrap_names(source, targets, names, prefix, make=wrapper):
    for dotted in names:
        owner, name = owner_of(source, dotted)
        func = getattr(owner, name, None) if owner is not None else None
        if not callable(func) or isinstance(func, (_probe.Op, _probe.Fn)):
            continue
        now = make(func, prefix, name)
        for target in targets:
            at, name = owner_of(target, dotted)
            if at is not None:
                _places.add(at, name, func, now)


def _watch_names(source, names, prefix, make=wrapper):
    """Watches functions of torch; one with two names is recorded under the name watched first."""
    for dotted in names:
        owner, name = owner_of(source, dotted)
        func = getattr(owner, name, None) if owner is not None else None
        if callable(func) and not _probe.watch(func, make(func, prefix, name)) \
                and type(func) not in _WATCHED:
            _places.add(owner, name, func, wrapper(func, prefix, name))


def _twin(func):
    """Returns an equal function that is not watched."""
    if isinstance(func, _FUNCTION):
        other = _FUNCTION(func.__code__, func.__globals__, func.__name__, func.__defaults__,
                          func.__closure__)
        return functools.update_wrapper(other, func)
    return _probe.twin(func)


def _spare_operators():
    """Gives -x and abs(x) unwatched twins: only calls by name, as x.neg(), are recorded."""
    methods = {id(getattr(torch.Tensor, name, None)) for name in _apis.TENSOR}
    for name, func in list(vars(torch.Tensor).items()):
        if name not in _apis.TENSOR and id(func) in methods and isinstance(func, _METHODS):
            _places.add(torch.Tensor, name, func, _twin(func))


def _find_all():
    _watch_names(torch.nn.functional, _apis.FUNCTIONAL, "Functional")
    _watch_names(torch.Tensor, _apis.TENSOR, "Tensor")
    _watch_names(torch._C._VariableFunctionsClass, _apis.VF, "VF")
    _watch_names(torch, [name for name in _apis.TORCH if name not in _OF_VF], "Torch")
    _spare_operators()
    if torch.distributed.is_available():
        for module in (torch.distributed, torch.distributed.distributed_c10d):
            _watch_names(module, _apis.DISTRIBUTED, "Distributed", _distributed.recorder)
        _distributed.watch_waiting()
    _find_npu()
    _find_mindspeed()


def _find_npu():
    try:
        import torch_npu
    except ImportError:
        return
    for module in (torch_npu, torch.ops.npu):
        _wrap_names(module, (module,), _apis.NPU, "NPU")
    dist = getattr(torch_npu, "distributed", None)
    for module in (dist, getattr(dist, "distributed_c10d", None)):
        if module is not None:
            _wrap_names(module, (module,), _apis.NPU_DISTRIBUTED, "Distributed",
                        _distributed.wrapper)


def _find_mindspeed():
    """Wraps functions of MindSpeed, whose modules are imported only on request."""
    for dotted in _apis.MINDSPEED if importlib.util.find_spec("mindspeed") else ():
        path, _, name = dotted.rpartition(".")
        try:
            module = importlib.import_module(f"mindspeed.ops.{path}")
        except Exception as why:  # most need a compiler for the device
            _probe.note(f"mindspeed.ops.{path}: {why}")
            continue
        _wrap_names(module, (module,), [name], "MindSpeed")


def find_operators(namespaces):
    """Wraps operators of torch.ops that extensions have registered so far in these namespaces."""
    if not namespaces:
        return
    every = {schema.name for schema in torch._C._jit_get_all_schemas()}
    for space, _, name in sorted(name.partition("::") for name in every):
        if space in namespaces and (space, name) not in _operators:
            _operators.add((space, name))
            owner = getattr(torch.ops, space)
            _wrap_names(owner, (owner,), [name], space)
    if _places.is_put:
        _places.put()


def put_all():
    """Watches the functions from now on; repeated calls have no effect."""
    global _is_watching
    if not _places:
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
