# SPDX-License-Identifier: MIT
"""Passes the layout of MindSpore's tensors to the C half, once.

C reads tensors in host memory. MindSpore runs functions asynchronously; asking for the address of
a tensor waits for the function that computes it. The functions used here are fetched at import,
before any of them is wrapped.
"""
import os

import mindspore
from mindspore import Tensor, Parameter

from msprobe import _probe, _values

_Base = next(cls for cls in Tensor.__mro__ if cls.__module__ == "mindspore._c_expression")
_stride, _address, _asnumpy = _Base.stride, _Base._data_ptr, _Base.asnumpy
_is_contiguous, _offset = Tensor.is_contiguous, getattr(Tensor, "storage_offset", None)
_HAS_HOST_DATA = hasattr(_Base, "persistent_data_from_numpy")  # seen with 2.7, not with 2.10
_dtype, _shape = _Base._dtype.__get__, _Base._shape.__get__

_NAMES = ("bool float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 "
          "uint64 complex64 complex128 float8_e4m3fn float8_e5m2").split()
# Dtypes whose tensors can have a gradient.
DIFFERENTIABLE = {getattr(mindspore, name) for name in
                  ("float16", "float32", "float64", "bfloat16", "complex64", "complex128")
                  if hasattr(mindspore, name)}
_Dtype = type(mindspore.float32).__mro__[-3]


def executor():
    """Returns the framework's object that runs functions one by one."""
    try:
        from mindspore.graph.api import _pynative_executor
    except ImportError:  # before version 2.9
        from mindspore.common.api import _pynative_executor
    return _pynative_executor


def may_have_gradient(value):
    return isinstance(value, _Base) and _dtype(value) in DIFFERENTIABLE


def is_host(t):
    """Tells whether a tensor's elements can be read in place."""
    device = getattr(t, "device", None)
    return device is None or str(device).startswith("CPU")


_kept = None  # the elements asked for last, alive until the next


def _host_address(t):
    """Returns the address of a tensor's elements where tensors have none before a kernel reads them:
    asking for it would log an error.  Views come from a kernel; their address is that of the
    whole."""
    global _kept
    if not _is_contiguous(t):
        return _address(t) + _offset(t) * t.itemsize
    _kept = _asnumpy(t)
    return _kept.ctypes.data


def to_host(t, host_only):
    """Describes a tensor that C cannot read: see describe_value() in ext_value.c."""
    plain = None
    if not is_host(t) and not isinstance(_dtype(t), type(mindspore.bfloat16)):
        plain = Tensor(_asnumpy(t))
    if _dtype(t) not in _told_types:
        _probe.note(f"a tensor of type {_dtype(t)} has no figures")
    return (plain, tuple(int(n) for n in _shape(t)), str(_dtype(t)), "mindspore.Tensor", False,
            None, 0)


# ---- other values -----------------------------------------------------------


def describe(value, key):
    """Returns the leaf of a value that is no tensor, number, string or plain container."""
    if isinstance(value, _Dtype):
        return {"type": "mindspore.dtype", "value": str(value)}
    if key in ("dtype", "output_dtype", "device") and isinstance(value, (str, int, float)):
        return {"type": type(value).__name__, "value": value}
    if type(value).__module__.startswith("mindspore"):
        from msprobe.mindspore import _distributed
        leaf = _distributed.describe(value)
        if leaf is not None:
            return leaf
    return _values.describe(value, key)


# ---- passed to C ------------------------------------------------------------

_told_types = {getattr(mindspore, name): name for name in _NAMES if hasattr(mindspore, name)}


def tell(watched_call):
    """Sets up the C half; watched_call: see ext_framework in ext.h."""
    _probe.setup({
        "tensor": _Base,
        "plain": (Tensor, type(Parameter(Tensor(0.0), name="a"))),
        "dtypes": _told_types,
        "dtype": _Base._dtype, "shape": _Base._shape, "is_host": is_host,
        "stride": _stride, "data_ptr": _host_address if _HAS_HOST_DATA else _address,
        "describe": describe, "to_host": to_host, "figures": list,
        "grad_mode": executor().requires_grad, "watched_call": watched_call,
        "parameters": "_params", "module_prefix": "Cell",
        "skip_path": os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
    })
