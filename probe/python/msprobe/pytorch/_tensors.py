# SPDX-License-Identifier: MIT
"""Passes the layout of PyTorch's tensors to the C half, once.

C reads plain tensors in host memory through the descriptors of the base class. All others are read
here: other classes, other layouts, other devices. The functions used here are fetched at import,
before any of them is wrapped.
"""
import contextlib
import os
import sys

import torch

from msprobe import _probe, _values
from msprobe.pytorch import _quiet

_Base = torch.Tensor.__mro__[1]
_Plain = torch.Tensor
_max, _min, _any, _all = torch.max, torch.min, torch.any, torch.all
_mean, _norm, _stack, _no_grad = torch.mean, torch.norm, torch.stack, torch.no_grad
_detach, _as_subclass, _cpu = _Base.detach, _Base.as_subclass, _Base.cpu
_clone = _Base.clone
_NO_KERNELS = getattr(torch._C, "_disabled_torch_dispatch_impl", None)
_has_storage = torch._C._has_storage

_WORDS = {torch.contiguous_format: "contiguous_format", torch.channels_last: "channels_last",
          torch.channels_last_3d: "channels_last_3d", torch.preserve_format: "preserve_format"}

# Numbered statistics of tensors that were reduced on their device; fetched together.
_pending = []
_simulated = False


def simulate_device(on):
    """For tests without a device: treat tensors in host memory as if they were on one."""
    global _simulated
    _simulated = on
    _probe.setup(_told())


# ---- classes of tensors -----------------------------------------------------


def _find(path):
    """Returns a class that newer versions have; None when it is not loaded."""
    module, _, name = path.rpartition(".")
    return getattr(sys.modules.get(module), name, None)


_CLASSES = ("torch.distributed.tensor.DTensor", "torch._subclasses.fake_tensor.FakeTensor",
            "torch.distributed._functional_collectives.AsyncCollectiveTensor",
            "torch.nested._internal.nested_tensor.NestedTensor")


def _find_class(t):
    """Returns the path of PyTorch's own class of a tensor, None for a plain or a program's class."""
    for path in _CLASSES:
        cls = _find(path)
        if cls is not None and isinstance(t, cls):
            return path
    return None


_TRACED = "torch._subclasses.functional_tensor.FunctionalTensor", "torch._subclasses.fake_tensor.FakeTensor"
_is_functional = torch._is_functional_tensor


def is_traced(t):
    """Tells whether a tensor stands for one in a graph that is being made: to compute with it would add to the graph,
    and past the modes that make the graph it ends the process."""
    return _is_functional(t) or any(isinstance(t, cls) for cls in map(_find, _TRACED) if cls is not None)


def _class_of(t):
    path = _find_class(t)
    if path is not None:
        return path
    functorch = getattr(torch._C, "_functorch", None)
    for test, name in (("is_batchedtensor", "BatchedTensor"),
                       ("is_gradtrackingtensor", "GradTrackingTensor")):
        ask = getattr(functorch, test, None)
        if ask is not None and ask(t):
            return f"torch._C._functorch.{name}"
    return "torch.Tensor"


def _placement(p):
    if p.is_shard():
        return {"Shard": {"dim": p.dim}}
    if p.is_replicate():
        return {"Replicate": {}}
    return {"Partial": {"reduce_op": str(getattr(p, "reduce_op", "sum"))}}


def _mesh_members(t):
    return {"device_mesh": t.device_mesh.mesh.tolist(),
            "placements": [_placement(p) for p in t.placements]}


def _unwrap(t, cls):
    """Returns the tensor whose elements are described, or None."""
    if cls.endswith("DTensor"):
        return t.to_local()
    if cls.endswith("NestedTensor"):
        return t.values()
    if cls.endswith("GradTrackingTensor"):
        return torch._C._functorch.get_unwrapped(t)
    if cls == "torch.Tensor":
        return t if type(t) is _Plain else _as_subclass(t, _Plain)
    return None


def _size(n):
    """Returns the number of a size. One that is a symbol stays a symbol: a compiler whose size is asked for its number
    compiles for that number alone."""
    hint = n if isinstance(n, int) else getattr(getattr(n, "node", None), "hint", None)
    return hint if isinstance(hint, int) else 0


# ---- elements ---------------------------------------------------------------


def _why_blank(t):
    """Returns why the elements of a tensor cannot be read; '' for an expected reason; None:
    readable."""
    if t.is_meta or t.layout is torch.strided and not _has_storage(t):
        return ""
    if t.layout is not torch.strided:
        return f"a tensor of layout {t.layout}"
    if t.is_quantized:
        return "a quantised tensor"
    return None


def _figures_of(t):
    """Returns Max, Min, Mean and Norm as zero-dimensional tensors, by the official rules."""
    if t.dtype is torch.bool:
        return _any(t), _all(t), None, None
    if t.dim() == 0:
        same = _clone(t)
        return same, same, same, same
    if not t.is_floating_point() or t.dtype is torch.float64:
        return _max(t), _min(t), None, None
    return _max(t), _min(t), _mean(t), _norm(t)


def _later(t):
    _pending.append(_figures_of(t))
    return len(_pending)


def _to_host(t):
    if t.is_complex():
        t = t.resolve_conj()
    t = t.resolve_neg()
    return t if t.is_cpu else _cpu(t)


def _look(t, host_only):
    """Returns (plain tensor in host memory or None, number of statistics to come)."""
    why = _why_blank(t)
    if why is not None:
        if why:
            _probe.note(f"{why} has no figures")
        return None, 0
    t = _detach(t)
    elsewhere = not t.is_cpu or _simulated
    if elsewhere and not host_only and t.numel() and not t.is_complex() and t.element_size() > 1 \
            or elsewhere and not host_only and t.numel() and t.dtype in (torch.bool, torch.uint8, torch.int8):
        return None, _later(t)
    return _to_host(t), 0


def _has_own_kernels(t):
    """Tells whether the program's class sees the calls of kernels with this tensor."""
    own = getattr(type(t), "__torch_dispatch__", None)
    return own is not None and own is not _NO_KERNELS and _find_class(t) is None


def to_host(t, host_only):
    """Describes a tensor that is not plain: see describe_value() in ext_value.c."""
    if not _has_own_kernels(t):
        return _to_host_quietly(t, host_only)
    unseen = _quiet.NoDispatch()
    try:
        return _to_host_quietly(t, host_only)
    finally:
        del unseen


def _to_host_quietly(t, host_only):
    with torch._C.DisableTorchFunction(), _no_grad():
        cls = _class_of(t)
        inner = _unwrap(t, cls)
        plain, later = (None, 0) if inner is None else _look(inner, host_only)
        members = _mesh_members(t) if cls.endswith("DTensor") else None
        shown = t if inner is None else inner
        return (plain, tuple(_size(n) for n in shown.shape), str(t.dtype), cls,
                bool(t.requires_grad), members, later)


def figures():
    """Fetches all numbered statistics, with one transfer for each device and dtype."""
    waiting, groups = list(_pending), {}
    _pending.clear()
    flat = [value for four in waiting for value in four]
    for at, value in enumerate(flat):
        if value is not None:
            groups.setdefault((value.device, value.dtype), []).append(at)
    with torch._C.DisableTorchFunction(), _no_grad():
        for places in groups.values():
            together = _cpu(_stack([flat[at] for at in places]))
            for at, value in zip(places, together.tolist()):
                flat[at] = value
    return flat


# ---- other values -----------------------------------------------------------


def _device(value):
    if isinstance(value, (int, str)):
        return {"type": "torch.device", "value": value}
    if isinstance(value, torch.device):
        return {"type": "torch.device", "value": f"{value.type}:{value.index}"}
    return {"type": "torch.device"}


def _by_key(value, key):
    special = isinstance(value, (bool, int, float, str, torch.device, torch.dtype))
    if key == "device" and special:
        return _device(value)
    if key in ("dtype", "output_dtype") and special:
        return {"type": "torch.dtype", "value": str(value)}
    return None


def _rows_of(value):
    """Returns the tensors in torchrec's values of uneven rows; None for any other value."""
    module = sys.modules.get("torchrec.sparse.jagged_tensor")
    if isinstance(value, getattr(module, "JaggedTensor", ())):
        return list(value.to_dense())
    if isinstance(value, getattr(module, "KeyedJaggedTensor", ())):
        return {key: list(value[key].to_dense()) for key in value.keys()}
    if isinstance(value, getattr(module, "KeyedTensor", ())):
        return dict(value.to_dict())
    return None


def describe(value, key):
    """Returns the leaf of a value that is no tensor, number, string or plain container."""
    leaf = _by_key(value, key)
    if leaf is not None:
        return leaf
    if isinstance(value, torch.Size):
        return {"type": "torch.Size", "value": [_size(n) for n in value]}
    if isinstance(value, torch.memory_format):
        return {"type": "torch.memory_format", "format": _WORDS.get(value)}
    if isinstance(value, (torch.device, torch.dtype)):
        return {}
    if type(value).__module__.startswith("torch"):
        with _no_grad():
            rows = _probe.ask(_rows_of, value)
        if rows is not None:
            return (rows,)
        from msprobe.pytorch import _distributed
        leaf = _distributed.describe(value)
        if leaf is not None:
            return leaf
    return _values.describe(value, key)


# ---- compilers --------------------------------------------------------------

# Has a tracing_context while a compiler traces the program on this thread.
_tracing = getattr(sys.modules.get("torch._guards"), "_TLS", None)


# ---- passed to C ------------------------------------------------------------


def _dtypes():
    every = {v for v in vars(torch).values() if isinstance(v, torch.dtype)}
    return {v: str(v).rpartition(".")[2] for v in every if "q" not in str(v).rpartition(".")[2][:1]}


# What a copy of a model has in the place of a hook, and a pickle: a function of Python's own library that accepts any
# arguments, does nothing and returns None, so that the pickle can be loaded where this package is not installed.
NO_HOOK = contextlib.nullcontext.__exit__
PICKLED_HOOK = getattr, (contextlib.nullcontext, "__exit__")


def _told():
    get = _Base.__dict__
    return {
        "tensor": _Plain,
        "plain": (_Plain, torch.nn.Parameter),
        "dtypes": _dtypes(),
        "strided": torch.strided,
        "dtype": get["dtype"], "shape": get["shape"], "requires_grad": get["requires_grad"],
        "is_host": (lambda t: False) if _simulated else get["is_cpu"],
        "is_strange": get.get("is_neg"), "layout": get["layout"], "grad_fn": get["grad_fn"],
        "stride": _probe.twin(get["stride"]), "data_ptr": _probe.twin(get["data_ptr"]),
        "describe": describe, "to_host": to_host, "figures": figures,
        "tracing": _tracing,
        "function_modes": _quiet.has_function_modes, "dispatch_modes": _quiet.has_dispatch_modes,
        "quiet": _quiet.Quiet,
        "copied_hook": NO_HOOK, "pickled_hook": PICKLED_HOOK,
        "expand_as": get["expand_as"], "is_lazy": torch.nn.parameter.is_lazy,
        "grad_mode": torch.is_grad_enabled, "parameters": "_parameters", "module_prefix": "Module",
        "skip_path": os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
    }


_probe.setup(_told())
