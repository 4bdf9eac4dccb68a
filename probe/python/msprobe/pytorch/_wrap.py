# SPDX-License-Identifier: MIT
"""Functions of PyTorch with a dump around them.

Each is replaced where it is found by an object of the C half that stands for
it.  They stay in place from the making of the debugger on, since scripts keep
what they have imported; while nothing is collected they pass calls on.
"""
import torch

from msprobe import _probe
from msprobe.pytorch import _apis, _distributed

_FUNCTION = type(lambda: None)
_METHODS = (_FUNCTION, type(str.join), type(int.__add__))
_DROPOUT = {"dropout", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"}
_NPU_MASKS = {"npu_fusion_attention": 1 << 4 | 1 << 5}

_places = []  # (owner, name, what it was, what it is now)


def wrapper(func, prefix, name):
    """What stands for a function: bound to objects where that was, too."""
    make = _probe.Op if isinstance(func, _METHODS) else _probe.Fn
    return make(func, prefix, name, 0, _NPU_MASKS.get(name, 0),
                "p" if name in _DROPOUT else None)


def _owner_of(module, dotted):
    owner = module
    *path, name = dotted.split(".")
    for part in path:
        owner = getattr(owner, part, None)
    return owner, name


def _wrap_names(source, targets, names, prefix, make=wrapper):
    for dotted in names:
        owner, name = _owner_of(source, dotted)
        func = getattr(owner, name, None) if owner is not None else None
        if not callable(func) or isinstance(func, (_probe.Op, _probe.Fn)):
            continue
        now = make(func, prefix, name)
        for target in targets:
            at, name = _owner_of(target, dotted)
            if at is not None:
                _places.append((at, name, func, now))


def _has_own(owner, name):
    return name in vars(owner) if hasattr(owner, "__dict__") else False


def _find_all():
    _wrap_names(torch.nn.functional, (torch.nn.functional,), _apis.FUNCTIONAL, "Functional")
    _wrap_names(torch.Tensor, (torch.Tensor,), _apis.TENSOR, "Tensor")
    _wrap_names(torch, (torch,), _apis.TORCH, "Torch")
    _wrap_names(torch._C._VariableFunctionsClass, (torch._VF,), _apis.VF, "VF")
    if torch.distributed.is_available():
        dist = torch.distributed
        for module in (dist, dist.distributed_c10d):
            _wrap_names(module, (module,), _apis.DISTRIBUTED, "Distributed", _distributed.wrapper)
    try:
        import torch_npu
    except ImportError:
        return
    for module in (torch_npu, torch.ops.npu):
        _wrap_names(module, (module,), _apis.NPU, "NPU")


def put_all():
    """Put the wrappers where the functions were; once more is harmless."""
    if not _places:
        _find_all()
        _spare_scripts()
    for owner, name, _, now in _places:
        setattr(owner, name, now)
    if torch.distributed.is_available():
        _distributed.watch_waiting()


def take_all():
    """Give the functions back."""
    for owner, name, func, _ in _places:
        setattr(owner, name, func)


def _spare_scripts():
    """TorchScript compiles functions, not what stands for them."""
    for owner, name in ((torch.jit, "script"), (torch.jit, "trace")):
        real = getattr(owner, name)

        def without(*args, _real=real, **kwargs):
            take_all()
            try:
                return _real(*args, **kwargs)
            finally:
                put_all()

        without.__name__, without.__doc__, without.__wrapped__ = name, real.__doc__, real
        setattr(owner, name, without)


# ---- functions of the program's own -----------------------------------------

_custom = {}


def add_custom(module, name, prefix=None):
    """Dump a function that is not among the known ones."""
    prefix = prefix or getattr(module, "__name__", "Custom")
    if not isinstance(prefix, str):
        raise ValueError(f"api_prefix: expected a text, found {prefix!r}")
    if not hasattr(module, name):
        raise ValueError(f"{module!r} has no {name}")
    func = getattr(module, name)
    _custom.setdefault((id(module), name), func)
    setattr(module, name, wrapper(func, prefix, name))


def remove_custom(module, name):
    func = _custom.pop((id(module), name), None)
    if func is not None:
        setattr(module, name, func)
