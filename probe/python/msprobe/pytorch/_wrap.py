# SPDX-License-Identifier: MIT
"""Functions of PyTorch with a dump around them.

Each is replaced where it is found by an object of the C half that stands for
it.  They are in place from the making of the debugger on, since scripts keep
what they have imported, but for steps that are not collected.
"""
import importlib.util

import torch

from msprobe import _probe
from msprobe._places import Places, owner_of
from msprobe.pytorch import _apis, _distributed

_FUNCTION = type(lambda: None)
_METHODS = (_FUNCTION, type(str.join), type(int.__add__))
_DROPOUT = {"dropout", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"}
_NPU_MASKS = {"npu_fusion_attention": 1 << 4 | 1 << 5}

_places = Places()
_operators = set()  # (namespace, name) of those of extensions


def wrapper(func, prefix, name):
    """What stands for a function: bound to objects where that was, too."""
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


def _find_all():
    _wrap_names(torch.nn.functional, (torch.nn.functional,), _apis.FUNCTIONAL, "Functional")
    _wrap_names(torch.Tensor, (torch.Tensor,), _apis.TENSOR, "Tensor")
    _wrap_names(torch, (torch,), _apis.TORCH, "Torch")
    _wrap_names(torch._C._VariableFunctionsClass, (torch._VF,), _apis.VF, "VF")
    if torch.distributed.is_available():
        dist = torch.distributed
        for module in (dist, dist.distributed_c10d):
            _wrap_names(module, (module,), _apis.DISTRIBUTED, "Distributed", _distributed.wrapper)
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
    """Its functions lie in modules that are loaded only when they are asked for."""
    for dotted in _apis.MINDSPEED if importlib.util.find_spec("mindspeed") else ():
        path, _, name = dotted.rpartition(".")
        try:
            module = importlib.import_module(f"mindspeed.ops.{path}")
        except Exception as why:  # most need a compiler of the device
            _probe.note(f"mindspeed.ops.{path}: {why}")
            continue
        _wrap_names(module, (module,), [name], "MindSpeed")


def find_operators(namespaces):
    """Operators of torch.ops that extensions have registered in these namespaces by now."""
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
    """Put the wrappers where the functions were; once more is harmless."""
    if not _places:
        _find_all()
        _spare_scripts()
    _places.put()
    if torch.distributed.is_available():
        _distributed.watch_waiting()


def take_all():
    """Give the functions back."""
    _places.take()


def are_put():
    """Whether the wrappers are there."""
    return _places.is_put


def _spare_scripts():
    """TorchScript compiles functions, not what stands for them."""
    for owner, name in ((torch.jit, "script"), (torch.jit, "trace")):
        real = getattr(owner, name)

        def without(*args, _real=real, **kwargs):
            if not are_put():
                return _real(*args, **kwargs)
            take_all()
            try:
                return _real(*args, **kwargs)
            finally:
                put_all()

        without.__name__, without.__doc__, without.__wrapped__ = name, real.__doc__, real
        setattr(owner, name, without)
