# SPDX-License-Identifier: MIT
"""Descriptions of values that belong to no framework.

A description is the leaf of a dump, as json.dumps takes it. A tuple of one stands for its item,
which is described instead of the value, and a dict of any class in it by what it holds; a tuple of three is a leaf, its array, and, for an array
that does not hold numbers, the function that writes its file.
"""
import dataclasses
import inspect
import os
import sys
import types


# ---- what a value holds, without a call of the program's own methods -----------


def items_of(value):
    """Returns an iterator over the items of a list or tuple, whatever its class makes of them; None for any other
    value."""
    kind = type(value)  # not isinstance(): a proxy may say that it is a list
    if issubclass(kind, list):
        return list.__iter__(value)
    return tuple.__iter__(value) if issubclass(kind, tuple) else None


def _field(value, name):
    """Returns what is stored under a name; a field that is computed is not read."""
    found = inspect.getattr_static(value, name, None)
    if type(found) is not types.MemberDescriptorType:
        return found
    try:
        return found.__get__(value)
    except AttributeError:  # a slot without a value
        return None


def _is_of_framework(kind):
    return kind.__name__ == "Tensor" and kind.__module__.partition(".")[0] in ("torch", "mindspore")


def _whole(value):
    if isinstance(value, int):
        return int.__index__(value)
    np = sys.modules.get("numpy")
    if _is_of_framework(type(value)) or (np is not None and isinstance(value, np.integer)):
        try:
            return int(value)
        except (TypeError, ValueError):
            return None
    return None


def _slice(value):
    ends = (value.start, value.stop, value.step)
    return {"type": "slice", "value": [None if e is None else _whole(e) for e in ends]}


def _once(value):
    """Returns an array with each expanded dimension, which repeats its one element, reduced to that, and how often
    what is left stands in the array."""
    repeats = [n if step == 0 else 1 for n, step in zip(value.shape, value.strides)]
    times = 1
    for n in repeats:
        times *= n
    return (value, 1) if times == 1 else (value[tuple([slice(0, 1) if n > 1 else slice(None) for n in repeats])], times)


def _array(np, value):
    leaf = {"type": "numpy.ndarray", "dtype": str(value.dtype), "shape": list(value.shape)}
    figures = dict.fromkeys(("Max", "Min", "Mean", "Norm"))
    if value.size and value.dtype.kind not in "USOVMm":
        once, times = _once(value)
        with np.errstate(all="ignore"):  # neither warned nor told to the program
            plain = np.abs(once) if once.dtype.kind == "c" else once
            figures["Max"] = np.max(plain).item()
            figures["Min"] = np.min(plain).item()
            figures["Mean"] = np.mean(plain).item()
            figures["Norm"] = np.linalg.norm(plain.astype(np.float64).ravel()).item() * times ** 0.5
    leaf.update(figures)
    return leaf


def _save_text(folder, name, array):
    sys.modules["numpy"].save(os.path.join(folder, name), array, allow_pickle=False)


def _plain_array(np, value):
    """Returns the elements of an array without its class, which may see functions of numpy."""
    return value if type(value) is np.ndarray else np.ndarray.view(value, np.ndarray)


def _numpy(value):
    np = sys.modules.get("numpy")
    if np is None:
        return None
    if isinstance(value, np.ndarray):
        plain = _plain_array(np, value)
        return _array(np, plain), plain, _save_text if plain.dtype.kind in "SU" else None
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
    kind, items = type(value), items_of(value)
    if items is not None:
        names = getattr(kind, "_fields", None) if issubclass(kind, tuple) else None
        return (list(items) if names is None else dict(zip(names, items)),)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return ({f.name: _field(value, f.name) for f in dataclasses.fields(kind)},)
    if issubclass(kind, dict):
        return (value,)
    return _numpy(value)
