# SPDX-License-Identifier: MIT
"""Descriptions of values that belong to no framework.

A description is the leaf of a dump, as json.dumps takes it. A tuple of one stands for its item,
which is described instead of the value; a tuple of three is a leaf, its array, and, for an array
that does not hold numbers, the function that writes its file.
"""
import dataclasses
import os
import sys


def _whole(value):
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _slice(value):
    ends = (value.start, value.stop, value.step)
    return {"type": "slice", "value": [None if e is None else _whole(e) for e in ends]}


def _array(np, value):
    leaf = {"type": "numpy.ndarray", "dtype": str(value.dtype), "shape": list(value.shape)}
    figures = dict.fromkeys(("Max", "Min", "Mean", "Norm"))
    if value.size and value.dtype.kind not in "USOVMm":
        plain = np.abs(value) if value.dtype.kind == "c" else value
        figures["Max"] = np.max(plain).item()
        figures["Min"] = np.min(plain).item()
        figures["Mean"] = np.mean(plain).item()
        figures["Norm"] = np.linalg.norm(plain.astype(np.float64).ravel()).item()
    leaf.update(figures)
    return leaf


def _save_text(folder, name, array):
    sys.modules["numpy"].save(os.path.join(folder, name), array, allow_pickle=False)


def _numpy(value):
    np = sys.modules.get("numpy")
    if np is None:
        return None
    if isinstance(value, np.ndarray):
        return _array(np, value), value, _save_text if value.dtype.kind in "SU" else None
    if isinstance(value, np.generic):
        plain = value.item()
        return None if isinstance(plain, complex) else {"type": type(value).__name__, "value": plain}
    return None


def describe(value, key):
    """Returns the leaf of a value that is no tensor, number, string or plain container."""
    if isinstance(value, slice):
        return _slice(value)
    if value is Ellipsis:
        return {"type": "ellipsis", "value": "..."}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return ({name: getattr(value, name) for name in value._fields},)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return ({f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)},)
    if isinstance(value, (list, tuple)):
        return (list(value),)
    if isinstance(value, dict):
        return (dict(dict.items(value)),)
    return _numpy(value)
