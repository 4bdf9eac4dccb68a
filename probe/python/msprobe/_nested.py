# SPDX-License-Identifier: MIT
"""Tensors in nested lists, tuples and dicts."""
from msprobe._values import items_of


def is_a(value, kinds):
    """isinstance() by the value's own type: a lazy object of the program may wake when it is asked for its class."""
    return issubclass(type(value), kinds)


def tensors_of(value, is_wanted):
    """Returns the wanted tensors, in order."""
    if is_wanted(value):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for item in items_of(value) or () for t in tensors_of(item, is_wanted)]
    if isinstance(value, dict):
        return [t for item in dict.values(value) for t in tensors_of(item, is_wanted)]
    return []


def with_tensors(value, tensors, is_wanted):
    """Returns the value with its wanted tensors replaced, in order, by those of an iterator."""
    if is_wanted(value):
        return next(tensors)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(with_tensors(item, tensors, is_wanted) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(with_tensors(item, tensors, is_wanted) for item in value)
    if type(value) is dict:
        return {key: with_tensors(item, tensors, is_wanted) for key, item in value.items()}
    return value


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)
