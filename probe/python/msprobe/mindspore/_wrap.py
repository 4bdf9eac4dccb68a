# SPDX-License-Identifier: MIT
"""Functions of MindSpore with a dump around them.

Each is replaced where it is found by an object of the C half that stands for
it.  They are in place from the making of the debugger on, since scripts keep
what they have imported, but for steps that are not collected.
"""
import functools
import weakref

from mindspore import Tensor, mint, ops

from msprobe import _probe
from msprobe._places import Places, owner_of
from msprobe.mindspore import _apis, _distributed

_METHODS = (type(lambda: None), type(str.join), type(int.__add__))
places = Places()


def wrapper(func, prefix, name):
    """What stands for a function: bound to objects where that was, too."""
    make = _probe.Op if isinstance(func, _METHODS) else _probe.Fn
    return make(func, prefix, name, 0, 0, "p" if name.startswith("dropout") else None)


def _wrap_names(module, names, prefix, make=wrapper):
    for dotted in names:
        owner, name = owner_of(module, dotted)
        func = getattr(owner, name, None) if owner is not None else None
        if callable(func) and not isinstance(func, (_probe.Op, _probe.Fn, type)):
            places.add(owner, name, func, make(func, prefix, name))


def _find_all():
    _wrap_names(ops, _apis.FUNCTIONAL, "Functional")
    _wrap_names(Tensor, _apis.TENSOR, "Tensor")
    _wrap_names(mint, _apis.MINT, "Mint")
    _wrap_names(mint.nn.functional, _apis.MINT_FUNCTIONAL, "MintFunctional")
    names = {"Distributed": _apis.DISTRIBUTED, "MintDistributed": _apis.MINT_DISTRIBUTED}
    for module, prefix, make in _distributed.modules():
        _wrap_names(module, names[prefix], prefix, make)


def put_all():
    """Put the wrappers where the functions were; once more is harmless."""
    if not places:
        _find_all()
    places.put()
    _distributed.watch_waiting()


def take_all():
    """Give the functions back."""
    places.take()


def are_put():
    """Whether the wrappers are there."""
    return places.is_put


# ---- primitives ---------------------------------------------------------------------

_primitives = []  # those that are watched, as weak references


def _watch_primitive(name, primitive):
    """An operator as an object: calling it is a matter of its class, so it gets one of its own."""
    cls = type(primitive)
    if hasattr(cls, "_msprobe_stands_for"):
        return
    _primitives.append(weakref.ref(primitive))
    known = _probe.Fn(functools.partial(cls.__call__, primitive), "Primitive",
                      f"{name}.{cls.__name__}")
    primitive.__class__ = type(cls.__name__, (cls,), {
        "__call__": lambda self, *args: known(*args), "__module__": cls.__module__,
        "_msprobe_stands_for": cls})


def put_primitives(cells):
    """Those that cells have as attributes."""
    for cell in cells:
        for name, primitive in getattr(cell, "_primitives", {}).items():
            if primitive is not None:
                try:
                    _watch_primitive(name, primitive)
                except TypeError as why:  # its class cannot be changed
                    _probe.note(f"the primitive {name}: {why}")


def without_primitives():
    """They are of their own classes until what this returns is called."""
    alive = [p for p in (ref() for ref in _primitives) if p is not None]
    watched = [(p, type(p)) for p in alive if hasattr(type(p), "_msprobe_stands_for")]
    for primitive, cls in watched:
        primitive.__class__ = cls._msprobe_stands_for

    def watch_again():
        for primitive, cls in watched:
            primitive.__class__ = cls

    return watch_again
